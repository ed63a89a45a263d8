"""A graph that exceeds the memory: read in blocks, never as a whole."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from nfgnn.data.external_sort import EdgeBlocks, Report, csr_on_disk
from nfgnn.errors import UserError


@dataclass(frozen=True)
class LargeGraph:
    """A graph that is read in blocks of nodes and of edges.

    Only labels, masks and ids that are not row numbers, a few bytes per node, are in memory.
    :func:`nfgnn.data.open_large` opens one.
    """

    name: str
    source: str
    """The folder or file of the graph."""
    fingerprint: str
    """Changes with the files."""
    num_nodes: int
    num_features: int
    num_edges: int
    """Number of listed edges, before they are made undirected and unique."""
    y: np.ndarray
    """int64 [n], -1 for unlabelled nodes."""
    class_names: list[str]
    edges: EdgeBlocks
    features: Callable[[int], Iterator[np.ndarray]]
    """Iterate over the features, float32, in blocks of at most the given number of rows."""
    weighted: bool = False
    """Whether the blocks of edges contain weights."""
    sparse_features: bool = False
    """Whether the features would be a sparse matrix in memory, which decides how they round."""
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    metric: str = "auto"
    registered_name: str = ""
    """The data set that it was opened as; empty for a graph of the user."""
    feature_names: list[str] | None = None
    node_ids: pa.Array | None = None
    """The users' ids of the nodes; ``None`` if they are the numbers of the nodes."""
    feature_encoding: None = None
    """All features of such a graph are numbers."""

    @property
    def num_entries(self) -> int:
        """An upper bound of the entries of the adjacency matrix."""
        return 2 * self.num_edges

    def write_pattern(self, folder: Path, memory: int, self_loops: bool, report: Report) -> None:
        """Write the adjacency matrix in compressed rows: see :func:`nfgnn.data.csr_on_disk`."""
        try:
            csr_on_disk(
                self.edges,
                self.num_nodes,
                folder,
                memory=memory,
                self_loops=self_loops,
                weighted=self.weighted,
                report=report,
            )
        except UserError as error:
            raise UserError(f"{self.source}: {error}") from None
