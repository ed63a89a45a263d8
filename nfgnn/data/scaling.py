"""Feature scaling. It matters more than most hyper-parameters, so it is one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nfgnn.data.messages import counted
from nfgnn.errors import UserError

SCALINGS = ("auto", "row", "standard", "raw")
_CLIP = 5.0  # standard deviations
_HEAVY_TAIL = 2.0  # skewness of an exponential distribution
_DENSE_SHARE = 0.1  # of the sum of all features
_BLOCK = 64  # columns


@dataclass(frozen=True)
class FeatureScaling:
    r"""A scaling of node features that is fitted on one graph and applied to any.

    - ``row``: :math:`x_i / \lVert x_i \rVert_1`, common for bags of words. Rows of zeros stay zero.
    - ``standard``: :math:`z_{ij} = \mathrm{clip}((x_{ij} - \mu_j) / \sigma_j, -5, 5) / \sqrt{f}`
      with the mean and standard deviation of every column over all nodes. Rows have a norm of about
      one. Constant columns become zero.
    - ``raw``: features as they are.
    - ``auto``: ``row`` for bags of words and counts, else by the kind of each column.

    ``auto`` looks at the features of the training nodes only. It is ``row`` if no feature is
    negative, at most half of them are not zero, and columns of numbers (mostly not zero, and not
    only 0 and 1) hold at most a tenth of their sum. One-hot categories, which have the same number
    of ones in every row and zeros elsewhere, are only divided by their norm. Otherwise

    - columns of 0 and 1 stay as they are;
    - columns with heavy tails are replaced by their signed logarithm
      :math:`\mathrm{sign}(x) \log(1 + |x|)`: those of a skewness above 2 that it reduces;
    - these and all other columns are standardised and clipped as above;
    - columns of another constant become zero;
    - one factor for all columns gives the rows a norm of about one.

    Features that were missing in a table are first replaced by the median of the training nodes.

    Sparse matrices stay sparse under ``row`` and ``raw``.
    """

    how: str
    mean: Tensor | None = None
    deviation: Tensor | None = None
    logarithm: Tensor | None = None
    """Which columns are replaced by their signed logarithm."""
    weight: Tensor | None = None
    """What every column is multiplied by at last, or one factor for ``raw``."""
    imputed: Tensor | None = None
    """Columns with gaps, and the columns that mark their gaps, ``[2, gaps]``."""
    median: Tensor | None = None
    """What replaces the gaps."""

    @classmethod
    def fit(
        cls,
        x: Tensor,
        how: str = "auto",
        train_mask: Tensor | None = None,
        imputed: Sequence[Sequence[int]] = ((), ()),
    ) -> "FeatureScaling":
        """Fit a scaling.

        Args:
            x: features [n, f], dense or CSR.
            how: one of :data:`SCALINGS`.
            train_mask: the training nodes, for ``auto`` and for medians; by default all nodes.
            imputed: columns with gaps, and for each the column that marks its gaps by ones.
        """
        if how not in SCALINGS:
            raise UserError(
                f"features = '{how}' is not available: choose one of {', '.join(SCALINGS)}"
            )
        filled: dict[str, Tensor] = {}
        if imputed[0]:
            columns = torch.tensor(imputed)
            filled = {"imputed": columns, "median": _medians(x, columns, train_mask)}
            x = _impute(x, columns, filled["median"])
        if how == "auto":
            rows = _training_rows(x, train_mask)
            if _is_bag_of_words(rows):
                return _fit_bag_of_words(rows, filled)
            return _fit_columns(rows.to_dense(), filled)
        if how == "standard":
            return _fit_standard(x.to_dense(), filled)
        return cls(how, **filled)

    @classmethod
    def from_tensors(cls, how: str, tensors: Mapping[str, Tensor]) -> "FeatureScaling":
        """Return the scaling with the tensors of :meth:`tensors`."""
        return cls(how, **tensors)

    def check(self, num_features: int) -> None:
        """Raise :class:`ValueError` if the tensors do not fit each other or the features."""
        shape = (num_features,)
        columns = (self.mean, self.deviation, self.logarithm)
        right = all(values is None or values.shape == shape for values in columns)
        # `raw` has one factor for all columns.
        weight_shape = () if self.how == "raw" else shape
        right &= self.weight is None or self.weight.shape == weight_shape
        if self.how == "standard":
            right &= self.mean is not None and self.deviation is not None
        right &= (self.imputed is None) == (self.median is None)
        if self.imputed is not None and self.median is not None:
            right &= self.imputed.shape == (2, *self.median.shape)
            right &= not self.imputed.is_floating_point()
            right &= bool(((self.imputed >= 0) & (self.imputed < num_features)).all())
        if not right:
            raise ValueError(f"the statistics of the scaling do not fit {num_features} features")

    def tensors(self) -> dict[str, Tensor]:
        """Return the fitted tensors by their name."""
        return {key: value for key, value in vars(self).items() if isinstance(value, Tensor)}

    def equals(self, other: "FeatureScaling") -> bool:
        """Whether both scale features to the same values."""
        mine = self.tensors()
        others = other.tensors()
        if self.how != other.how or mine.keys() != others.keys():
            return False
        return all(torch.equal(mine[key], others[key]) for key in mine)

    def apply(self, x: Tensor) -> Tensor:
        """Return the scaled features."""
        if self.imputed is not None:
            assert self.median is not None
            x = _impute(x, self.imputed, self.median)
        if self.how == "raw":
            return x if self.weight is None else x * float(self.weight)
        if self.how == "standard":
            return self._standardise(x.to_dense())
        if x.layout == torch.strided:
            norm = x.abs().sum(1, keepdim=True)
            return x / torch.where(norm > 0, norm, 1.0)
        return _scale_csr_rows(x)

    def _standardise(self, x: Tensor) -> Tensor:
        assert self.mean is not None
        assert self.deviation is not None
        if self.logarithm is not None:
            x = torch.where(self.logarithm.to(x.device), _signed_logarithm(x), x)
        z = (x - self.mean.to(x)) / self.deviation.to(x)
        # Heavy-tailed columns would otherwise dominate the norm of a few nodes.
        z = z.clamp(-_CLIP, _CLIP)
        if self.weight is not None:
            return z * self.weight.to(x)
        return z.div(x.shape[1] ** 0.5)

    def describe(self) -> str:
        """Return one line about what happens to the features."""
        gaps = "" if self.median is None else f"; gaps of {counted(len(self.median), 'column')} "
        gaps += "replaced by medians" if gaps else ""
        if self.how == "row":
            return f"every row is divided by its sum{gaps}"
        if self.how == "raw":
            factor = "" if self.weight is None else f", multiplied by {float(self.weight):.3g}"
            return f"unchanged{factor}{gaps}"
        if self.weight is None or self.logarithm is None:
            return f"all columns standardised{gaps}"
        assert self.mean is not None
        assert self.deviation is not None
        constant = self.weight == 0
        indicator = ~constant & (self.mean == 0) & (self.deviation == 1)
        numbers = int((~constant & ~indicator).sum())
        logarithms = int((self.logarithm & ~constant).sum())
        parts = []
        if numbers:
            heavy = f" ({logarithms} after a logarithm)" if logarithms else ""
            parts.append(f"{counted(numbers, 'column')} standardised{heavy}")
        if indicator.any():
            parts.append(f"{counted(int(indicator.sum()), 'column')} of 0 and 1 unchanged")
        if constant.any():
            parts.append(f"{counted(int(constant.sum()), 'constant column')} left out")
        return ", ".join(parts) + gaps


def _fit_bag_of_words(rows: Tensor, filled: Mapping[str, Tensor]) -> FeatureScaling:
    """Tell words and counts from one-hot categories."""
    values = rows if rows.layout == torch.strided else rows.values()
    # A row of k ones has the norm √k. Words would differ in number from row to row.
    ones = rows.sum(1) if rows.layout == torch.strided else _csr_row_sums(rows)
    if bool(((values != 0) & (values != 1)).any()) or bool((ones != ones[0]).any()):
        return FeatureScaling("row", **filled)
    if float(ones[0]) <= 1:
        return FeatureScaling("raw", **filled)
    return FeatureScaling("raw", weight=ones[0].rsqrt(), **filled)


def _fit_columns(rows: Tensor, filled: Mapping[str, Tensor]) -> FeatureScaling:
    """Fit a scaling by the kind of each column on the features of the training nodes."""
    parts = [_column_statistics(block) for block in rows.split(_BLOCK, dim=1)]
    mean, deviation, logarithm, square, constant = (torch.cat(part) for part in zip(*parts))
    if not bool((logarithm | constant | (square < 1)).any()):
        return _fit_standard(rows, filled)
    # The mean squared norm of the scaled rows, save for the few values that are clipped.
    norm = square[~constant].sum().sqrt().clamp(min=1e-6)
    weight = torch.where(constant, 0.0, 1 / norm)
    return FeatureScaling(
        "standard",
        mean.to(rows.dtype),
        deviation.to(rows.dtype),
        logarithm,
        weight.to(rows.dtype),
        **filled,
    )


def _fit_standard(x: Tensor, filled: Mapping[str, Tensor]) -> FeatureScaling:
    # Constant columns are divided by one. They become zero, because the mean is subtracted.
    deviation = x.std(0, correction=0)
    deviation = torch.where(deviation > 0, deviation, 1.0)
    return FeatureScaling("standard", x.mean(0), deviation, **filled)


def _column_statistics(rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return mean, deviation, whether to take logarithms, mean square after scaling, constancy."""
    x = rows.double()
    indicator = _only_zero_and_one(x)
    # A category without a training node may still occur among their neighbours.
    constant = ~indicator & (x == x[:1]).all(0)
    log = _signed_logarithm(x)
    skewness = _skewness(x)
    heavy = ~indicator & (skewness > _HEAVY_TAIL) & (_skewness(log) < skewness)
    x = torch.where(heavy, log, x)
    square = torch.where(indicator, x.mean(0), 1.0)
    mean = torch.where(indicator, 0.0, x.mean(0))
    deviation = x.std(0, correction=0)
    deviation = torch.where(indicator | (deviation == 0), 1.0, deviation)
    return mean, deviation, heavy, square, constant


def _skewness(x: Tensor) -> Tensor:
    """Return the absolute skewness of every column, 0 for constant columns."""
    centred = x - x.mean(0)
    variance = centred.square().mean(0)
    third = centred.pow(3).mean(0)
    return torch.where(variance > 0, third / variance.pow(1.5).clamp(min=1e-300), 0.0).abs()


def _signed_logarithm(x: Tensor) -> Tensor:
    return x.sign() * x.abs().log1p()


def _only_zero_and_one(x: Tensor) -> Tensor:
    return ((x == 0) | (x == 1)).all(0)


def _is_bag_of_words(rows: Tensor) -> bool:
    n, f = rows.shape
    if rows.layout == torch.strided:
        values = rows
        nonzero = torch.count_nonzero(rows, 0)
        total = rows.sum(0, dtype=torch.float64)
        indicator = _only_zero_and_one(rows)
    else:
        values = rows.values()
        column = rows.col_indices()
        nonzero = torch.bincount(column[values != 0], minlength=f)
        total = torch.zeros(f, dtype=torch.float64).index_add_(0, column, values.double())
        indicator = torch.bincount(column[(values != 0) & (values != 1)], minlength=f) == 0
    if int(nonzero.sum()) > 0.5 * n * f or bool((values < 0).any()):
        return False
    # Two standard errors above one half, so that a few rows do not turn words into numbers.
    numbers = (nonzero > 0.5 * n + n**0.5) & ~indicator
    return bool(total[numbers].sum() <= _DENSE_SHARE * total.sum())


def _training_rows(x: Tensor, train_mask: Tensor | None) -> Tensor:
    if train_mask is None or not bool(train_mask.any()):
        return x
    nodes = train_mask.nonzero().flatten().to(x.device)
    if x.layout == torch.strided:
        return x[nodes]
    crow = x.crow_indices()
    counts = crow.diff()[nodes]
    ends = counts.cumsum(0)
    # Entry k of the result is entry k - (start of its row there) + (start of its row in x).
    shift = torch.repeat_interleave(crow[nodes] - ends + counts, counts)
    entries = torch.arange(len(shift), device=x.device) + shift
    return torch.sparse_csr_tensor(
        torch.cat([ends.new_zeros(1), ends]),
        x.col_indices()[entries],
        x.values()[entries],
        (len(nodes), x.shape[1]),
        check_invariants=False,
    )


def _medians(x: Tensor, imputed: Tensor, train_mask: Tensor | None) -> Tensor:
    """Return the median of every column with gaps over the training nodes whose value is known."""
    rows = _training_rows(x, train_mask).to_dense()
    medians = []
    for column, indicator in imputed.t().tolist():
        known = rows[rows[:, indicator] == 0, column]
        # Without a known value, the median of the whole table remains, which is in every gap.
        values = known if len(known) else rows[:, column]
        medians.append(float(np.median(values.numpy(force=True))))
    return torch.tensor(medians, dtype=x.dtype)


def _impute(x: Tensor, imputed: Tensor, median: Tensor) -> Tensor:
    filled = x.to_dense().clone()
    columns, indicators = imputed.to(x.device)
    filled[:, columns] = torch.where(filled[:, indicators] != 0, median.to(x), filled[:, columns])
    return filled


def _scale_csr_rows(x: Tensor) -> Tensor:
    crow = x.crow_indices()
    norm = torch.repeat_interleave(_csr_row_sums(x), crow.diff())
    scaled = x.values() / torch.where(norm > 0, norm, 1.0)
    return torch.sparse_csr_tensor(crow, x.col_indices(), scaled, x.shape, check_invariants=False)


def _csr_row_sums(x: Tensor) -> Tensor:
    """Return the sum of absolute values of every row."""
    values = x.values()
    row = torch.repeat_interleave(
        torch.arange(x.shape[0], device=x.device), x.crow_indices().diff()
    )
    return values.new_zeros(x.shape[0]).index_add_(0, row, values.abs())
