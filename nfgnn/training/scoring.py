"""The score of a fitted classifier on some nodes of a graph."""

from typing import Protocol

from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.training import inputs
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
    nodes = mask & (data.y >= 0).cpu()
    if not bool(nodes.any()):
        raise UserError("the mask contains no labelled node to score")
    probabilities = predictor.predict_proba(data)[nodes]
    y = data.y[nodes].cpu()
    chosen = resolve_metric(metric, data)
    reason = chosen.undefined(count_classes(y, predictor.num_classes_))
    if reason is not None:
        raise UserError(f"the mask cannot be scored: {reason}")
    value = chosen.compute(probabilities, y, predictor.num_classes_)
    return value if chosen.greater_is_better else -value
