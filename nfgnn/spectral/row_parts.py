"""What a row can hold besides its terms: hashed neighbours, degree and agreement."""

from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.spectral.laplacian import ScaledLaplacian
from nfgnn.spectral.neighbour_agreement import neighbour_cosine
from nfgnn.spectral.neighbour_hashing import adjacency_sketch
from nfgnn.spectral.neighbour_lists import NeighbourLists
from nfgnn.spectral.two_hop_hashing import two_hop_sketch


@dataclass(frozen=True)
class RowParts:
    """The parts of a row that follow the terms, in this order. By default there are none.

    Args:
        sketch: columns of hashed neighbours (:mod:`nfgnn.spectral.neighbour_hashing`).
        two_hop: columns of hashed two-hop neighbours (:mod:`nfgnn.spectral.two_hop_hashing`).
        degree: whether there is a column log(1 + number of neighbours).
        agreement: whether there is a column with the mean cosine between the features of a node
            and those of its neighbours (:mod:`nfgnn.spectral.neighbour_agreement`).
    """

    sketch: int = 0
    two_hop: int = 0
    degree: bool = False
    agreement: bool = False

    @property
    def columns(self) -> dict[str, int]:
        """The number of columns of every part that there is, by name."""
        counts = {
            "sketch": self.sketch,
            "two_hop": self.two_hop,
            "degree": int(self.degree),
            "agreement": int(self.agreement),
        }
        return {name: count for name, count in counts.items() if count}

    @property
    def width(self) -> int:
        """The number of columns of all parts."""
        return sum(self.columns.values())

    @property
    def hashed(self) -> bool:
        """Whether a part depends on the numbers of the nodes."""
        return self.sketch > 0 or self.two_hop > 0

    def missing_in(self, other: "RowParts") -> list[str]:
        """Return the names of the parts that other rows do not have in the same form."""
        found = other.columns
        return [name for name, count in self.columns.items() if found.get(name) != count]


def parts_of_graph(parts: RowParts, x: Tensor, graph: ScaledLaplacian) -> Tensor:
    """Return the parts of all nodes of a graph in memory, float32 ``[n, parts.width]``."""
    nodes = torch.arange(graph.num_nodes)
    lists = NeighbourLists.of(nodes, graph.indptr, graph.indices)
    found = [torch.empty(len(nodes), 0)]
    if parts.sketch:
        found.append(adjacency_sketch(lists.indptr, lists.indices, parts.sketch, nodes))
    if parts.two_hop:
        found.append(two_hop_sketch(lists, parts.two_hop))
    if parts.degree:
        found.append(log_degree(lists)[:, None])
    if parts.agreement:
        found.append(neighbour_cosine(lists, x)[:, None].float())
    return torch.cat(found, 1)


def log_degree(lists: NeighbourLists) -> Tensor:
    """Return log(1 + number of neighbours) of some nodes, float32 ``[b]``."""
    return lists.counts.double().log1p().float()
