"""What the trainings of one run on a graph in memory have in common."""

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn import NodeModel
from nfgnn.training.class_weight import balanced_weights
from nfgnn.training.config import TrainingConfig
from nfgnn.training.criterion import Criterion
from nfgnn.training.history import History
from nfgnn.training.optimizer import FusedAdam
from nfgnn.training.stopping import BestWeights, should_stop
from nfgnn.training.trainer import Trainer


class GraphTrainer(Trainer):
    """Optimizer, evaluation on the validation nodes, stopping rule and best weights.

    Subclasses choose what an epoch trains on and how the graph is evaluated.
    """

    def __init__(self, model: NodeModel, data: Data, config: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.inputs = (data.x, data.edge_index, data.get("edge_weight"))
        self.train_nodes = masked_nodes(data, "train_mask")
        self.val_nodes = masked_nodes(data, "val_mask")
        self.y_train = data.y[self.train_nodes]
        self.y_val = data.y[self.val_nodes]
        self.criterion = Criterion.of(config.metric, config.select, data)
        self.criterion.check(self.y_val, data)
        self.loss_options: dict[str, Tensor] = {}
        """Further arguments of the training loss, one value per training node."""
        if config.class_weight == "balanced":
            self.loss_options["weight"] = balanced_weights(self.y_train)
        self._val_weight = torch.ones_like(self.y_val, dtype=torch.float64)
        self.optimizer = FusedAdam(model, config)
        self.best = BestWeights(model)
        self.history = History(criterion=self.criterion)
        self.costs: list[float] = []

    @abstractmethod
    def _train(self) -> float:
        """Update the weights for one epoch and return the mean loss of the training nodes."""

    @abstractmethod
    def _evaluate(self) -> Tensor:
        """Return the logits of all nodes in evaluation mode."""

    def run_epoch(self) -> None:
        self.history.train_loss.append(self._train())
        self._record(self._evaluate().index_select(0, self.val_nodes))

    def _record(self, logits: Tensor) -> None:
        """Add the logits of the validation nodes to the history; keep the weights if best."""
        val_loss = F.cross_entropy(logits, self.y_val).item()
        correct = int((logits.argmax(-1) == self.y_val).sum())
        self.history.val_loss.append(val_loss)
        accuracy = correct / len(self.y_val)
        self.history.val_accuracy.append(accuracy)
        score = accuracy
        if self.criterion.has_curve:
            score = self._metric(logits)
            self.history.val_metric.append(score)
        self.costs.append(self.criterion.cost(val_loss, score))
        self.best.update(self.costs[-1], val_loss)

    def _metric(self, logits: Tensor) -> float:
        """Return the metric of logits of the validation nodes."""
        probabilities = logits.detach().softmax(-1)
        return float(self.criterion.metric.value(probabilities, self.y_val, self._val_weight))

    def _evaluate_whole_graph(self) -> Tensor:
        with torch.no_grad(), self.autocast():
            logits: Tensor = self.model.eval()(*self.inputs)
        return logits

    def autocast(self) -> torch.autocast:
        """Compute in half precision inside the block if the settings say so."""
        device = self.train_nodes.device
        enabled = self.config.uses_half_precision(self.model, device)
        return torch.autocast(device.type, torch.bfloat16, enabled=enabled)

    def check(self) -> bool:
        return not should_stop(self.costs, self.config.patience)

    def histories(self) -> list[History]:
        return [self.history]

    def finish(self) -> list[History]:
        self.best.restore()
        return [self.history]


def masked_nodes(data: Data, mask: str) -> Tensor:
    """Return the nodes of a mask, which must not be empty."""
    # Indices, because a boolean mask would be searched again in every epoch.
    nodes: Tensor = data[mask].nonzero().flatten()
    if nodes.numel() == 0:
        raise UserError(f"{mask} is empty: training needs both training and validation nodes")
    return nodes
