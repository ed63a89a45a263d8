"""The rest of an epoch after the model, for many runs at once: loss, stopping rule, Adam.

The time of an epoch on a small graph is determined by the number of kernels, so each of the three
is one. The equivalent torch code is in ``nfgnn.training.fused_loss.loss_and_gradient``,
``nfgnn.training.stopping.BatchedStopping`` and ``nfgnn.training.optimizer.StackedAdam``. The kernel
of the stopping rule compares validation losses; where a metric selects the epoch, the torch
code takes its place.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _loss_kernel(
    logits, weight, y, smoothing, parts, gradient, n, runs, classes,
    NODES: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Compute loss, accuracy and gradient of a block of nodes of one run.

    The sums of a block are stored as partial sums, so that adding them up has a fixed order.
    """
    block = tl.program_id(0)
    run = tl.program_id(1)
    node = block * NODES + tl.arange(0, NODES)
    c = tl.arange(0, CLASSES)
    node_mask = node < n
    class_mask = (c < classes)[None, :]
    mask = node_mask[:, None] & class_mask
    place = (node.to(tl.int64) * runs + run)[:, None] * classes + c[None, :]
    z = tl.load(logits + place, mask=mask, other=float("-inf"))
    z = tl.where(node_mask[:, None], z, 0.0)  # rows beyond the last node must stay finite
    label = tl.load(y + node, mask=node_mask, other=0)
    w = tl.load(weight + tl.cast(run, tl.int64) * n + node, mask=node_mask, other=0.0)

    # Cross-entropy: log Σ exp(z) - z[label], with label smoothing.
    highest = tl.max(z, 1)
    odds = tl.where(class_mask, tl.exp(z - highest[:, None]), 0.0)
    total = tl.sum(odds, 1)
    log_total = tl.log(total) + highest
    right = class_mask & (c[None, :] == label[:, None])
    own = tl.sum(tl.where(right, z, 0.0), 1)
    loss = log_total - own
    target = tl.where(right, 1.0, 0.0)
    if smoothing is not None:
        s = tl.load(smoothing + run)
        mean = tl.sum(tl.where(class_mask, z, 0.0), 1) / classes
        loss += s * (own - mean)
        target = target * (1 - s) + s / classes

    # The first of the highest logits wins, as in argmax.
    best = tl.min(tl.where(class_mask & (z == highest[:, None]), c[None, :], CLASSES), 1)
    correct = tl.where(best == label, w, 0.0)
    part = parts + block * runs + run
    tl.store(part, tl.sum(tl.where(w != 0, w * loss, 0.0), 0))
    tl.store(part + tl.num_programs(0) * runs, tl.sum(correct, 0))
    d_z = tl.where(w[:, None] != 0, w[:, None] * (odds / total[:, None] - target), 0.0)
    tl.store(gradient + place, d_z, mask=mask)


def loss_and_gradient(
    logits: Tensor, weight: Tensor, y: Tensor, share: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return loss, accuracy and gradient: the twin of ``fused_loss.loss_and_gradient``."""
    logits = logits.contiguous()
    weight = weight.contiguous()
    n, runs, classes = logits.shape
    width = max(2, triton.next_power_of_2(classes))
    if n * runs > 200_000:
        nodes = max(1, min(512, 2048 // width))
    else:
        nodes = max(1, min(64, 1024 // width))
    blocks = triton.cdiv(n, nodes)
    parts = logits.new_empty(2, blocks, runs)
    gradient = torch.empty_like(logits)
    _loss_kernel[(blocks, runs)](
        logits, weight, y, share, parts, gradient, n, runs, classes, nodes, width,
        num_warps=4 if nodes * width >= 1024 else 1,
    )  # fmt: skip
    loss, accuracy = parts.sum(1)
    return loss, accuracy, gradient


@triton.jit
def _stopping_kernel(
    train_loss, val_loss, accuracy, t, seen, window, active, epochs, best_loss, improved,
    runs, patience, LENGTH: tl.constexpr,
):  # fmt: skip
    """Record epoch t of one run and apply the stopping rule.

    The validation loss belongs to the weights after step t - 1, the training loss to step t. The
    window is a ring of the last ``patience`` validation losses.
    """
    run = tl.program_id(0)
    now = tl.load(t)
    last = now - 1
    val = tl.load(val_loss + run)
    value = val.to(tl.float64)
    running = tl.load(active + run) != 0
    line = seen + now * 3 * runs + run
    tl.store(line, tl.load(train_loss + run).to(tl.float64))
    line = seen + tl.maximum(last, 0) * 3 * runs + run
    tl.store(line + runs, value)
    tl.store(line + 2 * runs, tl.load(accuracy + run).to(tl.float64))
    i = tl.arange(0, LENGTH)
    before = tl.load(window + i * runs + run, mask=i < patience, other=0.0)
    mean = tl.sum(before, 0) / patience
    stop = (last >= patience) & (value > mean)
    tl.debug_barrier()  # the whole window must be read before one of its values is replaced
    tl.store(window + ((last + patience) % patience) * runs + run, value)
    tl.store(epochs + run, tl.where(running, now, tl.load(epochs + run)))
    best = tl.load(best_loss + run)
    better = running & (val < best) & (now > 0)
    tl.store(best_loss + run, tl.where(better, val, best))
    tl.store(improved + run, better)
    tl.store(active + run, running & (stop == 0))


def record(
    train_loss: Tensor,
    val_loss: Tensor,
    accuracy: Tensor,
    t: Tensor,
    seen: Tensor,
    window: Tensor,
    active: Tensor,
    epochs: Tensor,
    best_loss: Tensor,
    improved: Tensor,
) -> None:
    """Record an epoch of all runs and stop those whose validation loss exceeds its mean."""
    patience, runs = window.shape
    measured = [value.contiguous() for value in (train_loss, val_loss, accuracy)]
    length = triton.next_power_of_2(patience)
    _stopping_kernel[(runs,)](
        *measured, t, seen, window, active, epochs, best_loss, improved, runs, patience, length,
        num_warps=1,
    )  # fmt: skip


@triton.jit
def _adam_kernel(
    theta, gradient, m, v, powers, lr, weight_decay, active, size, filter_start,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Update a block of the parameters of one run, if it is active.

    ``lr`` and ``weight_decay`` are ``[runs, 2]``: for the network and, from ``filter_start`` on,
    for the filter. ``powers`` holds β₁ᵗ and β₂ᵗ.
    """
    run = tl.program_id(1)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = j < size
    place = tl.cast(run, tl.int64) * size + j
    group = run * 2 + (j >= filter_start).to(tl.int32)
    running = tl.load(active + run) != 0
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
    tl.store(theta + place, tl.where(running, p - step, p), mask=inside)


def adam(
    theta: Tensor,
    gradient: Tensor,
    m: Tensor,
    v: Tensor,
    powers: Tensor,
    lr: Tensor,
    weight_decay: Tensor,
    active: Tensor,
    filter_start: int,
) -> None:
    """Update the parameters ``[runs, size]`` of all active runs by one step of Adam."""
    runs, size = theta.shape
    gradient = gradient.contiguous()
    _adam_kernel[(triton.cdiv(size, 1024), runs)](
        theta, gradient, m, v, powers, lr, weight_decay, active, size, filter_start,
        1024, num_warps=4,
    )  # fmt: skip
