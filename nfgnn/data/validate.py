"""The one gate: every graph, from wherever it comes, passes through :func:`check_graph`.

What can be mended is mended, and ``data.notes`` says so in one line each; what cannot be is refused with a
:class:`~nfgnn.errors.UserError` that says where. What comes out can be relied on:

- ``x``: float32 [n, f], dense or ``torch.sparse_csr`` when mostly zeros; finite, raw values.
- ``edge_index``: int64 [2, 2E], both directions, sorted by row then column, no duplicates, no self-loops.
- ``edge_weight``: optional; float32 > 0, symmetric.
- ``y``: int64 [n] in 0 … C-1, -1 where there is no label; ``class_names`` and ``num_classes`` beside it.
- ``train_mask``, ``val_mask``, ``test_mask``: optional; bool [n] or [n, S], disjoint, labelled nodes only.
- ``name``, ``metric`` (accuracy or roc_auc) and ``notes``; ``node_ids`` and ``feature_names`` where known.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.arrays import as_array
from nfgnn.data.edges import undirected
from nfgnn.data.features import check_features, degree_features
from nfgnn.data.labels import UNLABELLED, encode_labels, few
from nfgnn.data.masks import MASKS, check_masks
from nfgnn.errors import UserError

_OURS = {
    "x",
    "edge_index",
    "edge_weight",
    "y",
    "class_names",
    "num_classes",
    "name",
    "metric",
    "notes",
    *MASKS,
}


def check_graph(
    data: Data,
    *,
    name: str | None = None,
    metric: str = "accuracy",
    need_labels: bool = True,
    where: str | None = None,
    sorted_edges: bool = False,
) -> Data:
    """Check and mend a graph.

    Args:
        data: the graph; it is not changed.
        name: name of the graph, else ``data.name``.
        metric: what predictions are scored by, unless ``data.metric`` says.
        need_labels: refuse a graph without two classes; ``False`` for a graph that is only predicted on.
        where: what error messages name, by default the graph's name.
        sorted_edges: the links are two-way, sorted and unique already (a memory map that must not be copied).
    """
    name = str(name or data.get("name") or "graph")
    where = where or name
    n = _count_nodes(data, where)
    source, target, weight = _edges(data, n, where)
    notes: list[str] = []
    if sorted_edges:
        edge_index, weights = data.edge_index, weight
    else:
        links, weights, notes = undirected(source, target, n, weight)
        edge_index = torch.from_numpy(links)
    x = _features(data, edge_index, n, notes, where)
    y, class_names = _labels(data, n, notes, where)
    notes += _odd_nodes(edge_index, y, n)
    if need_labels:
        _require_classes(y, where)
    checked = Data(x=x, edge_index=edge_index, y=y)
    if weights is not None:
        checked.edge_weight = torch.from_numpy(weights)
    for key, mask in check_masks(data, y, class_names, notes, where).items():
        checked[key] = mask
    for (
        key,
        value,
    ) in data.to_dict().items():  # what we know nothing about stays, if it belongs to the nodes
        if key not in _OURS and _per_node(key, value, n):
            checked[key] = value
    checked.class_names, checked.num_classes = class_names, len(class_names)
    checked.name, checked.metric = name, data.get("metric") or metric
    before = list(data.get("notes") or [])
    checked.notes = before + [note for note in notes if note not in before]
    return checked


def _per_node(key: str, value: Any, n: int) -> bool:
    if key == "feature_names":
        return isinstance(value, list)
    shape: Any = getattr(value, "shape", (len(value),) if isinstance(value, list) else ())
    return key != "edge_attr" and len(shape) > 0 and shape[0] == n


def _count_nodes(data: Data, where: str) -> int:
    """The number of nodes: as stated, else as many as have features, else labels."""
    stated = data.get("num_nodes")
    if stated is not None:
        if isinstance(stated, bool) or not isinstance(stated, int | np.integer):
            raise UserError(
                f"{where}: `num_nodes` is a {type(stated).__name__}; a whole number is needed."
            )
        n = int(stated)
    else:
        known = [
            value
            for key in ("x", "y")
            if (value := data.get(key)) is not None and not isinstance(value, str)
        ]
        shapes = [
            tuple(v.shape) if hasattr(v, "shape") else (len(v),)
            for v in known
            if hasattr(v, "__len__")
        ]
        n = next((shape[0] for shape in shapes if shape), 0)
    if n == 0:
        raise UserError(f"{where}: the graph has no nodes.")
    return n


def _edges(data: Data, n: int, where: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    edge_index = data.get("edge_index")
    if edge_index is None:
        raise UserError(
            f"{where}: the graph has no `edge_index`; a tensor [2, links] of node numbers is needed."
        )
    links = as_array(edge_index, "edge_index", where)
    if links.ndim != 2 or links.shape[0] != 2:
        raise UserError(
            f"{where}: `edge_index` has shape {list(links.shape)}; [2, links] is needed."
        )
    if links.dtype.kind not in "iu" and links.size:
        raise UserError(
            f"{where}: `edge_index` holds {links.dtype}; whole node numbers are needed."
        )
    outside = (
        (links < 0) | (links >= n) if links.size and (links.min() < 0 or links.max() >= n) else None
    )
    if outside is not None:
        end, link = np.argwhere(outside)[0]
        raise UserError(
            f"{where}: link {link} (counted from 0) names node {links[end, link]}, but the {n:,} nodes are "
            f"numbered 0 … {n - 1}."
        )
    return links[0], links[1], _weights(data.get("edge_weight"), links.shape[1], where)


def _weights(weight: Any, links: int, where: str) -> np.ndarray | None:
    if weight is None:
        return None
    values = as_array(weight, "edge_weight", where).reshape(-1).astype(np.float64)
    if len(values) != links:
        raise UserError(f"{where}: there are {len(values):,} weights for {links:,} links.")
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise UserError(
            f"{where}: the weight of link {row} (counted from 0) is {values[row]}; weights must be positive."
        )
    return values


def _features(data: Data, edge_index: Tensor, n: int, notes: list[str], where: str) -> Tensor:
    x = data.get("x")
    if x is None or (hasattr(x, "shape") and len(x.shape) == 2 and x.shape[1] == 0):
        notes.append("no features: used a constant and log(1 + degree)")
        return degree_features(edge_index, n)
    features = check_features(x, where)
    if features.size(0) != n:
        raise UserError(
            f"{where}: there are features for {features.size(0):,} nodes, but {n:,} nodes."
        )
    return features


def _labels(data: Data, n: int, notes: list[str], where: str) -> tuple[Tensor, list[str]]:
    values, names = data.get("y"), data.get("class_names")
    if values is None:
        return torch.full((n,), UNLABELLED), list(names or [])
    array = as_array(values, "y", where, "biufUSO")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise UserError(
            f"{where}: `y` has shape {list(array.shape)}; one class per node, shape [{n}], is needed."
        )
    if len(array) != n:
        raise UserError(f"{where}: there are {len(array):,} labels for {n:,} nodes.")
    if (
        names is not None
        and array.dtype.kind in "iu"
        and array.min() >= UNLABELLED
        and array.max() < len(names)
    ):
        return torch.from_numpy(array.astype(np.int64)), [str(c) for c in names]
    y, found = encode_labels(array, where)
    if array.dtype.kind in "iuf" and found != [str(c) for c in range(len(found))]:
        notes.append(f"renumbered the labels {few(found)} as 0 … {len(found) - 1}")
    return torch.from_numpy(y), found


def _require_classes(y: Tensor, where: str) -> None:
    present = int((torch.bincount(y + 1)[1:] > 0).sum())
    if present == 0:
        raise UserError(
            f"{where}: no node has a label (-1 and empty mean 'no label'), so there is nothing to learn from."
        )
    if present == 1:
        raise UserError(
            f"{where}: all labelled nodes are of one class; at least two are needed (-1 means 'no label')."
        )


def _odd_nodes(edge_index: Tensor, y: Tensor, n: int) -> list[str]:
    rows = edge_index[0].numpy()  # sorted, so every change is another node
    isolated = n - (np.count_nonzero(rows[1:] != rows[:-1]) + 1 if len(rows) else 0)
    unlabelled = int((y == UNLABELLED).sum())
    if isolated == n:
        return ["no links at all: every node is judged by its own features"]
    return [
        f"{count:,} node{'s have' if count > 1 else ' has'} no {what}"
        for count, what in ((isolated, "link"), (unlabelled, "label"))
        if count
    ]
