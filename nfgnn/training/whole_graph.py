"""Training on a whole graph: one step per epoch."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn import NodeModel, as_node_model
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.class_weight import balanced_weights
from nfgnn.training.config import TrainingConfig
from nfgnn.training.criterion import Criterion
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.optimizer import FusedAdam
from nfgnn.training.stopping import BestWeights, should_stop
from nfgnn.training.trainer import Trainer, stored_values, suitable_threads, train


def fit(
    module: nn.Module, data: Data, config: TrainingConfig, on_epoch: OnEpoch | None = None
) -> History:
    """Train a model on a graph and leave it with the weights of its best epoch.

    That is the epoch of least validation loss, or of the best metric (``config.select``). Dropout
    draws from torch's global generator: seed it first. On a GPU, models that support it are trained
    by :class:`BatchedTrainer`, which captures an epoch as a CUDA graph.

    Args:
        module: a :class:`~nfgnn.nn.NodeModel`, or any module whose
            ``forward(x, edge_index, edge_weight)`` returns logits.
        data: with scaled features, ``train_mask`` and ``val_mask``, on the model's device.
        config: learning rates, number of epochs and patience.
        on_epoch: called with the history after every epoch.
    """
    model = as_node_model(module)
    if data.x.is_cuda and model.batchable:
        member = Member(model, data.train_mask, data.val_mask, config)
        history = fit_batched([member], data, on_epoch)[0]
    else:
        for part, epochs in model.pretraining():
            fit(part, data, replace(config, epochs=epochs))
        with suitable_threads(stored_values(data.x), model, data.x.device):
            trainer = WholeGraphTrainer(model, data, config)
            history = train(trainer, config.epochs, on_epoch)[0]
    history.raise_if_diverged()
    return history


class WholeGraphTrainer(Trainer):
    """Adam on the cross-entropy of all training nodes, then an evaluation.

    The evaluation after a step and the training pass of the next step use the same weights.
    Models that can share work between the two compute both at once.
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
        self._loss_options: dict[str, Tensor] = {}
        if config.class_weight == "balanced":
            self._loss_options["weight"] = balanced_weights(self.y_train)
        self._val_weight = torch.ones_like(self.y_val, dtype=torch.float64)
        self.optimizer = FusedAdam(model, config)
        self.best = BestWeights(model)
        self.history = History(criterion=self.criterion)
        self.costs: list[float] = []
        self._training_logits: Tensor | None = None
        if model.shares_passes:
            self._training_logits, _ = model.forward_pair(*self.inputs)

    def run_epoch(self) -> None:
        if self._training_logits is None:
            self.model.train()
        loss = self.model.training_loss(
            *self.inputs,
            self.train_nodes,
            self.y_train,
            self.config.label_smoothing,
            self._training_logits,
            **self._loss_options,
        )
        loss.backward()
        self.optimizer.step(len(self.history.train_loss))
        self.history.train_loss.append(loss.item())
        logits = self._evaluate().index_select(0, self.val_nodes)
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

    def _evaluate(self) -> Tensor:
        """Return the evaluation logits; prepare the next training pass where that is shared."""
        # No training pass follows the last epoch, so a pair would compute one in vain.
        more_epochs = len(self.history.train_loss) < self.config.epochs
        if more_epochs and self.model.shares_passes:
            self._training_logits, logits = self.model.forward_pair(*self.inputs)
            return logits
        with torch.no_grad():
            evaluated: Tensor = self.model.eval()(*self.inputs)
        return evaluated

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
        raise UserError(
            f"{mask} is empty: training needs nodes to train on and nodes to validate on"
        )
    return nodes
