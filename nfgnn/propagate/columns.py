"""A batch of dense matrices as columns of one: how many runs share one sparse product."""

from torch import Tensor


def fold(x: Tensor, batch_dim: int | None) -> Tensor:
    """``[n, c]`` matrices batched along ``batch_dim`` → ``[n, batch · c]``."""
    assert batch_dim is not None
    return x.movedim(batch_dim, -2).flatten(-2)


def unfold(x: Tensor, batch: int) -> Tensor:
    """``[…, n, batch · c]`` → ``[…, n, batch, c]``, the inverse of :func:`fold` with the batch second to last."""
    return x.view(*x.shape[:-1], batch, x.shape[-1] // batch)
