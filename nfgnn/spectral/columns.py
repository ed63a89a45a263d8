"""A batch of dense matrices as columns of one: how many runs share one sparse product."""

from torch import Tensor


def fold(x: Tensor, batch_dim: int | None) -> Tensor:
    """``[n, c]`` matrices batched along ``batch_dim`` → ``[n, batch · c]``."""
    assert batch_dim is not None
    return x.movedim(batch_dim, -2).flatten(-2)


def unfold(x: Tensor, batch: int) -> Tensor:
    """``[…, n, batch · c]`` → ``[…, n, batch, c]``, the inverse of :func:`fold` with the batch second to last."""
    return x.view(*x.shape[:-1], batch, x.shape[-1] // batch)


def join(
    batch: int, in_dims: tuple[int | None, ...], inputs: tuple[Tensor, ...], runs: tuple[int, ...]
) -> list[Tensor]:
    """A ``vmap``'s inputs with its batch in the dimension ``runs`` that each of them has for runs."""
    joined = []
    for dim, value, run in zip(in_dims, inputs, runs):
        value = (
            value.unsqueeze(run).expand(*value.shape[:run], batch, *value.shape[run:])
            if dim is None
            else value
        )
        joined.append((value if dim is None else value.movedim(dim, run)).flatten(run, run + 1))
    return joined
