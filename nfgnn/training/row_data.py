"""What a classifier needs of rows: of a graph in memory, or of a store (``Store.labels()``, which carries it along)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.data import FeatureScaling, observed_part
from nfgnn.errors import UserError
from nfgnn.nn.models import Scalable, find_model
from nfgnn.spectral import resolve_basis
from nfgnn.store import MemoryRows, RowLoader, RowSource, Store
from nfgnn.tensor_cache import TensorCache
from nfgnn.training.config import RunConfig
from nfgnn.training.minibatch import RowTask

_MADE_BY = ("K", "basis", "self_loops", "lambda_max")
_LAST: dict[Any, TensorCache] = {}


def store_of(data: Data) -> Store | None:
    """The store whose rows ``data`` stands for, if it is not a graph in memory."""
    store: Store | None = data.get("rows")
    return store


def seen_in_training(data: Data) -> Data:
    """The graph without the nodes that training must not see; a store has none."""
    store = store_of(data)
    if store is not None and data.get("unobserved_mask") is not None:
        raise _nothing_unobserved(store)
    return observed_part(data)


def _nothing_unobserved(store: Store) -> UserError:
    return UserError(
        f"the terms in {store.path} were made from the whole graph, so no node of it is unobserved: train on the "
        "graph itself for the inductive protocol"
    )


def sizes(data: Data) -> tuple[int, int, int]:
    """Features, classes and nodes."""
    store = store_of(data)
    return (
        data.num_features if store is None else store.manifest.num_features,
        data.num_classes,
        data.num_nodes,
    )


def scaling_of(data: Data, how: str) -> FeatureScaling:
    """The scaling of the features: a new one, or that of the store."""
    store = store_of(data)
    return FeatureScaling.fit(data.x, how) if store is None else store.scaling


def resolve_config(
    data: Data, model: str, settings: Mapping[str, Any], protocol: str | None, preset: str
) -> RunConfig:
    """:meth:`RunConfig.resolve` for a graph; for a store with the settings that its terms were made by."""
    store = store_of(data)
    if store is None:
        return RunConfig.resolve(model, settings, data.get("name"), protocol, preset)
    entry, manifest = find_model(model), store.manifest
    if protocol == "inductive":
        raise _nothing_unobserved(store)
    if not issubclass(entry.model, Scalable):
        raise UserError(
            f"{entry.name} cannot be trained on a store, which holds terms and no graph: use ScalableNFGNN or another "
            "Scalable… model (`nfgnn models`)"
        )
    known = RunConfig.resolve(model, {}, None, None, "none").to_dict()
    given = {key: getattr(manifest, key) for key in (*_MADE_BY, "features") if key in known}
    for key in given.keys() & settings.keys():
        wanted = str(resolve_basis(settings[key])) if key == "basis" else settings[key]
        if wanted not in (given[key], "auto"):
            raise UserError(
                f"{store.path} was made with {key} = {given[key]}, not {wanted}: leave the setting out, or make "
                "a store with it by `nfgnn precompute`"
            )
    return RunConfig.resolve(model, {**settings, **given}, data.get("name"), protocol, preset)


def check_model(model: nn.Module, data: Data) -> None:
    """Refuse a model that needs other terms than the store has."""
    store = store_of(data)
    if store is None or not by_rows(model):
        return
    prop = model.prop
    ours = {
        "K": prop.K,
        "basis": str(prop.basis),
        "self_loops": prop.self_loops,
        "lambda_max": prop.lambda_max,
    }
    for key, value in ours.items():
        if (theirs := getattr(store.manifest, key)) != value:
            raise UserError(
                f"{type(model).__name__} needs terms with {key} = {value}, and {store.path} was made with "
                f"{key} = {theirs}: make another store by `nfgnn precompute`"
            )


def row_source(model: Scalable, data: Data, scaling: FeatureScaling) -> RowSource:
    """The rows of a store, or those of a graph in memory: computed once for a graph and kept while it lives."""
    store = store_of(data)
    if store is not None:
        check_model(model, data)
        return store
    prop = model.prop
    statistics = [
        None if v is None else tuple(v.tolist()) for v in (scaling.mean, scaling.deviation)
    ]
    key = (scaling.how, *statistics, str(prop.basis), prop.K, prop.self_loops, prop.lambda_max)
    if key not in _LAST:
        _LAST.clear()  # the terms are large: those of one setting at a time
        _LAST[key] = TensorCache()
    edges = (data.edge_index, data.get("edge_weight"))

    def make() -> MemoryRows:
        device = next(model.parameters()).device
        index, weight = (None if value is None else value.to(device) for value in edges)
        with torch.no_grad():
            rows = model.rows(scaling.apply(data.x).to(device), index, weight)
        return MemoryRows(rows.cpu().contiguous())

    return _LAST[key].lookup((data.x, *edges), None, make)


def row_task(model: Scalable, data: Data, scaling: FeatureScaling) -> RowTask:
    """What ``data`` and its masks ask a model to learn."""
    train, val = (data[name].nonzero().flatten() for name in ("train_mask", "val_mask"))
    return RowTask(row_source(model, data, scaling), data.y, train, val)


def for_all_rows(
    source: RowSource, count: int, device: torch.device, function: Callable[[Tensor], Tensor]
) -> Tensor:
    """``function`` of every row, a batch at a time, on the CPU."""
    everything = torch.arange(count)
    loader = RowLoader(source, everything, everything, 4096, None, device)
    try:
        with torch.no_grad():
            return torch.cat([function(batch.rows).cpu() for batch in loader.batches(0)])
    finally:
        loader.close()


def by_rows(model: nn.Module) -> TypeGuard[Scalable]:
    """Whether a model is trained on rows."""
    return isinstance(model, Scalable)
