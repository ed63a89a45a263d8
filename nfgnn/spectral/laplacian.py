"""The scaled Laplacian of a graph."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from nfgnn.errors import UserError
from nfgnn.spectral.backend import at_least_float32, sum_precision
from nfgnn.spectral.csr import CSR
from nfgnn.spectral.edge_checks import (
    LambdaMax,
    check_edges,
    check_lambda_max,
    check_symmetric,
    check_tensors,
    mirrored_keys,
    refuse_estimate,
)
from nfgnn.spectral.edge_weights import DifferentiableEntries, differentiable_entries
from nfgnn.spectral.lanczos import largest_eigenvalue
from nfgnn.tensor_cache import TensorCache, constants

_CACHE = TensorCache()
_BLOCK = 2**22  # number of entries that are normalised at a time


class ScaledLaplacian:
    r"""The operator that every basis is evaluated on.

    .. math::
        \hat A = D^{-1/2} A D^{-1/2}, \qquad L = I - \hat A, \qquad
        \tilde L = \frac{2}{\lambda_{\max}} L - I
                 = \Big(\frac{2}{\lambda_{\max}} - 1\Big) I - \frac{2}{\lambda_{\max}} \hat A

    A node without neighbours has an all-zero row in :math:`\hat A`. With the default
    :math:`\lambda_{\max} = 2`, which no graph exceeds, the spectrum of :math:`\tilde L` lies in
    :math:`[-1, 1]` and :math:`\tilde L = -\hat A`. A smaller value stretches the spectrum over the
    whole interval. Only :math:`\hat A` is stored. The recurrence takes care of scale and shift
    (:func:`~nfgnn.spectral.recurrence_table`).

    Args:
        indptr, indices: the pattern of A in compressed rows.
        weight: the values of A; ``None`` stands for ones.
        scale: the diagonal of :math:`D^{-1/2}` in float64.
        lambda_max: the assumed largest eigenvalue of L.
        self_loops: whether A has a loop of weight one at every node; ``None`` if not known.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        weight: Tensor | None,
        scale: Tensor,
        lambda_max: float = 2.0,
        self_loops: bool | None = None,
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self.weight = weight
        self.scale = scale
        self.lambda_max = float(lambda_max)
        self.self_loops = self_loops
        self.entries: DifferentiableEntries | None = None
        """The entries of Â with a gradient, if edge weights need one."""
        self.prepared: dict[torch.dtype, Any] = {}
        """What :mod:`nfgnn.kernels.recurrence` derives from the graph, by precision."""
        self._adjacency: dict[torch.dtype, CSR] = {}
        self._mean_matrix: dict[torch.dtype, CSR] = {}
        self._degree: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        return self.scale.numel()

    @property
    def degree(self) -> Tensor:
        """The (weighted) degrees D in float64."""
        if self._degree is None:
            with constants():
                self._degree = torch.where(self.scale > 0, self.scale**-2, 0.0)
        return self._degree

    def adjacency(self, dtype: torch.dtype) -> CSR:
        r"""Return :math:`\hat A`, normalised in float64 and then rounded. It is built once."""
        if dtype not in self._adjacency:
            shape = (self.num_nodes, self.num_nodes)
            with constants():
                values = self._values(dtype)
            matrix = CSR(self.indptr, self.indices, values, shape, symmetric=True)
            self._adjacency[dtype] = matrix
        return self._adjacency[dtype]

    def mean_matrix(self, dtype: torch.dtype) -> CSR:
        """Return P = D⁻¹ A, which averages over neighbours. It is built once."""
        if dtype not in self._mean_matrix:
            with constants():
                own = torch.repeat_interleave(self.scale, self.indptr.diff())
                values = own * own if self.weight is None else own * own * self.weight
                values = values.to(dtype)
            shape = (self.num_nodes, self.num_nodes)
            self._mean_matrix[dtype] = CSR(self.indptr, self.indices, values, shape)
        return self._mean_matrix[dtype]

    def _values(self, dtype: torch.dtype) -> Tensor:
        """Return the entries of Â, computed in blocks: in float64 they would outweigh the graph."""
        values = torch.empty(self.indices.numel(), dtype=dtype, device=self.scale.device)
        blocks = max(1, -(-values.numel() // _BLOCK))
        bounds = [self.num_nodes * i // blocks for i in range(blocks + 1)]
        for first, last in pairwise(bounds):
            start = int(self.indptr[first])
            stop = int(self.indptr[last])
            values[start:stop] = normalised(
                self.indptr[first : last + 1],
                self.indices[start:stop],
                None if self.weight is None else self.weight[start:stop],
                self.scale[first:last],
                self.scale,
            )
        return values

    def propagate(self, x: Tensor) -> Tensor:
        r"""Return :math:`\hat A X`, differentiable in X and in edge weights that need a gradient.

        A signal in half precision is summed in float32.
        """
        if torch.compiler.is_compiling():
            # A compiler cannot trace the product, so it breaks the graph here.
            compiled: Tensor = torch.compiler.disable(self.propagate)(x)
            return compiled
        if self.entries is not None:
            return self.entries.product(at_least_float32(x)).to(x.dtype)
        return self.adjacency(sum_precision(x)) @ x

    def means(self, x: Tensor) -> Tensor:
        r"""Return the means over neighbours, :math:`D^{-1} A X = D^{-1/2} \hat A D^{1/2} X`."""
        scale, root = self.roots_of_degrees(sum_precision(x))
        return (scale * self.propagate(root * x)).to(x.dtype)

    def roots_of_degrees(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return D^(-1/2) and D^(1/2) as columns, differentiable as :meth:`propagate` is.

        Both are zero, or one in the second case, for nodes without neighbours.
        """
        scale = self.scale if self.entries is None else self.entries.scale
        # Where the root is not defined, its derivative is not either.
        root = 1 / torch.where(self.scale > 0, scale, 1.0)
        return scale.to(dtype)[:, None], root.to(dtype)[:, None]

    def with_self_loops(self, self_loops: bool) -> "ScaledLaplacian":
        """Return the operator of the same graph with or without self-loops, built once.

        An operator that already has this form is returned unchanged. The assumed largest eigenvalue
        of a new one is 2.
        """
        if self.self_loops is None or self.self_loops == self_loops:
            return self
        if self.entries is not None:
            raise UserError(
                "the graph is an operator with edge weights that require a gradient, and it is "
                "needed with and without self-loops: pass the edges and edge_weight instead"
            )

        def make() -> ScaledLaplacian:
            row = torch.repeat_interleave(self.indptr.diff().long())
            edge_index = torch.stack([row, self.indices.long()])
            return _build(edge_index, self.weight, self.num_nodes, self_loops, 2.0, False)

        return _CACHE.lookup((self.indices, self.weight), self_loops, make)

    def __matmul__(self, x: Tensor) -> Tensor:
        stretch = 2 / self.lambda_max
        return (stretch - 1) * x - stretch * self.propagate(x)

    def __repr__(self) -> str:
        return f"ScaledLaplacian(num_nodes={self.num_nodes}, lambda_max={self.lambda_max:g})"


def normalised(
    indptr: Tensor, indices: Tensor, weight: Tensor | None, own: Tensor, scale: Tensor
) -> Tensor:
    r"""Return the entries :math:`d_i^{-1/2} a_{ij} d_j^{-1/2}` of a block of rows in float64.

    Args:
        indptr, indices, weight: the rows.
        own: :math:`d_i^{-1/2}` of the rows.
        scale: :math:`d_j^{-1/2}` of all nodes.
    """
    values = torch.repeat_interleave(own, indptr.diff()) * scale.index_select(0, indices)
    return values if weight is None else values * weight


def scaled_laplacian(
    edge_index: Tensor | ScaledLaplacian,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    self_loops: bool = False,
    lambda_max: LambdaMax = 2.0,
    symmetrize: bool = False,
) -> ScaledLaplacian:
    """Return the scaled Laplacian of an undirected graph, cached for the life of its tensors.

    Args:
        edge_index: ``[2, num_edges]``, both directions of every edge. Repeated edges add up,
            self-loops are dropped. An operator is returned unchanged, with its own bound of the
            eigenvalues; one with other self-loops than requested is refused.
        edge_weight: ``[num_edges]``, non-negative. If it requires a gradient, the entries of the
            operator have one, and the operator is built anew at every call.
        num_nodes: number of nodes; by default the largest index plus one.
        self_loops: whether to add a loop of weight one to every node, as GCN and GPRGNN do.
        lambda_max: the assumed largest eigenvalue: a number, or ``"estimate"`` (Lanczos).
        symmetrize: whether to add missing directions. An edge that is listed in both directions
            gets the mean of their weights. (default: edges in one direction are refused)
    """
    if isinstance(edge_index, ScaledLaplacian):
        _check_prepared(edge_index, edge_weight, self_loops)
        return edge_index
    check_tensors(edge_index, edge_weight)
    if torch.compiler.is_compiling():
        # A compiler cannot trace the preparation, so it breaks the graph here.
        prepared: ScaledLaplacian = torch.compiler.disable(scaled_laplacian)(
            edge_index, edge_weight, num_nodes, self_loops, lambda_max, symmetrize
        )
        return prepared
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    n = num_nodes
    if edge_weight is not None and edge_weight.requires_grad and torch.is_grad_enabled():
        return _differentiable(edge_index, edge_weight, n, self_loops, lambda_max, symmetrize)
    return _CACHE.lookup(
        (edge_index, edge_weight),
        (n, self_loops, lambda_max, symmetrize),
        lambda: _build(edge_index, edge_weight, n, self_loops, lambda_max, symmetrize),
    )


def derived_laplacian(
    graph: Tensor | ScaledLaplacian,
    edge_weight: Tensor | None,
    num_nodes: int,
    self_loops: bool = False,
) -> ScaledLaplacian:
    """Return the scaled Laplacian for a model that reads a graph with and without self-loops.

    Unlike in :func:`scaled_laplacian`, an operator with other self-loops is converted, see
    :meth:`ScaledLaplacian.with_self_loops`.
    """
    if isinstance(graph, ScaledLaplacian):
        graph = graph.with_self_loops(self_loops)
    return scaled_laplacian(graph, edge_weight, num_nodes, self_loops)


def _check_prepared(
    operator: ScaledLaplacian, edge_weight: Tensor | None, self_loops: bool
) -> None:
    """Refuse arguments that a prepared operator does not have."""
    if edge_weight is not None:
        raise UserError(
            "the graph is a prepared operator, which has its own edge weights: pass edge_weight to "
            "scaled_laplacian() instead"
        )
    if operator.self_loops is not None and operator.self_loops != self_loops:
        raise UserError(
            f"the graph is an operator prepared with self_loops={operator.self_loops}, but "
            f"self_loops={self_loops} is needed: pass self_loops={self_loops} to "
            "scaled_laplacian(), or pass the edges"
        )


def _build(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    n: int,
    self_loops: bool,
    lambda_max: LambdaMax,
    symmetrize: bool,
) -> ScaledLaplacian:
    check_edges(edge_index, edge_weight, n)
    check_lambda_max(lambda_max)
    key, weight = _entries(edge_index, edge_weight, n)
    if symmetrize:
        key, weight = _symmetrized(key, weight, n)
    else:
        check_symmetric(key, weight, n)
    if self_loops:
        key = torch.cat([key, torch.arange(n, device=key.device) * (n + 1)])
        if weight is None:
            key = torch.unique(key)  # sorts; there are no loops yet that could be merged
        else:
            key, order = torch.sort(key)
            weight = torch.cat([weight, weight.new_ones(n)])[order]
    # The keys are sorted by row, so row i starts at the first key that is at least i · n.
    indptr = torch.searchsorted(key, torch.arange(n + 1, device=key.device) * n)
    # CSR converts the indices to int32 where they fit; its values are not used.
    pattern = CSR(indptr, key % max(n, 1), key, (n, n))
    if weight is None:
        degree = indptr.diff().double()
    else:
        # Unlike index_add, segment_reduce sums in a fixed order on a GPU.
        degree = torch.segment_reduce(weight, "sum", offsets=indptr, initial=0.0)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    operator = ScaledLaplacian(
        pattern.indptr, pattern.indices, weight, scale, self_loops=self_loops
    )
    if lambda_max == "estimate":
        lambda_max = largest_eigenvalue(operator.adjacency(torch.float64))
    operator.lambda_max = float(lambda_max)
    return operator


def _entries(
    edge_index: Tensor, edge_weight: Tensor | None, n: int
) -> tuple[Tensor, Tensor | None]:
    """Return the distinct entries of A as sorted keys ``row · n + column``, and their values.

    The values are ``None`` if all are one. An entry is one number, because the edges of a large
    graph determine the peak memory.
    """
    keep = edge_index[0] != edge_index[1]
    if not bool(keep.all()):
        edge_index = edge_index[:, keep]
        edge_weight = None if edge_weight is None else edge_weight[keep]
    if edge_weight is None:
        key = edge_index[0].long() * n + edge_index[1]
        distinct = torch.unique(key)
        if distinct.numel() == key.numel():
            return distinct, None
        distinct, counts = torch.unique(key, return_counts=True)
        return distinct, counts.double()
    # Keys of large graphs exceed int32.
    index, weight = coalesce(edge_index.long(), edge_weight.detach().double(), num_nodes=n)
    return index[0] * n + index[1], None if bool((weight == 1).all()) else weight


def _symmetrized(key: Tensor, weight: Tensor | None, n: int) -> tuple[Tensor, Tensor | None]:
    """Return the entries with both directions, weighted by the mean of those that are listed."""
    both = torch.cat([key, mirrored_keys(key, n)])
    if weight is None:
        return torch.unique(both), None
    distinct, entry = torch.unique(both, return_inverse=True)
    total = weight.new_zeros(distinct.numel()).index_add_(0, entry, weight.repeat(2))
    return distinct, total / torch.bincount(entry, minlength=distinct.numel())


def _differentiable(
    edge_index: Tensor,
    edge_weight: Tensor,
    n: int,
    self_loops: bool,
    lambda_max: LambdaMax,
    symmetrize: bool,
) -> ScaledLaplacian:
    """Return the operator with entries that have a gradient for the weights of the edges."""
    check_edges(edge_index, edge_weight, n)
    check_lambda_max(lambda_max)
    if isinstance(lambda_max, str):
        refuse_estimate()
    weight, scale, entries = differentiable_entries(
        edge_index, edge_weight, n, self_loops, symmetrize
    )
    pattern = entries.pattern
    operator = ScaledLaplacian(
        pattern.indptr, pattern.indices, weight, scale, lambda_max, self_loops
    )
    operator.entries = entries
    return operator
