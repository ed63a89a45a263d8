"""Helpers for the ``vmap`` rules of autograd functions whose tensors have a dimension for runs.

A function whose tensors have a dimension of runs computes a batch of calls as one call with more
runs.
"""

from collections.abc import Sequence

from torch import Tensor

from nfgnn.spectral import join_runs


def join_inputs(
    batch: int,
    in_dims: Sequence[int | None],
    inputs: Sequence[Tensor | None],
    run_dims: Sequence[int],
) -> list[Tensor | None]:
    """Merge the batch of a ``vmap`` into the runs of every input; inputs may be ``None``."""
    joined: list[Tensor | None] = []
    for dim, value, run in zip(in_dims, inputs, run_dims, strict=True):
        if value is None:
            joined.append(None)
        else:
            (runs,) = join_runs(batch, (dim,), (value,), (run,))
            # What all runs share has been expanded; kernels read rates and seeds one by one.
            joined.append(runs.contiguous() if runs.dim() == 1 else runs)
    return joined


def separate_runs(
    parts: Sequence[Tensor], batch: int, run_dims: Sequence[int]
) -> tuple[Tensor, ...]:
    """Divide the runs of every part among the batch of a ``vmap``."""
    return tuple(part.unflatten(dim, (batch, -1)) for part, dim in zip(parts, run_dims))
