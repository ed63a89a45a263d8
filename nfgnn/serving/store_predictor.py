"""Predictions for new nodes from an open store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import features_of_objects
from nfgnn.errors import UserError
from nfgnn.nn import Scalable
from nfgnn.store import NewNodes, Store
from nfgnn.training import (
    NodeClassifier,
    align_features,
    check_model,
    check_num_features,
    is_row_model,
    load_run,
)


@dataclass(frozen=True)
class NewNode:
    """A node that is added to the graph of a store.

    Args:
        features: all features in the order of the graph, or the values of the columns by their
            names, as in a table of nodes.
        neighbours: ids of nodes of the graph, or of other new nodes.
        weights: weights of these edges; by default ones.
        id: id of the node, which the graph must not have yet.
    """

    features: Sequence[float] | Mapping[str, Any]
    neighbours: Sequence[str] = ()
    weights: Sequence[float] | None = None
    id: str | None = None


@dataclass(frozen=True)
class NodePrediction:
    """The prediction for a new node."""

    id: str | None
    predicted: str
    """Name of the most probable class."""
    probability: float
    margin: float
    """How much more probable it is than the second class."""
    probabilities: dict[str, float]
    """Probabilities of all classes by their names."""


class StorePredictor:
    """Predict the classes of new nodes from a store with a graph (``nfgnn precompute --serve``).

    The store is memory-mapped: calls read the neighbourhood of the new nodes only, and nothing is
    written. All edges are read once when the object is made. Every call extends the graph of the
    store by its own nodes only. Several threads may call an object at the same time.

    A store that is replaced or deleted remains usable for those who have opened it. If files are
    changed in place, calls raise :class:`nfgnn.store.UnusableStoreError`.

    Args:
        classifier: a model that was trained on the store, or with its settings.
        store: the store.
        tolerance: see :func:`nfgnn.store.attached_terms`.

    Example:
        >>> predictor = StorePredictor.open("my-run", "my-store")         # doctest: +SKIP
        >>> node = NewNode([0.2, 1.7], neighbours=["alice", "bob"])       # doctest: +SKIP
        >>> predictor.predict([node])[0].predicted                        # doctest: +SKIP
    """

    def __init__(self, classifier: NodeClassifier, store: Store, tolerance: float = 1e-10) -> None:
        self.classifier = classifier
        self.store = store
        self.tolerance = tolerance
        self.model = _checked_model(classifier, store).eval()
        self.existing = store.existing_nodes
        self.scaling = store.scaling
        names = classifier.class_names_ or map(str, range(classifier.num_classes_))
        self.class_names = list(names)
        self._files = store.map_for_new_nodes()
        if tolerance > 0:
            # Without this, the first call would wait until all edges are read.
            with self._files.unchanged():
                _ = store.graph.neighbour_squares, store.graph.total_degree

    @classmethod
    def open(
        cls,
        run: str | Path,
        store: str | Path,
        seed: int | None = None,
        device: str = "auto",
        tolerance: float = 1e-10,
    ) -> "StorePredictor":
        """Open a run folder and a store.

        The files of the graph and the ids are read once to compare them with their checksums, and
        of large terms a sample.

        Args:
            run: folder that ``nfgnn train`` has written.
            store: folder that ``nfgnn precompute --serve`` has written, or its URL.
            seed: seed of the run; by default the one with the best validation score.
            device: device of the model.
            tolerance: see :func:`nfgnn.store.attached_terms`.
        """
        classifier = load_run(Path(run), seed, device)
        return cls(classifier, Store.open(store, verify="graph"), tolerance)

    def check_store(self) -> None:
        """Raise :class:`nfgnn.store.UnusableStoreError` if files of the store were changed."""
        self._files.check()

    def predict(self, nodes: Sequence[NewNode]) -> list[NodePrediction]:
        """Return the predictions for nodes that are added to the graph together."""
        if not nodes:
            return []
        with self._files.unchanged():
            ends, weight = self._edges(nodes)
        new = Data(x=self._features(nodes), edge_index=ends, edge_weight=weight)
        shares = self.predict_proba(new)
        top = shares.topk(min(2, len(self.class_names)))
        found = []
        for node, share, best, index in zip(nodes, shares, top.values, top.indices):
            second = float(best[1]) if len(best) > 1 else 0.0
            found.append(
                NodePrediction(
                    node.id,
                    self.class_names[int(index[0])],
                    float(best[0]),
                    float(best[0]) - second,
                    dict(zip(self.class_names, share.tolist())),
                )
            )
        return found

    def predict_proba(self, new: Data) -> Tensor:
        """Return the class probabilities of new nodes, ``[m, num_classes]``.

        Args:
            new: ``x``, not scaled; ``edge_index``, each edge once, in which numbers from
                ``num_nodes`` of the graph on are the new nodes; and ``edge_weight`` if edges have
                weights. :func:`nfgnn.data.load_new_nodes` returns it. Without ``feature_names``,
                the features are in the order of the store's.
        """
        new = align_features(new, self.existing.feature_names)
        check_num_features(new, self.existing.num_features)
        scaled = self.scaling.apply(new.x)
        added = NewNodes(scaled, new.edge_index, new.get("edge_weight"))
        with self._files.unchanged():
            rows = self.store.attach(added, self.tolerance)
            if self.model.parts.columns:
                parts = self.store.attach_parts(added, self.model.parts)
                rows = torch.cat([rows.flatten(1), parts], 1)
        device = next(self.model.parameters()).device
        with torch.no_grad():
            shares = self.model.forward_rows(rows.to(device)).softmax(-1).cpu()
        if not bool(shares.isfinite().all()):
            raise UserError(
                "the model returns probabilities that are not numbers: check the features and edge "
                "weights of the new nodes for very large values, and the store with `nfgnn verify`"
            )
        return shares

    def _features(self, nodes: Sequence[NewNode]) -> Tensor:
        by_name = [node.features for node in nodes if isinstance(node.features, Mapping)]
        if len(by_name) == len(nodes):
            return features_of_objects(by_name, self.existing, "features")
        wanted = self.existing.num_features
        rows = []
        for i, node in enumerate(nodes):
            if isinstance(node.features, Mapping):
                raise UserError(
                    "features: some nodes have a list and others have names; use one of them"
                )
            if len(node.features) != wanted:
                raise UserError(
                    f"{_name(node, i)} has {len(node.features)} features, but the graph has "
                    f"{wanted}; list all of them in the order of the graph"
                )
            rows.append(node.features)
        x = torch.tensor(rows, dtype=torch.float32).view(len(rows), wanted)
        finite = x.isfinite().all(1)
        if not bool(finite.all()):
            i = int((~finite).nonzero()[0])
            raise UserError(
                f"{_name(nodes[i], i)} has a feature that is not a finite number (in float32); "
                "correct or replace it"
            )
        return x

    def _edges(self, nodes: Sequence[NewNode]) -> tuple[Tensor, Tensor | None]:
        """Return the edges of the new nodes and their weights."""
        own = self._own_ids(nodes)
        n = self.existing.num_nodes
        sources: list[int] = []
        targets: list[int] = []
        weights: list[float] = []
        for i, node in enumerate(nodes):
            if len(set(node.neighbours)) != len(node.neighbours):
                raise UserError(f"{_name(node, i)} lists a neighbour twice; list it once")
            known = self.existing.find(list(node.neighbours))
            for name, place in zip(node.neighbours, known.tolist()):
                place = n + own[name] if name in own else place
                if place < 0:
                    raise UserError(
                        f"{_name(node, i)}: the neighbour {name!r} is neither a node of the graph "
                        "nor one of the new nodes; correct or remove it"
                    )
                sources.append(place)
            targets += [n + i] * len(node.neighbours)
            weights += self._weights(node, i)
        ends = torch.tensor([sources, targets], dtype=torch.long)
        if all(node.weights is None for node in nodes):
            return ends, None
        return ends, torch.tensor(weights)

    def _own_ids(self, nodes: Sequence[NewNode]) -> dict[str, int]:
        own: dict[str, int] = {}
        for i, node in enumerate(nodes):
            if node.id is None:
                continue
            if node.id in own:
                raise UserError(f"two new nodes have the id {node.id!r}; ids must be unique")
            own[node.id] = i
        existing = np.flatnonzero(self.existing.find(list(own)) >= 0)
        if len(existing):
            name = list(own)[int(existing[0])]
            raise UserError(f"{name!r} is already a node of the graph; new nodes need new ids")
        return own

    def _weights(self, node: NewNode, i: int) -> list[float]:
        count = len(node.neighbours)
        if node.weights is None:
            return [1.0] * count
        if len(node.weights) != count:
            raise UserError(
                f"{_name(node, i)} has {len(node.weights)} weights for {count} neighbours; give "
                "every neighbour one"
            )
        values = np.asarray(node.weights, dtype=np.float64)
        if not bool(((values > 0) & (values <= float(np.finfo(np.float32).max))).all()):
            raise UserError(
                f"{_name(node, i)} has a weight that is not a positive number; correct or remove it"
            )
        return [float(value) for value in values]


def serves(classifier: NodeClassifier, store: Store) -> bool:
    """Whether :class:`StorePredictor` accepts a model and a store."""
    try:
        _checked_model(classifier, store)
    except UserError:
        return False
    return store.manifest.has_graph


def _checked_model(classifier: NodeClassifier, store: Store) -> Scalable:
    """Return the model of a classifier; refuse one that does not fit the rows of a store."""
    model = classifier.model_
    if not is_row_model(model):
        raise UserError(
            f"{classifier.config_.model} needs the whole graph, so it cannot predict from a store: "
            "train a Scalable… model (`nfgnn models`) on the store"
        )
    check_model(model, Data(rows=store))
    features = store.manifest.num_features
    if classifier.num_features_ != features:
        raise UserError(
            f"the model was trained on {classifier.num_features_} features, but {store.origin} has "
            f"{features}: use a model that was trained on this store"
        )
    # The terms of a store cannot be sorted, so this refuses features in another order.
    named = Data(rows=store, feature_names=store.manifest.feature_names, path=store.origin)
    align_features(named, classifier.feature_names_)
    if not classifier.scaling_.equals(store.scaling):
        raise UserError(
            f"the model was trained on features that are scaled in another way than those of "
            f"{store.origin}: train it on the store"
        )
    return model


def _name(node: NewNode, i: int) -> str:
    return f"new node {i + 1}" if node.id is None else f"new node {node.id!r}"
