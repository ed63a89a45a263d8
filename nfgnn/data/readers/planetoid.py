"""Planetoid's raw files (Cora, CiteSeer, PubMed), read without running code that they contain.

``ind.NAME.{x,tx,allx,y,ty,ally,graph}`` are Python 2 pickles, and a pickle may call any function
while it is loaded. PyTorch Geometric unpickles whatever it finds, so its loader is never used on
these files. :mod:`~nfgnn.data.readers.restricted_pickle` reads them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, index_to_mask, remove_self_loops

from nfgnn.data.labels import UNLABELLED
from nfgnn.data.messages import first_line
from nfgnn.data.readers.csr_parts import compact_csr
from nfgnn.data.readers.restricted_pickle import PickledArray, PickledCsrMatrix, unpickle
from nfgnn.errors import UserError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VALIDATION = 500
_AGAIN = "download the file again."


def read_planetoid(folder: Path, files: tuple[str, ...]) -> Data:
    """Read a graph in the Planetoid layout with its public split.

    ``allx`` and ``ally`` are the features and one-hot labels of the first nodes. The first
    ``len(y)`` of them are the training nodes, the following 500 the validation nodes. Row ``i`` of
    ``tx`` and ``ty`` belongs to the node in line ``i`` of ``test.index``. Nodes that are in neither
    (15 in CiteSeer) get zeros as features and no label.

    Args:
        folder: the folder of the files.
        files: their names, in the order of :data:`PARTS`.
    """
    paths = {part: folder / file for part, file in zip(PARTS, files)}
    x = _read_features(paths["x"])
    tx = _read_features(paths["tx"])
    allx = _read_features(paths["allx"])
    num_train = len(_read_labels(paths["y"]))
    ty = _read_labels(paths["ty"])
    ally = _read_labels(paths["ally"])
    neighbours = _read_neighbours(paths["graph"])
    test = _read_test_index(paths["test.index"], len(ally), len(ty), len(neighbours))
    num_nodes = max(len(ally) + len(ty), int(test.max()) + 1)
    if allx.shape[0] != len(ally) or tx.shape[0] != len(ty) or allx.shape[1] != tx.shape[1]:
        raise UserError(
            f"{paths['allx']}: features {allx.shape} and {tx.shape} do not fit {len(ally)} and "
            f"{len(ty)} labels; {_AGAIN}"
        )
    if x.shape[0] != num_train or num_train + NUM_VALIDATION > num_nodes:
        raise UserError(
            f"{paths['y']}: {x.shape[0]} features of {num_train} training nodes and "
            f"{NUM_VALIDATION} validation nodes do not fit {num_nodes} nodes; {_AGAIN}"
        )
    row_nodes = np.concatenate([np.arange(len(ally)), test])  # the node of every stored row
    y = np.full(num_nodes, UNLABELLED)
    y[row_nodes] = np.concatenate([ally, ty])
    data = Data(
        x=_move_rows(sparse.vstack([allx, tx]), row_nodes, num_nodes),
        edge_index=_edge_index(neighbours, num_nodes, paths["graph"]),
        y=torch.from_numpy(y),
    )
    validation = torch.arange(num_train, num_train + NUM_VALIDATION)
    data.train_mask = index_to_mask(torch.arange(num_train), num_nodes)
    data.val_mask = index_to_mask(validation, num_nodes)
    data.test_mask = index_to_mask(torch.from_numpy(test), num_nodes)
    return data


def _unpickle(path: Path) -> Any:
    """Return the content of a file: an array, a CSR matrix, or a dictionary."""
    try:
        with path.open("rb") as file:
            content = unpickle(file)
        if isinstance(content, PickledArray):
            return content.to_numpy()
        if isinstance(content, PickledCsrMatrix):
            return content.to_scipy(str(path))
        if isinstance(content, dict):
            return content
        raise ValueError(f"it is a {type(content).__name__}")
    except UserError:
        raise
    except Exception as error:  # a damaged or hostile pickle can fail in any way
        raise UserError(
            f"{path}: cannot be read as a Planetoid file: {first_line(error)}. Only arrays, CSR "
            f"matrices and dictionaries are accepted, and no code was run; {_AGAIN}"
        ) from None


def _read_features(path: Path) -> Any:
    content = _unpickle(path)
    if isinstance(content, dict) or content.ndim != 2:
        raise UserError(f"{path}: a matrix [nodes, features] is required; {_AGAIN}")
    return compact_csr(content)


def _read_labels(path: Path) -> np.ndarray:
    """Return the class of every row of a one-hot matrix."""
    content = _unpickle(path)
    if not isinstance(content, np.ndarray) or content.ndim != 2 or content.size == 0:
        raise UserError(f"{path}: a matrix [nodes, classes] is required; {_AGAIN}")
    classes: np.ndarray = content.argmax(axis=1)
    return classes


def _read_neighbours(path: Path) -> dict[int, list[int]]:
    content = _unpickle(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: a dictionary of neighbours is required; {_AGAIN}")
    return content


def _read_test_index(path: Path, first: int, count: int, num_listed: int) -> np.ndarray:
    """Return the test nodes: ``count`` different nodes that follow the ``first`` nodes.

    In CiteSeer they have gaps, and the graph lists more nodes than there are labels.
    """
    try:
        nodes = np.array(path.read_text().split(), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path}: cannot be read as node numbers: {error}; {_AGAIN}") from None
    last = max(first + count, num_listed) - 1
    unique = len(np.unique(nodes)) == len(nodes) == count
    if not unique or nodes.min() < first or nodes.max() > last:
        raise UserError(
            f"{path}: {count} different node numbers from {first} to {last} are required; {_AGAIN}"
        )
    return nodes


def _move_rows(matrix: Any, nodes: np.ndarray, num_nodes: int) -> Any:
    """Move row ``i`` to row ``nodes[i]`` of a matrix with ``num_nodes`` rows."""
    entries = matrix.tocoo()
    places = (nodes[entries.row], entries.col)
    return sparse.csr_array((entries.data, places), shape=(num_nodes, matrix.shape[1]))


def _edge_index(neighbours: dict[int, list[int]], num_nodes: int, path: Path) -> torch.Tensor:
    """Return the edges of a dictionary of neighbours, without self-loops and duplicates."""
    try:
        degree = [len(nodes) for nodes in neighbours.values()]
        source = np.repeat(np.fromiter(neighbours, np.int64, len(neighbours)), degree)
        all_neighbours = (node for nodes in neighbours.values() for node in nodes)
        target = np.fromiter(all_neighbours, np.int64, sum(degree))
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"{path}: the neighbours of a node must be a list of node numbers; {_AGAIN}"
        ) from None
    edges = np.stack([source, target])
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        raise UserError(f"{path}: an edge has a node outside 0 … {num_nodes - 1}; {_AGAIN}")
    edge_index, _ = remove_self_loops(torch.from_numpy(edges))
    edge_index = coalesce(edge_index, num_nodes=num_nodes, sort_by_row=False)
    return torch.as_tensor(edge_index)
