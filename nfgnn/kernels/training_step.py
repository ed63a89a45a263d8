"""What an epoch does beside the model, as three Triton kernels: loss with gradient and accuracy; the books; Adam.

On a small graph an epoch is a chain of short kernels, so that their number decides how long it takes.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _scores_kernel(  # type: ignore[no-untyped-def]
    logits, weight, y, share, parts, gradient, n, runs, classes,
    HAS_SHARE: tl.constexpr, NODES: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """A block of nodes of one run. Its sums are left as a part, so that adding them up has a fixed order."""
    block, run = tl.program_id(0), tl.program_id(1)
    node = block * NODES + tl.arange(0, NODES)
    c = tl.arange(0, CLASSES)
    there, inside = node < n, c < classes
    mask = there[:, None] & inside[None, :]
    place = (node.to(tl.int64) * runs + run)[:, None] * classes + c[None, :]
    z = tl.load(logits + place, mask=mask, other=float("-inf"))
    z = tl.where(there[:, None], z, 0.0)  # no row without a number
    label = tl.load(y + node, mask=there, other=0)
    w = tl.load(weight + tl.cast(run, tl.int64) * n + node, mask=there, other=0.0)
    highest = tl.max(z, 1)
    odds = tl.where(inside[None, :], tl.exp(z - highest[:, None]), 0.0)
    total = tl.sum(odds, 1)
    log_total = tl.log(total) + highest
    right = inside[None, :] & (c[None, :] == label[:, None])
    own = tl.sum(tl.where(right, z, 0.0), 1)
    surprise = log_total - own
    target = tl.where(right, 1.0, 0.0)
    if HAS_SHARE:
        s = tl.load(share + run)
        mean = tl.sum(tl.where(inside[None, :], z, 0.0), 1) / classes
        surprise += s * (own - mean)
        target = target * (1 - s) + s / classes
    best = tl.min(
        tl.where(inside[None, :] & (z == highest[:, None]), c[None, :], CLASSES), 1
    )  # the first, as argmax
    correct = tl.where(best == label, w, 0.0)
    part = parts + block * runs + run
    tl.store(part, tl.sum(tl.where(w != 0, w * surprise, 0.0), 0))
    tl.store(part + tl.num_programs(0) * runs, tl.sum(correct, 0))
    step = tl.where(w[:, None] != 0, w[:, None] * (odds / total[:, None] - target), 0.0)
    tl.store(gradient + place, step, mask=mask)


def scores(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`nfgnn.training.fused_loss.scores`."""
    logits, weight = logits.contiguous(), weight.contiguous()
    n, runs, classes = logits.shape
    width = max(2, triton.next_power_of_2(classes))
    nodes = (
        max(1, min(512, 2048 // width)) if n * runs > 200_000 else max(1, min(64, 1024 // width))
    )
    blocks = triton.cdiv(n, nodes)
    parts, gradient = logits.new_empty(2, blocks, runs), torch.empty_like(logits)
    _scores_kernel[(blocks, runs)](
        logits, weight, y, share, parts, gradient, n, runs, classes, share is not None, nodes, width,
        num_warps=4 if nodes * width >= 1024 else 1,
    )  # fmt: skip
    loss, accuracy = parts.sum(1)
    return loss, accuracy, gradient


@triton.jit
def _note_kernel(  # type: ignore[no-untyped-def]
    train_loss, val_loss, accuracy, t, seen, window, active, epochs, best_loss, improved, runs, patience,
    LENGTH: tl.constexpr,
):  # fmt: skip
    run = tl.program_id(0)
    now = tl.load(t)
    last = now - 1
    val = tl.load(val_loss + run)
    value = val.to(tl.float64)
    going = tl.load(active + run) != 0
    line = seen + now * 3 * runs + run
    tl.store(line, tl.load(train_loss + run).to(tl.float64))
    line = seen + tl.maximum(last, 0) * 3 * runs + run
    tl.store(line + runs, value)
    tl.store(line + 2 * runs, tl.load(accuracy + run).to(tl.float64))
    i = tl.arange(0, LENGTH)
    before = tl.load(window + i * runs + run, mask=i < patience, other=0.0)
    mean = tl.sum(before, 0) / patience
    stop = (last >= patience) & (value > mean)
    tl.debug_barrier()  # all of the window has been read
    tl.store(window + ((last + patience) % patience) * runs + run, value)
    tl.store(epochs + run, tl.where(going, now, tl.load(epochs + run)))
    best = tl.load(best_loss + run)
    better = going & (val < best) & (now > 0)
    tl.store(best_loss + run, tl.where(better, val, best))
    tl.store(improved + run, better)
    tl.store(active + run, going & (stop == 0))


def note(
    train_loss: Tensor, val_loss: Tensor, accuracy: Tensor, t: Tensor, seen: Tensor, window: Tensor, active: Tensor,
    epochs: Tensor, best_loss: Tensor, improved: Tensor,
) -> None:  # fmt: skip
    """Keep what an epoch tells, and who stops: see ``_State.note``."""
    patience, runs = window.shape
    train_loss, val_loss, accuracy = (
        told.contiguous() for told in (train_loss, val_loss, accuracy)
    )
    _note_kernel[(runs,)](
        train_loss, val_loss, accuracy, t, seen, window, active, epochs, best_loss, improved, runs, patience,
        triton.next_power_of_2(patience), num_warps=1,
    )  # fmt: skip


@triton.jit
def _adam_kernel(  # type: ignore[no-untyped-def]
    theta, gradient, m, v, powers, lr, weight_decay, active, size, filter_start, BLOCK: tl.constexpr
):
    run = tl.program_id(1)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = j < size
    place = tl.cast(run, tl.int64) * size + j
    group = run * 2 + (j >= filter_start).to(tl.int32)
    going = tl.load(active + run) != 0
    correction_1 = (1 - tl.load(powers)).to(tl.float32)
    correction_2 = tl.sqrt((1 - tl.load(powers + 1)).to(tl.float32))
    p = tl.load(theta + place, mask=inside, other=0.0)
    g = tl.load(gradient + place, mask=inside, other=0.0) + tl.load(weight_decay + group) * p
    m_now = tl.load(m + place, mask=inside, other=0.0)
    m_now += 0.1 * (g - m_now)
    v_now = tl.load(v + place, mask=inside, other=0.0) * 0.999 + 0.001 * g * g
    step = tl.load(lr + group) / correction_1 * m_now / (tl.sqrt(v_now) / correction_2 + 1e-8)
    tl.store(m + place, m_now, mask=inside)
    tl.store(v + place, v_now, mask=inside)
    tl.store(theta + place, tl.where(going, p - step, p), mask=inside)


def adam(
    theta: Tensor, gradient: Tensor, m: Tensor, v: Tensor, powers: Tensor, lr: Tensor, weight_decay: Tensor,
    active: Tensor, filter_start: int,
) -> None:  # fmt: skip
    """A step of all runs that are active: see :class:`nfgnn.training.stacked_parameters.Adam`."""
    runs, size = theta.shape
    _adam_kernel[(triton.cdiv(size, 1024), runs)](
        theta,
        gradient.contiguous(),
        m,
        v,
        powers,
        lr,
        weight_decay,
        active,
        size,
        filter_start,
        1024,
        num_warps=4,
    )
