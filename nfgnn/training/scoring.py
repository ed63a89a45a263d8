"""The score of a fitted classifier on some nodes of a graph."""

from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import names_of, repeated_names
from nfgnn.errors import UserError
from nfgnn.training import inputs
from nfgnn.training.masks import boolean_mask
from nfgnn.training.metrics import count_classes, resolve_metric


class Predictor(Protocol):
    """What predicts the classes of nodes: a fitted classifier, or an ensemble of them."""

    @property
    def seed(self) -> int: ...

    @property
    def num_classes_(self) -> int: ...

    @property
    def class_names_(self) -> list[str] | None: ...

    @property
    def feature_names_(self) -> list[str] | None: ...

    def predict_proba(self, data: Data) -> Tensor:
        """Return the class probabilities of every node, ``[num_nodes, num_classes]``."""


def score_nodes(predictor: Predictor, data: Data, mask: Tensor | None, metric: str) -> float:
    """Return the metric on the labelled nodes of a mask; losses are negated.

    Args:
        predictor: what predicts the nodes.
        data: the graph.
        mask: the nodes. ``None`` stands for ``data.test_mask``, or for the test nodes of the split
            that ``fit`` makes of a graph without masks.
        metric: name of a metric, or ``"auto"``.
    """
    if mask is None:
        mask = inputs.with_split(data, predictor.seed).get("test_mask")
    if mask is None:
        raise UserError("the graph has no test_mask: pass the nodes to score as mask")
    if data.get("y") is None:
        raise UserError("the graph has no labels to score: set y to the class of every node")
    if data.y.dim() != 1:
        raise UserError(
            f"y has the shape {list(data.y.shape)}, but must have one class per node, "
            f"[{data.num_nodes}]"
        )
    if data.y.is_floating_point():
        raise UserError("y holds floating-point numbers, but must hold the number of each class")
    chosen_nodes = boolean_mask(mask, data.num_nodes, "the mask").cpu()
    if chosen_nodes.dim() != 1:
        raise UserError(
            f"the mask has the shape {list(chosen_nodes.shape)}, one column per split: pass one "
            "column, such as mask[:, 0]"
        )
    nodes = chosen_nodes & (data.y >= 0).cpu()
    if not bool(nodes.any()):
        raise UserError("the mask contains no labelled node to score")
    probabilities = predictor.predict_proba(data)[nodes]
    y = _in_order_of_training(data, data.y[nodes].cpu(), predictor.class_names_)
    chosen = resolve_metric(metric, data)
    reason = chosen.undefined(count_classes(y, predictor.num_classes_))
    if reason is not None:
        raise UserError(f"the mask cannot be scored: {reason}")
    value = chosen.compute(probabilities, y, predictor.num_classes_)
    return value if chosen.greater_is_better else -value


def _in_order_of_training(data: Data, y: Tensor, trained: list[str] | None) -> Tensor:
    """Return labels with the numbers that their classes have in the model."""
    names = names_of(data, "class_names")
    if not names or not trained or names == trained:
        return y
    # Names that one graph has, and the other only numbers for, are matched by their places.
    if not set(names) & set(trained) and (_are_numbers(names) or _are_numbers(trained)):
        return y
    if int(y.max()) >= len(names):
        raise UserError(
            f"y holds the class {int(y.max())}, but class_names has only {len(names)} names: pass "
            "the name of every class"
        )
    for some in (names, trained):
        repeated = repeated_names(some)
        if repeated:
            raise UserError(
                f"several classes have the name {repeated[0]!r}, so the classes of the graph "
                "cannot be matched with those of training: give every class a name of its own"
            )
    unknown = [names[c] for c in y.unique().tolist() if names[c] not in trained]
    if unknown:
        raise UserError(
            f"the graph has the class {unknown[0]!r}, but the model was trained with "
            f"{', '.join(trained)}: score nodes of these classes only"
        )
    number = torch.tensor([trained.index(name) if name in trained else -1 for name in names])
    return number[y]


def _are_numbers(names: list[str]) -> bool:
    """Whether the classes are named by their numbers, as those of a graph without names are."""
    return names == [str(c) for c in range(len(names))]
