"""Validation: every graph, from any source, passes :func:`check_graph`.

What can be fixed is fixed and reported in ``data.notes``; everything else raises a
:class:`~nfgnn.errors.UserError` that names the place. The result has

- ``x``: float32 [n, f], dense or ``torch.sparse_csr`` when mostly zeros; finite, not scaled.
- ``edge_index``: int64 [2, 2E], both directions, sorted by row then column, no duplicates or loops.
- ``edge_weight``: optional; float32 > 0, symmetric.
- ``y``: int64 [n] in 0 … C-1, -1 for unlabelled nodes; also ``class_names`` and ``num_classes``.
- ``train_mask``, ``val_mask``, ``test_mask``: optional; bool [n] or [n, S], disjoint, labelled
  only.
- ``name``, ``metric`` and ``notes``; ``node_ids`` and ``feature_names`` if the source has them;
  ``feature_encoding`` if it is a table with gaps, text or dates.

:func:`nfgnn.data.load_dataset` adds ``registered = True`` to a graph that it loads by its name, and
``registered_name`` to one that it loads by its name or that has the content of a data set.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.edges import check_weights, undirected
from nfgnn.data.features import check_features, check_sparse, degree_features
from nfgnn.data.labels import UNLABELLED, encode_labels
from nfgnn.data.memory import require_memory
from nfgnn.data.messages import counted, few, first_line
from nfgnn.data.names import names_of
from nfgnn.data.readers.feature_columns import TableEncoding
from nfgnn.errors import UserError

MASKS = ("train_mask", "val_mask", "test_mask")
_CHECKED = {"x", "edge_index", "edge_weight", "y", *MASKS}
_BYTES_PER_NODE = 64  # for labels, row pointers and degrees during validation
_DESCRIPTION = {"class_names", "num_classes", "name", "registered_name", "metric", "notes"}


def check_graph(
    data: Data,
    *,
    name: str | None = None,
    metric: str = "auto",
    need_labels: bool = True,
    where: str | None = None,
    sorted_edges: bool = False,
) -> Data:
    """Validate a graph and fix what can be fixed.

    Args:
        data: the graph; it is not modified.
        name: name of the graph, by default ``data.name``.
        metric: the official metric of predictions, unless ``data.metric`` is set; ``"auto"`` for a
            graph without one.
        need_labels: refuse a graph without two classes; ``False`` for a graph to predict on.
        where: the place that error messages name, by default the graph's name.
        sorted_edges: the edges are already undirected, sorted and unique, and must not be copied
            because they are a memory map.
    """
    given = data.get("name")
    if not name and isinstance(given, str):
        name = given
    name = str(name or "graph")
    where = where or name
    _refuse_tensors_without_values(data, where)
    num_nodes = _count_nodes(data, where)
    if need_labels and data.get("y") is None:
        raise _no_labels(where)
    if not sorted_edges:
        _require_memory(data, num_nodes, where)
    edges = _check_edges(data, num_nodes, where)
    weight = _check_weights(data, edges.shape[1], where)
    notes: list[str] = []
    if sorted_edges:
        edge_index = data.edge_index
    else:
        edges, weight, notes = undirected(edges[0], edges[1], num_nodes, weight)
        edge_index = torch.from_numpy(edges)
    x = _check_features(data, edge_index, num_nodes, notes, where)
    y, class_names = _check_labels(data, num_nodes, notes, where)
    notes += _unusual_nodes(edge_index, y, num_nodes)
    if need_labels:
        _require_two_classes(y, where)
    checked = Data(x=x, edge_index=edge_index, y=y)
    if weight is not None:
        checked.edge_weight = torch.from_numpy(weight)
    for key, mask in _check_masks(data, y, class_names, notes, where).items():
        checked[key] = mask
    # Attributes that are not checked are kept if they have one value per node.
    for key, value in data.to_dict().items():
        if key not in _CHECKED | _DESCRIPTION and _is_per_node(key, value, num_nodes):
            checked[key] = names_of(data, key) if key == "feature_names" else value
    checked.class_names = class_names
    checked.num_classes = len(class_names)
    checked.name = name
    checked.metric = data.get("metric") or metric
    earlier = list(data.get("notes") or [])
    checked.notes = earlier + [note for note in notes if note not in earlier]
    return checked


def _as_array(value: Any, key: str, where: str, kinds: str = "biuf") -> np.ndarray:
    """Return ``value`` as an array of one of the ``kinds`` of NumPy types."""
    if isinstance(value, Tensor) and value.layout != torch.strided:
        check_sparse(value, f"{where}: `{key}`")
        require_memory(value.numel() * value.element_size(), f"{where}: `{key}`")
    try:
        array = _tensor_to_array(value) if isinstance(value, Tensor) else np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = first_line(error, 120)
        raise UserError(
            f"{where}: `{key}` cannot be read as an array: {reason}; use numbers in one array."
        ) from None
    if array.dtype.kind not in kinds:
        raise UserError(f"{where}: `{key}` has type {array.dtype}; numbers are required.")
    return array


def _tensor_to_array(tensor: Tensor) -> np.ndarray:
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype == torch.bfloat16:  # NumPy has no such type
        tensor = tensor.float()
    array: np.ndarray = tensor.numpy(force=True)
    return array


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, tensor or sparse matrix, or the length of a list."""
    if isinstance(value, list | tuple):
        return (len(value),)
    return () if value is None else tuple(np.shape(value))


def _is_per_node(key: str, value: Any, num_nodes: int) -> bool:
    if key == "feature_names":
        return not isinstance(value, Tensor) and len(_shape(value)) == 1
    if key == "feature_encoding":
        return isinstance(value, TableEncoding)
    return key != "edge_attr" and _shape(value)[:1] == (num_nodes,)


def _refuse_tensors_without_values(data: Data, where: str) -> None:
    """Refuse nested tensors, which have no shape, and those on "meta", which have no values."""
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor) and (value.is_nested or value.is_meta):
            kind = "nested" if value.is_nested else "meta"
            raise UserError(f"{where}: `{key}` is a {kind} tensor; use one array of numbers.")


def _count_nodes(data: Data, where: str) -> int:
    """Return the stated number of nodes, else the number of features, else of labels."""
    stated = data.get("num_nodes")
    if stated is None:
        shapes = [_shape(data.get(key)) for key in ("x", "y")]
        num_nodes = next((shape[0] for shape in shapes if shape), 0)
    elif isinstance(stated, int | np.integer) and not isinstance(stated, bool):
        num_nodes = int(stated)
    else:
        raise UserError(
            f"{where}: `num_nodes` is a {type(stated).__name__}; a whole number is required."
        )
    if num_nodes <= 0:
        raise UserError(f"{where}: the graph has no nodes; add at least one.")
    # Compared before anything is allocated for the stated number.
    num_features = (*_shape(data.get("x")), num_nodes)[0]
    num_labels = (*_shape(data.get("y")), num_nodes)[0]
    if num_features != num_nodes:
        raise UserError(
            f"{where}: there are features for {num_features:,} nodes, "
            f"but the graph has {num_nodes:,} nodes; give every node one row."
        )
    if num_labels != num_nodes:
        raise UserError(
            f"{where}: there are {num_labels:,} labels for {num_nodes:,} nodes; give every node "
            "one label, -1 if it is unknown."
        )
    return num_nodes


def _require_memory(data: Data, num_nodes: int, where: str) -> None:
    """Refuse a graph that would not fit into memory once it has been validated."""
    needed = _BYTES_PER_NODE * num_nodes
    for value in data.to_dict().values():
        # A tensor with stride 0 takes a few bytes until it is copied.
        if isinstance(value, Tensor) and value.layout == torch.strided:
            stored = value.untyped_storage().nbytes()
            copied = value.numel() * value.element_size()
            needed += 2 * copied if copied > stored else 0
    require_memory(needed, where)


def _check_edges(data: Data, num_nodes: int, where: str) -> np.ndarray:
    if data.get("edge_index") is None:
        raise UserError(
            f"{where}: the graph has no `edge_index`; node numbers [2, edges] are required."
        )
    edges = _as_array(data.get("edge_index"), "edge_index", where)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise UserError(
            f"{where}: `edge_index` has shape {list(edges.shape)}; [2, edges] is required."
        )
    if edges.size == 0:
        return edges
    if edges.dtype.kind not in "iu":
        raise UserError(
            f"{where}: `edge_index` has type {edges.dtype}; whole node numbers are required."
        )
    if edges.min() < 0 or edges.max() >= num_nodes:
        end, edge = np.argwhere((edges < 0) | (edges >= num_nodes))[0]
        raise UserError(
            f"{where}: edge {edge} (counted from 0) contains node {edges[end, edge]}, but the "
            f"{num_nodes:,} nodes are numbered 0 … {num_nodes - 1}; correct the edge."
        )
    return edges


def _check_weights(data: Data, num_edges: int, where: str) -> np.ndarray | None:
    if data.get("edge_weight") is None:
        return None
    weight = _as_array(data.get("edge_weight"), "edge_weight", where)
    return check_weights(weight, num_edges, where)


def _check_features(
    data: Data, edge_index: Tensor, num_nodes: int, notes: list[str], where: str
) -> Tensor:
    x = data.get("x")
    if x is None or (len(_shape(x)) == 2 and _shape(x)[1] == 0):
        notes.append("no features: used a constant and log(1 + degree)")
        return degree_features(edge_index, num_nodes)
    return check_features(x, where)


def _check_labels(
    data: Data, num_nodes: int, notes: list[str], where: str
) -> tuple[Tensor, list[str]]:
    names = data.get("class_names")
    if names is not None and len(_shape(names)) != 1:
        raise UserError(f"{where}: `class_names` must be a list of names.")
    if names is not None and len(set(map(str, names))) < len(names):
        raise UserError(
            f"{where}: two classes have the same name; make the names in `class_names` unique."
        )
    if data.get("y") is None:
        class_names = [] if names is None else [str(name) for name in names]
        return torch.full((num_nodes,), UNLABELLED), class_names
    labels = _as_array(data.get("y"), "y", where, "biufUSO")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise UserError(
            f"{where}: `y` has shape {list(labels.shape)}; "
            f"one class per node, shape [{num_nodes}], is required."
        )
    is_encoded = (
        names is not None
        and labels.dtype.kind in "iu"
        and labels.min() >= UNLABELLED
        and labels.max() < len(names)
    )
    if is_encoded:
        return torch.from_numpy(labels.astype(np.int64)), [str(name) for name in names]
    y, found = encode_labels(labels, where)
    if labels.dtype.kind in "iuf" and found != [str(c) for c in range(len(found))]:
        notes.append(f"renumbered the labels {few(found)} as 0 … {len(found) - 1}")
    return torch.from_numpy(y), found


def _require_two_classes(y: Tensor, where: str) -> None:
    num_present = int((torch.bincount(y + 1)[1:] > 0).sum())
    if num_present == 0:
        raise _no_labels(where)
    if num_present == 1:
        raise UserError(
            f"{where}: all labelled nodes are of one class; at least two classes are required "
            "(-1 means unlabelled)."
        )


def _no_labels(where: str) -> UserError:
    return UserError(
        f"{where}: no node has a label (-1 and empty mean unlabelled); training needs labels. If "
        "the column of labels has another name, pass --column label=NAME."
    )


def _unusual_nodes(edge_index: Tensor, y: Tensor, num_nodes: int) -> list[str]:
    """Return notes about nodes without edges or labels."""
    rows = edge_index[0].numpy()
    # The rows are sorted, so every change is another node.
    num_connected = int(np.count_nonzero(rows[1:] != rows[:-1])) + 1
    if len(rows) == 0:
        return ["no edges: every node is classified by its own features"]
    notes = []
    for count, noun in (
        (num_nodes - num_connected, "edge"),
        (int((y == UNLABELLED).sum()), "label"),
    ):
        if count:
            notes.append(f"{counted(count, 'node')} {'have' if count > 1 else 'has'} no {noun}")
    return notes


def _check_masks(
    data: Data, y: Tensor, class_names: list[str], notes: list[str], where: str
) -> dict[str, Tensor]:
    """Return the masks as boolean tensors of one shape: disjoint, and labelled nodes only."""
    masks = {}
    for key in MASKS:
        if data.get(key) is not None:
            masks[key] = _boolean(key, data.get(key), len(y), where)
    if not masks:
        return masks
    if len({mask.shape for mask in masks.values()}) > 1:
        shapes = ", ".join(f"{key} {list(mask.shape)}" for key, mask in masks.items())
        raise UserError(
            f"{where}: the masks differ in shape: {shapes}; use the same shape for all of them."
        )
    times = torch.stack(list(masks.values())).sum(dim=0)
    if times.numel() == 0:
        raise UserError(
            f"{where}: the masks have no values, shape {list(times.shape)}; remove them, or save "
            "one column per split."
        )
    if int(times.max()) > 1:
        node = int((times > 1).nonzero()[0, 0])
        raise UserError(
            f"{where}: node {node} is in more than one of train, val and test; "
            "these sets must be disjoint."
        )
    _drop_unlabelled(masks, y, notes)
    if "train_mask" in masks:
        _note_unseen_classes(masks["train_mask"], y, class_names, notes)
    return masks


def _boolean(key: str, value: object, num_nodes: int, where: str) -> Tensor:
    mask = _as_array(value, key, where)
    if mask.ndim not in (1, 2) or len(mask) != num_nodes:
        raise UserError(
            f"{where}: `{key}` has shape {list(mask.shape)}; "
            f"[{num_nodes}] or [{num_nodes}, splits] is required."
        )
    if mask.dtype != bool and not ((mask == 0) | (mask == 1)).all():
        raise UserError(f"{where}: `{key}` must contain only true and false.")
    return torch.from_numpy(np.array(mask, dtype=bool))


def _drop_unlabelled(masks: dict[str, Tensor], y: Tensor, notes: list[str]) -> None:
    num_dropped = 0
    for key, mask in masks.items():
        labelled = y != UNLABELLED
        if mask.dim() == 2:
            labelled = labelled[:, None]
        num_dropped += int((mask & ~labelled).reshape(len(y), -1).any(dim=1).sum())
        masks[key] = mask & labelled
    if num_dropped:
        notes.append(f"removed {counted(num_dropped, 'unlabelled node')} from train, val and test")


def _note_unseen_classes(
    train_mask: Tensor, y: Tensor, class_names: list[str], notes: list[str]
) -> None:
    present = set(y[y != UNLABELLED].tolist())
    unseen: set[int] = set()
    for split in train_mask.reshape(len(y), -1).unbind(1):
        unseen |= present - set(y[split].tolist())
    if unseen:
        names = few([class_names[c] for c in sorted(unseen)])
        notes.append(f"some split has no training node of class {names}")
