"""Training on a whole graph: one step per epoch."""

from dataclasses import replace

from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.nn import NodeModel, as_node_model
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.config import TrainingConfig
from nfgnn.training.graph_trainer import GraphTrainer
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.partition_batches import PartitionTrainer
from nfgnn.training.trainer import stored_values, suitable_threads, train


def fit(
    module: nn.Module, data: Data, config: TrainingConfig, on_epoch: OnEpoch | None = None
) -> History:
    """Train a model on a graph and leave it with the weights of its best epoch.

    That is the epoch of least validation loss, or of the best metric (``config.select``). Dropout
    draws from torch's global generator: seed it first. On a GPU, models that support it are trained
    by :class:`BatchedTrainer`, which captures an epoch as a CUDA graph. ``config.partitions`` asks
    for mini-batches of parts of the graph (:mod:`~nfgnn.training.partition_batches`).

    Args:
        module: a :class:`~nfgnn.nn.NodeModel`, or any module whose
            ``forward(x, edge_index, edge_weight)`` returns logits.
        data: with scaled features, ``train_mask`` and ``val_mask``, on the model's device. ``part``
            is the part of every node, if the parts of the graph are known.
        config: learning rates, number of epochs and patience.
        on_epoch: called with the history after every epoch.
    """
    model = as_node_model(module)
    if data.x.is_cuda and model.batchable and not config.partitions:
        member = Member(model, data.train_mask, data.val_mask, config)
        history = fit_batched([member], data, on_epoch)[0]
    else:
        for part, epochs in model.pretraining():
            fit(part, data, replace(config, epochs=epochs))
        values = stored_values(data.x) // config.num_partition_batches
        trainer_class = PartitionTrainer if config.partitions else WholeGraphTrainer
        with suitable_threads(values, model, data.x.device):
            trainer = trainer_class(model, data, config)
            history = train(trainer, config.epochs, on_epoch)[0]
    history.raise_if_diverged()
    return history


class WholeGraphTrainer(GraphTrainer):
    """One step of Adam on the cross-entropy of all training nodes, then an evaluation.

    The evaluation after a step and the training pass of the next step use the same weights.
    Models that can share work between the two compute both at once.
    """

    def __init__(self, model: NodeModel, data: Data, config: TrainingConfig) -> None:
        super().__init__(model, data, config)
        self._training_logits: Tensor | None = None
        if model.shares_passes:
            self._training_logits, _ = self._pair()

    def _pair(self) -> tuple[Tensor, Tensor]:
        with self.autocast():
            return self.model.forward_pair(*self.inputs)

    def _train(self) -> float:
        if self._training_logits is None:
            self.model.train()
        with self.autocast():
            loss = self.model.training_loss(
                *self.inputs,
                self.train_nodes,
                self.y_train,
                self.config.label_smoothing,
                self._training_logits,
                **self.loss_options,
            )
        loss.backward()
        self.optimizer.step(self.history.epochs)
        return loss.item()

    def _evaluate(self) -> Tensor:
        """Return the evaluation logits; prepare the next training pass where that is shared."""
        # No training pass follows the last epoch, so a pair would compute one in vain.
        more_epochs = len(self.history.train_loss) < self.config.epochs
        if more_epochs and self.model.shares_passes:
            self._training_logits, logits = self._pair()
            return logits
        return self._evaluate_whole_graph()
