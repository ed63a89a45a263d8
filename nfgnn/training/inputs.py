"""What a model is trained on: a graph in memory, or the rows of a store.

``Store.labels()`` returns a :class:`~torch_geometric.data.Data` that carries its store along, so
that both kinds pass through the same functions.
"""

import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.data import (
    FeatureScaling,
    check_feature_names,
    check_features,
    names_of,
    observed_part,
    partition_graph,
    split,
)
from nfgnn.errors import UserError
from nfgnn.nn import Scalable, find_model
from nfgnn.spectral import RowParts, resolve_basis
from nfgnn.store import MemoryRows, RowLoader, RowSource, Store
from nfgnn.tensor_cache import TensorCache
from nfgnn.training.config import RunConfig
from nfgnn.training.masks import MASKS, with_boolean_masks
from nfgnn.training.metrics import AUTO, resolve_metric
from nfgnn.training.minibatch import RowTask

_PARTS = tuple(item.name for item in fields(RowParts))
_STORE_SETTINGS = ("K", "basis", "self_loops", "lambda_max", *_PARTS)
"""Settings that the rows of a store depend on."""
_FINGERPRINTED = (
    "edge_index",
    "edge_weight",
    "x",
    "y",
    "train_mask",
    "val_mask",
    "test_mask",
)
_PREDICTION_BATCH = 4096
_term_rows: dict[Any, TensorCache] = {}
_graph_parts = TensorCache()


def store_of(data: Data) -> Store | None:
    """Return the store whose rows ``data`` stands for, or ``None`` for a graph in memory."""
    store: Store | None = data.get("rows")
    return store


def fingerprint(data: Data) -> str:
    """Return a hash of the graph: edges, weights, features, labels and the masks it came with."""
    store = store_of(data)
    if store is not None:
        return store.manifest.fingerprint[:16]
    digest = hashlib.sha256()
    for key in _FINGERPRINTED:
        value = data.get(key)
        if value is None:
            continue
        if value.layout == torch.strided:
            parts = [value]
        else:
            parts = [value.crow_indices(), value.col_indices(), value.values()]
        # The bytes alone do not distinguish shapes such as [2, 3] and [3, 2].
        digest.update(f"{key}{tuple(value.shape)}".encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part.cpu().numpy()).data)
    return digest.hexdigest()[:16]


def with_split(data: Data, seed: int) -> Data:
    """Return the graph with one split.

    Masks of one split are kept. A graph without masks, or with those of several splits, is split
    by its default protocol (:func:`nfgnn.data.default_protocol`).
    """
    if data.get("num_classes") is None:
        raise UserError(
            "the graph does not define num_classes: pass nfgnn.load_dataset(data), which "
            "validates the graph and its edges"
        )
    data = with_boolean_masks(data)
    given = [data[name] for name in MASKS if data.get(name) is not None]
    if given and all(mask.dim() == 1 for mask in given):
        return data
    return split(data, seed=seed)


def training_graph(data: Data) -> Data:
    """Return the graph without the nodes that training must not see."""
    store = store_of(data)
    if store is not None and data.get("unobserved_mask") is not None:
        raise _no_unobserved_nodes(store)
    observed = observed_part(data)
    if observed is not data:
        # A part of the classes may be hidden, but the metric is that of the whole graph.
        observed.metric = resolve_metric(AUTO, data).name
    return observed


def _no_unobserved_nodes(store: Store) -> UserError:
    return UserError(
        f"the terms in {store.origin} were computed from the whole graph, so none of its nodes is "
        "unobserved: train on the graph itself for the inductive protocol"
    )


def checked_feature_names(data: Data) -> list[str] | None:
    """Return the names of the features; refuse names that are not as many as the features."""
    names = names_of(data, "feature_names")
    store = store_of(data)
    num_features = data.num_features if store is None else store.manifest.num_features
    where = str(data.get("path") or data.get("name") or "the graph")
    check_feature_names(names, num_features, where)
    return names


def align_features(data: Data, trained: list[str] | None) -> Data:
    """Return the graph with its features in the order of training, if both have feature names."""
    names = checked_feature_names(data)
    if not trained or not names or names == trained:
        return data
    position = {name: i for i, name in enumerate(names)}
    missing = [name for name in trained if name not in position]
    if missing:
        listed = ", ".join(missing[:5])
        more = ", …" if len(missing) > 5 else ""
        raise UserError(
            f"{data.get('path') or 'the graph'} lacks {len(missing)} of the {len(trained)} "
            f"features that the model was trained with: {listed}{more}; add these columns to the "
            "table of nodes"
        )
    counts = Counter(names) | Counter(trained)  # the larger count of every name
    repeated = [name for name in trained if counts[name] > 1]
    if repeated:
        raise UserError(
            f"several features have the name {repeated[0]!r}, so the features of "
            f"{data.get('path') or 'the graph'} cannot be sorted as in training: give every "
            "feature a name of its own, or pass the features in the order of training"
        )
    store = store_of(data)
    if store is not None:
        raise UserError(
            f"the terms in {store.origin} were computed from the features in another order than "
            "in training: compute them again with `nfgnn precompute`, from a table with the "
            "columns in the order of training"
        )
    aligned = copy.copy(data)
    columns = torch.tensor([position[name] for name in trained], device=data.x.device)
    if data.x.layout == torch.strided:
        aligned.x = data.x[:, columns]
    else:
        # Sparse CSR tensors cannot be indexed by columns.
        aligned.x = data.x.to_sparse_coo().index_select(1, columns).to_sparse_csr()
    aligned.feature_names = trained
    return aligned


def check_num_features(data: Data, expected: int) -> None:
    """Refuse a graph with another number of features than the model."""
    store = store_of(data)
    found = data.num_features if store is None else store.manifest.num_features
    if found != expected:
        name = data.get("path") or data.get("name") or "the graph"
        raise UserError(
            f"{name} has {found} features, but the model was trained on {expected}: pass a graph "
            "with the same columns"
        )


def check_finite_features(data: Data) -> None:
    """Refuse NaN and infinite features, which a graph may have got after it was loaded."""
    if store_of(data) is None:
        check_features(data.x, str(data.get("name") or "the graph"))


def sizes(data: Data) -> tuple[int, int, int]:
    """Return the numbers of features, classes and nodes of the graph."""
    store = store_of(data)
    if store is None:
        return data.num_features, data.num_classes, data.num_nodes
    return store.manifest.num_features, data.num_classes, store.manifest.num_nodes


def fit_scaling(data: Data, how: str) -> FeatureScaling:
    """Return the scaling of the features: a new one, or that of the store.

    Args:
        data: the graph with the masks of one split.
        how: one of :data:`nfgnn.data.SCALINGS`.
    """
    store = store_of(data)
    if store is not None:
        return store.scaling
    encoding = data.get("feature_encoding")
    imputed = ([], []) if encoding is None else encoding.imputed()
    return FeatureScaling.fit(data.x, how, data.get("train_mask"), imputed)


def resolve_config(
    data: Data, model: str, settings: Mapping[str, Any], protocol: str | None, preset: str
) -> RunConfig:
    """Resolve the configuration of a run on a graph or on a store.

    See :meth:`RunConfig.resolve` and :meth:`RunConfig.for_graph`. A store adds the settings that
    its terms were computed with.
    """
    store = store_of(data)
    name = data.get("registered_name")
    if store is None:
        return RunConfig.resolve(model, settings, name, protocol, preset).for_graph(data)
    entry = find_model(model)
    if protocol == "inductive":
        raise _no_unobserved_nodes(store)
    if not issubclass(entry.model, Scalable):
        raise UserError(
            f"{entry.name} cannot be trained on a store, which contains terms but no graph: use "
            "ScalableNFGNN or another Scalable… model (`nfgnn models`)"
        )
    defaults = RunConfig.resolve(model, {}, None, None, "none").to_dict()
    manifest = vars(store.manifest)
    given = {key: manifest[key] for key in (*_STORE_SETTINGS, "features") if key in defaults}
    for key in given.keys() & settings.keys():
        wanted = settings[key]
        if key in _PARTS and not wanted:
            del given[key]  # a model may leave out parts of the rows
            continue
        if key == "basis":
            wanted = str(resolve_basis(wanted))
        if wanted not in (given[key], "auto"):
            raise UserError(
                f"{store.origin} was computed with {key} = {given[key]}, not {wanted}: leave the "
                "setting out, or compute another store with `nfgnn precompute`"
            )
    config = RunConfig.resolve(model, {**settings, **given}, name, protocol, preset)
    return config.for_graph(data)


def check_model(model: nn.Module, data: Data) -> None:
    """Refuse a model that needs other terms than the store holds."""
    store = store_of(data)
    if store is None or not is_row_model(model):
        return
    prop = model.prop
    needed = {
        "K": prop.K,
        "basis": str(prop.basis),
        "self_loops": prop.self_loops,
        "lambda_max": prop.lambda_max,
    }
    manifest = vars(store.manifest)
    for key, value in needed.items():
        if manifest[key] != value:
            raise UserError(
                f"{type(model).__name__} needs terms with {key} = {value}, but {store.origin} was "
                f"computed with {key} = {manifest[key]}: compute another store with "
                "`nfgnn precompute`"
            )


def is_row_model(model: nn.Module) -> TypeGuard[Scalable]:
    """Whether a model is trained on rows of terms."""
    return isinstance(model, Scalable)


def row_source(model: Scalable, data: Data, scaling: FeatureScaling) -> RowSource:
    """Return the rows of a store, or the terms of a graph in memory.

    The terms of a graph are computed once and cached while the graph lives.
    """
    store = store_of(data)
    if store is not None:
        check_model(model, data)
        return store.with_parts(model.parts) if model.parts.columns else store
    prop = model.prop
    statistics = [tuple(v.flatten().tolist()) for v in scaling.tensors().values()]
    terms = (str(prop.basis), prop.K, prop.self_loops, prop.lambda_max)
    key = (scaling.how, *statistics, *terms, model.parts)
    # A local name, because another thread may clear the dictionary.
    cache = _term_rows.get(key)
    if cache is None:
        cache = TensorCache()
        _term_rows.clear()  # The terms are large, so only those of one setting are kept.
        _term_rows[key] = cache
    edge_index = data.edge_index
    edge_weight = data.get("edge_weight")

    def compute() -> MemoryRows:
        device = next(model.parameters()).device
        weight = None if edge_weight is None else edge_weight.to(device)
        with torch.no_grad():
            x = scaling.apply(data.x).to(device)
            rows = model.rows(x, edge_index.to(device), weight)
        return MemoryRows(rows.cpu().contiguous())

    return cache.lookup((data.x, edge_index, edge_weight), None, compute)


def graph_parts(data: Data, num_parts: int) -> Tensor:
    """Return the part of every node, cached while the graph lives."""

    def compute() -> Tensor:
        return partition_graph(data.edge_index, data.num_nodes, num_parts)

    return _graph_parts.lookup((data.edge_index,), (data.num_nodes, num_parts), compute)


def row_task(model: Scalable, data: Data, scaling: FeatureScaling) -> RowTask:
    """Return the rows, labels and masks of ``data`` as a task for :func:`fit_rows`."""
    train = data.train_mask.nonzero().flatten()
    val = data.val_mask.nonzero().flatten()
    return RowTask(row_source(model, data, scaling), data.y, train, val)


def map_rows(
    source: RowSource, count: int, device: torch.device, function: Callable[[Tensor], Tensor]
) -> Tensor:
    """Apply ``function`` to all rows, one batch at a time, and return the result on the CPU."""
    index = torch.arange(count)
    # One pass gains nothing from rows that are kept.
    loader = RowLoader(source, index, index, _PREDICTION_BATCH, None, device, keep=False)
    try:
        with torch.no_grad():
            return torch.cat([function(batch.rows).cpu() for batch in loader.batches(0)])
    finally:
        loader.close()
