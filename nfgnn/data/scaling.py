"""Feature scaling. It matters more than most hyper-parameters, so it is one of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.errors import UserError

SCALINGS = ("auto", "row", "standard", "raw")
_CLIP = 5.0  # standard deviations


@dataclass(frozen=True)
class FeatureScaling:
    r"""A scaling of node features that is fitted on one graph and applied to any.

    - ``row``: :math:`x_i / \lVert x_i \rVert_1`, common for bags of words. Rows of zeros stay zero.
    - ``standard``: :math:`z_{ij} = \mathrm{clip}((x_{ij} - \mu_j) / \sigma_j, -5, 5) / \sqrt{f}`
      with the mean and standard deviation of every column. Rows have a norm of about one. Constant
      columns become zero.
    - ``raw``: features as they are.

    Sparse matrices stay sparse under ``row`` and ``raw``.
    """

    how: str
    mean: Tensor | None = None
    deviation: Tensor | None = None

    @classmethod
    def fit(cls, x: Tensor, how: str = "auto") -> "FeatureScaling":
        """Fit a scaling.

        Args:
            x: features [n, f], dense or CSR.
            how: one of :data:`SCALINGS`. ``auto`` is ``row`` if at least half of the entries are
                zero and none is negative (words, counts, indicators), else ``standard``
                (measurements).
        """
        if how not in SCALINGS:
            raise UserError(
                f"features = '{how}' is not available: choose one of {', '.join(SCALINGS)}"
            )
        if how == "auto":
            how = _choose(x)
        if how != "standard":
            return cls(how)
        dense = x.to_dense()
        # Constant columns are divided by one. They become zero, because the mean is subtracted.
        deviation = dense.std(0, correction=0)
        return cls(how, dense.mean(0), torch.where(deviation > 0, deviation, 1.0))

    def apply(self, x: Tensor) -> Tensor:
        """Return the scaled features."""
        if self.how == "raw":
            return x
        if self.how == "standard":
            assert self.mean is not None
            assert self.deviation is not None
            z = (x.to_dense() - self.mean.to(x)) / self.deviation.to(x)
            # Heavy-tailed columns would otherwise dominate the norm of a few nodes.
            return z.clamp(-_CLIP, _CLIP).div(x.shape[1] ** 0.5)
        if x.layout == torch.strided:
            norm = x.abs().sum(1, keepdim=True)
            return x / torch.where(norm > 0, norm, 1.0)
        return _scale_csr_rows(x)


def _choose(x: Tensor) -> str:
    values = x if x.layout == torch.strided else x.values()
    nonzero = int((values != 0).sum())
    mostly_zero = nonzero <= 0.5 * x.shape[0] * x.shape[1]
    non_negative = bool((values >= 0).all())
    return "row" if mostly_zero and non_negative else "standard"


def _scale_csr_rows(x: Tensor) -> Tensor:
    crow = x.crow_indices()
    values = x.values()
    row = torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), crow.diff())
    norm = values.new_zeros(x.shape[0]).index_add_(0, row, values.abs())[row]
    scaled = values / torch.where(norm > 0, norm, 1.0)
    return torch.sparse_csr_tensor(crow, x.col_indices(), scaled, x.shape, check_invariants=False)
