"""The scaled Laplacian of a graph, built once."""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from nfgnn.spectral.csr import CSR
from nfgnn.spectral.lanczos import largest_eigenvalue
from nfgnn.tensor_cache import TensorCache

LambdaMax = float | Literal["estimate"]
_CACHE = TensorCache()
_BLOCK = 2**22  # entries that are normalised at a time


class ScaledLaplacian:
    r"""The operator that every basis is evaluated on.

    .. math::
        \hat A = D^{-1/2} A D^{-1/2}, \qquad L = I - \hat A, \qquad
        \tilde L = \frac{2}{\lambda_{\max}} L - I
                 = \Big(\frac{2}{\lambda_{\max}} - 1\Big) I - \frac{2}{\lambda_{\max}} \hat A

    A node without neighbours has an all-zero row in :math:`\hat A`. The spectrum of :math:`\tilde L` lies in
    :math:`[-1, 1]` for :math:`\lambda_{\max} = 2`, the default, which no graph exceeds; then
    :math:`\tilde L = -\hat A`. A smaller value, given or estimated, stretches the spectrum over the whole interval.
    Only :math:`\hat A` is stored; scale and shift go into the recurrence (:func:`fold_table`).

    Args:
        indptr, indices: the pattern of A in compressed rows.
        weight: the values of A; ``None`` stands for ones.
        scale: the diagonal of :math:`D^{-1/2}` in float64.
        lambda_max: the largest eigenvalue of L that is assumed.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        weight: Tensor | None,
        scale: Tensor,
        lambda_max: float = 2.0,
    ) -> None:
        self.indptr, self.indices, self.weight, self.scale = indptr, indices, weight, scale
        self.lambda_max = float(lambda_max)
        self._adjacency: dict[torch.dtype, CSR] = {}
        self._degree: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        return self.scale.numel()

    @property
    def degree(self) -> Tensor:
        """The (weighted) degrees D in float64."""
        if self._degree is None:
            self._degree = torch.where(self.scale > 0, self.scale**-2, 0.0)
        return self._degree

    def adjacency(self, dtype: torch.dtype) -> CSR:
        r""":math:`\hat A`, normalised in float64 and then rounded; kept for the next call."""
        if dtype not in self._adjacency:
            n = self.num_nodes
            self._adjacency[dtype] = CSR(
                self.indptr, self.indices, self._values(dtype), (n, n), symmetric=True
            )
        return self._adjacency[dtype]

    def _values(self, dtype: torch.dtype) -> Tensor:
        """The entries of Â, a block of rows at a time: in float64 all at once they would outweigh the graph."""
        values = torch.empty(self.indices.numel(), dtype=dtype, device=self.scale.device)
        blocks = -(-values.numel() // _BLOCK)
        bounds = (
            [self.num_nodes * i // blocks for i in range(blocks + 1)]
            if blocks > 1
            else [0, self.num_nodes]
        )
        for first, last in pairwise(bounds):
            start, stop = int(self.indptr[first]), int(self.indptr[last])
            weight = None if self.weight is None else self.weight[start:stop]
            block = normalised(
                self.indptr[first : last + 1],
                self.indices[start:stop],
                weight,
                self.scale[first:last],
                self.scale,
            )
            values[start:stop] = block
        return values

    def __matmul__(self, x: Tensor) -> Tensor:
        stretch = 2 / self.lambda_max
        return (stretch - 1) * x - stretch * (self.adjacency(x.dtype) @ x)

    def __repr__(self) -> str:
        return f"ScaledLaplacian(num_nodes={self.num_nodes}, lambda_max={self.lambda_max:g})"


def normalised(
    indptr: Tensor, indices: Tensor, weight: Tensor | None, own: Tensor, scale: Tensor
) -> Tensor:
    r"""The entries :math:`d_i^{-1/2} a_{ij} d_j^{-1/2}` of a block of rows in float64; ``own`` is the rows' own
    :math:`d_i^{-1/2}`."""
    values = torch.repeat_interleave(own, indptr.diff()) * scale.index_select(0, indices)
    return values if weight is None else values * weight


def fold_table(table: Tensor, lambda_max: float) -> list[tuple[float, float, float]]:
    r"""A basis' table in :math:`\tilde L` as the same table in :math:`\hat A`."""
    stretch = 2 / lambda_max
    return [(-a * stretch, a * (stretch - 1) + b, c) for a, b, c in table.tolist()]


def scaled_laplacian(
    edge_index: Tensor | ScaledLaplacian,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    self_loops: bool = False,
    lambda_max: LambdaMax = 2.0,
) -> ScaledLaplacian:
    """The scaled Laplacian of an undirected graph; the same tensors give the same object again.

    Args:
        edge_index: ``[2, num_edges]``, both directions of every edge. Repeated edges add up, self-loops are dropped.
            An operator made before passes through.
        edge_weight: ``[num_edges]``, non-negative.
        num_nodes: number of nodes; by default the largest index plus one.
        self_loops: add a loop of weight one to every node before normalising, as GCN and GPRGNN do.
        lambda_max: the largest eigenvalue assumed: a number, or ``"estimate"`` (Lanczos).
    """
    if isinstance(edge_index, ScaledLaplacian):
        return edge_index
    n = (
        num_nodes
        if num_nodes is not None
        else int(edge_index.max()) + 1
        if edge_index.numel()
        else 0
    )
    options = (n, self_loops, lambda_max)
    return _CACHE.lookup(
        (edge_index, edge_weight),
        options,
        lambda: _build(edge_index, edge_weight, n, self_loops, lambda_max),
    )


def _build(
    edge_index: Tensor, edge_weight: Tensor | None, n: int, self_loops: bool, lambda_max: LambdaMax
) -> ScaledLaplacian:
    if edge_index.numel() and (int(edge_index.min()) < 0 or int(edge_index.max()) >= n):
        raise ValueError(f"edge_index names a node outside of 0…{n - 1}")
    if edge_weight is not None and edge_weight.numel() and float(edge_weight.min()) < 0:
        raise ValueError(
            "edge_weight must not be negative: the normalised Laplacian needs non-negative degrees"
        )
    if not isinstance(lambda_max, str) and lambda_max <= 0:
        raise ValueError(f"lambda_max must be positive, got {lambda_max}")
    key, weight = _entries(edge_index, edge_weight, n)
    _check_symmetric(key, weight, n)
    if self_loops:
        key = torch.cat([key, torch.arange(n, device=key.device) * (n + 1)])
        if weight is None:
            key = torch.unique(key)
        else:
            key, order = torch.sort(key)
            weight = torch.cat([weight, weight.new_ones(n)])[order]
    indptr = torch.searchsorted(key, torch.arange(n + 1, device=key.device) * n)
    pattern = CSR(indptr, key % max(n, 1), key, (n, n))
    degree = indptr.diff().double() if weight is None else _row_sums(weight, indptr)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    operator = ScaledLaplacian(pattern.indptr, pattern.indices, weight, scale)
    if lambda_max == "estimate":
        lambda_max = largest_eigenvalue(operator.adjacency(torch.float64))
    operator.lambda_max = float(lambda_max)
    return operator


def _entries(
    edge_index: Tensor, edge_weight: Tensor | None, n: int
) -> tuple[Tensor, Tensor | None]:
    """The entries of A: their places ``row · n + column`` in order, each once, and their values; ``None`` for ones.

    One number for an entry, since a large graph's edges are the most memory that is needed anywhere.
    """
    keep = edge_index[0] != edge_index[1]
    if not bool(keep.all()):
        edge_index, edge_weight = (
            edge_index[:, keep],
            None if edge_weight is None else edge_weight[keep],
        )
    key = edge_index[0].long() * n + edge_index[1]
    if edge_weight is None:
        distinct = torch.unique(key)
        if distinct.numel() == key.numel():
            return distinct, None
        distinct, counts = torch.unique(key, return_counts=True)
        return distinct, counts.double()
    index, weight = coalesce(edge_index, edge_weight.detach().double(), num_nodes=n)
    return index[0] * n + index[1], None if bool((weight == 1).all()) else weight


def _row_sums(values: Tensor, indptr: Tensor) -> Tensor:
    """In a fixed order, which adding at places does not have on a GPU."""
    return torch.segment_reduce(values, "sum", offsets=indptr, initial=0.0)


def _check_symmetric(key: Tensor, weight: Tensor | None, n: int) -> None:
    mirrored = key % max(n, 1) * n + key // max(n, 1)
    if weight is None:
        same = torch.equal(torch.unique(mirrored), key)
    else:
        mirrored, order = torch.sort(mirrored)
        same = torch.equal(mirrored, key) and torch.allclose(weight[order], weight)
    if not same:
        raise ValueError(
            "edge_index must hold both directions of every edge with equal weight: "
            "a spectral filter is defined for undirected graphs (torch_geometric.utils.to_undirected makes one)"
        )
