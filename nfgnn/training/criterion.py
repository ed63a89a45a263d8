"""What selects the epoch that a training keeps, and when it stops.

A criterion turns the validation loss and the metric of an epoch into a cost. Training keeps the
weights of least cost, and the validation loss breaks ties.
:func:`~nfgnn.training.stopping.should_stop` compares the costs. The cost is the validation loss, as
in the paper, or the metric.
"""

from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.training.metrics import ACCURACY, AUTO, Metric, count_classes, resolve_metric

BY_LOSS = "loss"
BY_METRIC = "metric"

Number = TypeVar("Number", float, Tensor)


@dataclass(frozen=True)
class Criterion:
    """How epochs are compared.

    Args:
        metric: the metric that the run is scored by.
        by_metric: whether it also selects the epoch; otherwise the validation loss does.
    """

    metric: Metric = ACCURACY
    by_metric: bool = False

    @classmethod
    def of(cls, metric: str, select: str, data: Data) -> "Criterion":
        """Return the criterion that two settings mean for a graph."""
        resolved = resolve_metric(metric, data)
        return cls(resolved, resolve_select(select, resolved) == BY_METRIC)

    @property
    def has_curve(self) -> bool:
        """Whether the metric is a learning curve of its own beside loss and accuracy."""
        return self.metric != ACCURACY

    @property
    def is_plain(self) -> bool:
        """Whether loss and accuracy are all that is needed."""
        return not self.has_curve and not self.by_metric

    def cost(self, loss: Number, score: Number) -> Number:
        """Return what is minimised, for one run (floats) or many (tensors).

        Args:
            loss: the validation loss.
            score: the metric on the validation nodes.
        """
        if not self.by_metric:
            return loss
        cost = -score if self.metric.greater_is_better else score
        # An epoch without a finite loss must not be kept: 0 times infinity is not a number.
        return cost + 0 * loss

    def check(self, y: Tensor, data: Data) -> None:
        """Refuse validation nodes on which the metric cannot select an epoch.

        Args:
            y: labels of the validation nodes.
            data: the graph.
        """
        if not self.by_metric:
            return
        num_classes = data.get("num_classes") or int(data.y.max()) + 1
        reason = self.metric.undefined(count_classes(y, num_classes))
        if reason is not None:
            raise UserError(
                f"the validation part cannot select an epoch: {reason}; use another protocol such "
                "as stratified, another metric, or select = 'loss'"
            )


def resolve_select(select: str, metric: Metric) -> str:
    """Return ``"loss"`` or ``"metric"``.

    ``"auto"`` is the paper's rule, the loss, where the metric is accuracy, else the metric.
    """
    if select != AUTO:
        return select
    return BY_LOSS if metric == ACCURACY else BY_METRIC
