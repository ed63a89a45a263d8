"""Feature scaling. It decides more than most hyper-parameters do, so it is one of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.errors import UserError

SCALINGS = ("auto", "row", "standard", "raw")


@dataclass(frozen=True)
class FeatureScaling:
    """A scaling of node features, fitted on one graph and then applied to any.

    - ``row``: every row divided by the sum of its absolute values, usual for bags of words;
    - ``standard``: every column to mean 0 and deviation 1, cut at ±5, and divided by the root of the number of
      columns so that rows have norm about one;
    - ``raw``: as they are.

    A matrix that is stored sparse stays sparse under ``row`` and ``raw``.
    """

    how: str
    mean: Tensor | None = None
    deviation: Tensor | None = None

    @classmethod
    def fit(cls, x: Tensor, how: str = "auto") -> "FeatureScaling":
        """Learn what is needed from ``x``. ``auto`` is ``row`` for sparse-looking, non-negative features (words,
        counts, indicators) and ``standard`` for the rest (measurements)."""
        if how not in SCALINGS:
            raise UserError(f"features = '{how}' is not known: choose one of {', '.join(SCALINGS)}")
        if how == "auto":
            values = x if x.layout == torch.strided else x.values()
            stored = int((values != 0).sum())
            how = (
                "row"
                if stored <= 0.5 * x.shape[0] * x.shape[1] and bool((values >= 0).all())
                else "standard"
            )
        if how != "standard":
            return cls(how)
        dense = x.to_dense()
        deviation = dense.std(0, correction=0)
        return cls(how, dense.mean(0), torch.where(deviation > 0, deviation, 1.0))

    def apply(self, x: Tensor) -> Tensor:
        """The scaled features."""
        if self.how == "raw":
            return x
        if self.how == "standard":
            assert self.mean is not None
            assert self.deviation is not None
            z = (x.to_dense() - self.mean.to(x)) / self.deviation.to(x)
            return z.clamp(-5, 5).div(x.shape[1] ** 0.5)
        if x.layout == torch.strided:
            norm = x.abs().sum(1, keepdim=True)
            return x / torch.where(norm > 0, norm, 1.0)
        crow, values = x.crow_indices(), x.values()
        row = torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), crow.diff())
        norm = values.new_zeros(x.shape[0]).index_add_(0, row, values.abs())[row]
        scaled = values / torch.where(norm > 0, norm, 1.0)
        return torch.sparse_csr_tensor(
            crow, x.col_indices(), scaled, x.shape, check_invariants=False
        )
