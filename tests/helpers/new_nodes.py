"""Random graphs with new nodes, and the terms of the whole extended graph as the oracle."""

from dataclasses import dataclass

import numpy as np
import torch
from conftest import random_graph
from hypothesis import strategies as st
from torch import Tensor

from nfgnn.spectral import (
    BASES,
    Basis,
    ScaledLaplacian,
    polynomial_terms,
    resolve_basis,
    scaled_laplacian,
)
from nfgnn.store import NewNodes, StoredGraph


@dataclass(frozen=True)
class GraphWithNewNodes:
    """An existing graph, new nodes, and how terms are computed."""

    x: Tensor
    edge_index: Tensor
    weight: Tensor | None
    new: NewNodes
    basis: Basis
    K: int
    self_loops: bool = False
    lambda_max: float = 2.0

    def operator(self) -> ScaledLaplacian:
        """Return the operator of the existing graph."""
        return scaled_laplacian(
            self.edge_index, self.weight, len(self.x), self.self_loops, self.lambda_max
        )

    def stored_terms(self) -> Tensor:
        """Return the terms of the existing graph, ``[n, K + 1, features]``."""
        return polynomial_terms(self.x, self.operator(), self.basis, self.K).transpose(0, 1)

    def stored_graph(self) -> StoredGraph:
        """Return the existing graph as a store holds it."""
        operator = self.operator()
        weight = None if operator.weight is None else operator.weight.numpy()
        indptr = operator.indptr.numpy().astype(np.int64)
        indices = operator.indices.numpy()
        scale = operator.scale.numpy()
        return StoredGraph(indptr, indices, scale, weight, self.self_loops, "graph")

    def expected_terms(self) -> Tensor:
        """Return the rows of the new nodes, from all features and edges in float64."""
        n = len(self.x)
        source, target, added = self.new.directed_edges(n)
        both = torch.cat([self.edge_index, torch.stack([source, target])], 1)
        weight = None if self.weight is None else torch.cat([self.weight.double(), added])
        total = n + len(self.new.x)
        operator = scaled_laplacian(both, weight, total, self.self_loops, self.lambda_max)
        everything = torch.cat([self.x, self.new.x]).double()
        terms = polynomial_terms(everything, operator, self.basis, self.K)
        return terms[:, n:].transpose(0, 1).float()


@st.composite
def graphs_with_new_nodes(
    draw: st.DrawFn, max_new: int, max_edges: int, max_K: int, min_lambda: float
) -> GraphWithNewNodes:
    """Draw a sparse graph of several components; new nodes are connected to it and each other."""
    n = draw(st.integers(2, 25))
    m = draw(st.integers(1, max_new))
    edges = draw(st.integers(0, max_edges))
    seed = draw(st.integers(0, 1000))
    weighted = draw(st.booleans())
    generator = torch.Generator().manual_seed(seed)
    known = random_graph(n, 0.15, seed)
    x = torch.randn(n + m, 3, generator=generator)
    sources = torch.randint(0, n + m, (edges,), generator=generator)
    targets = n + torch.randint(0, m, (edges,), generator=generator)
    ends = torch.stack([sources, targets])
    weight = added = None
    if weighted:
        # The weight of an edge that is listed twice would be ambiguous.
        ends = torch.unique(ends.sort(0).values, dim=1)
        weight = 0.5 + (known[0] * known[1] % 7).float()
        added = torch.rand(ends.shape[1], generator=generator) + 0.1
    return GraphWithNewNodes(
        x[:n],
        known,
        weight,
        NewNodes(x[n:], ends, added),
        resolve_basis(draw(st.sampled_from(sorted(BASES)))),
        draw(st.integers(0, max_K)),
        draw(st.booleans()),
        draw(st.sampled_from([2.0, min_lambda])),
    )
