"""Mini-batch training on rows of terms, in one process or several, resumable after any step."""

import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn import Scalable
from nfgnn.store import Batch, RowLoader, RowSource, stream_seed
from nfgnn.training.captured_step import CapturedStep
from nfgnn.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from nfgnn.training.class_weight import balanced_class_weights
from nfgnn.training.config import TrainingConfig
from nfgnn.training.criterion import Criterion
from nfgnn.training.distributed import ProcessGroup
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.optimizer import FusedAdam
from nfgnn.training.stopping import should_stop
from nfgnn.training.trainer import Trainer, suitable_threads, train

_CHECKPOINT_SHARE = 0.05
"""At most this share of the time goes into checkpoints."""


@dataclass(frozen=True)
class RowTask:
    """What is learned: the labels ``y`` of the rows of ``source``.

    ``train`` and ``val`` are the indices of the training and the validation rows. ``keep`` says
    whether all rows are read once and kept on the device; by default, if they fit.
    """

    source: RowSource
    y: Tensor
    train: Tensor
    val: Tensor
    keep: bool | None = None


def fit_rows(
    model: Scalable,
    task: RowTask,
    config: TrainingConfig,
    seed: int,
    on_epoch: OnEpoch | None = None,
    checkpoint: Path | None = None,
    capture: bool = False,
) -> History:
    r"""Train a model on batches of rows and leave it with the weights of its best epoch.

    An epoch is one pass over the training rows. All random numbers of step s in epoch e are drawn
    from (seed, e, s), so a run that is resumed from ``checkpoint`` ends with the same weights.

    Where torch.distributed is running, every process takes its part of each batch. The gradient is
    that of the mean loss over the whole batch, so the number of processes only changes rounding
    (and the random numbers of dropout). Only the first process writes the checkpoint.

    With ``capture``, a single process on a GPU launches each step as one CUDA graph. With
    ``config.precision = "bfloat16"`` the passes are computed in half precision.
    """
    trainer = MinibatchTrainer(model, task, config, seed, checkpoint, capture)
    try:
        with suitable_threads(trainer.train_loader.batch_values, model, trainer.device):
            history = train(trainer, config.epochs, on_epoch)[0]
    finally:
        trainer.close()
    history.raise_if_diverged()
    return history


class _RowModule(nn.Module):
    """A model called on rows, as DistributedDataParallel needs it."""

    def __init__(self, model: Scalable) -> None:
        super().__init__()
        self.model = model

    def forward(self, rows: Tensor) -> Tensor:
        return self.model.forward_rows(rows)


class MinibatchTrainer(Trainer):
    """An epoch of mini-batches of rows, with a checkpoint from time to time."""

    def __init__(
        self,
        model: Scalable,
        task: RowTask,
        config: TrainingConfig,
        seed: int,
        checkpoint: Path | None,
        capture: bool = False,
    ) -> None:
        super().__init__()
        for name, rows in (("train_mask", task.train), ("val_mask", task.val)):
            if rows.numel() == 0:
                raise UserError(
                    f"{name} is empty: training needs both training and validation nodes"
                )
        self.model = model
        self.task = task
        self.config = config
        self.seed = seed
        self.device = next(model.parameters()).device
        self.group = ProcessGroup.current()
        if self.group.size > 1 and len(model.norms) and self.device.type != "cuda":
            raise UserError(
                "batch_norm = true with several processes needs GPUs, because only there the "
                "statistics of a whole batch are synchronised: train in one process, or set "
                "batch_norm = false"
            )
        labels = Data(y=task.y)
        self.criterion = Criterion.of(config.metric, config.select, labels)
        self.criterion.check(task.y[task.val], labels)
        self._class_weight: Tensor | None = None
        if config.class_weight == "balanced":
            weights = balanced_class_weights(task.y[task.train])
            self._class_weight = weights.float().to(self.device)
        self.optimizer = FusedAdam(model, config)
        self.state = Checkpoint(loss=self._zeros(()))
        self._checkpoint_path = checkpoint
        if checkpoint is not None and checkpoint.is_file():
            self.state = load_checkpoint(checkpoint, model, self.optimizer)
        self.state.history.criterion = self.criterion
        self.costs = self.state.history.costs()
        ranks = zip(self.costs, self.state.history.val_loss)
        # No comparison with NaN is true, so an epoch without a cost is never the best.
        comparable = [rank for rank in ranks if not math.isnan(rank[0])]
        self._least = min(comparable, default=(math.inf, math.inf))
        self.seconds_before = self.state.history.seconds
        self.group.barrier()  # no process may write before all have read
        self.row_module = self._distributed() if self.group.is_initialized else _RowModule(model)
        self.train_loader = self._loader(task.train, seed)
        self.val_loader = self._loader(task.val, None)
        self._saved_at = 0.0
        self._saving_seconds = 0.0
        self._captured: CapturedStep | None = None
        if capture and self.device.type == "cuda" and not self.group.is_initialized:
            self._captured = CapturedStep(self._step, config.batch_size)

    def _distributed(self) -> nn.Module:
        # Replaces the layers inside the model and keeps their names, so that checkpoints and saved
        # models do not depend on the number of processes.
        if self.device.type == "cuda":
            nn.SyncBatchNorm.convert_sync_batchnorm(self.model)
        return DistributedDataParallel(_RowModule(self.model))

    def _loader(self, index: Tensor, seed: int | None) -> RowLoader:
        return RowLoader(
            self.task.source,
            self.task.y,
            index,
            self.config.batch_size,
            seed,
            self.device,
            self.group.rank,
            self.group.size,
            keep=self.task.keep,
        )

    def _zeros(self, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    @property
    def epochs_done(self) -> int:
        return self.state.epoch

    def run_epoch(self) -> None:
        for batch in self.train_loader.batches(self.state.epoch, self.state.step):
            self._train_batch(batch)
            self._save()
        self._end_epoch()
        self._save()

    def _train_batch(self, batch: Batch) -> None:
        state = self.state
        # Seeded by position, not by history: a resumed run draws what it would have drawn. The rank
        # is part of the seed, or all processes would drop the same units.
        torch.manual_seed(stream_seed(self.seed, state.epoch, state.step, self.group.rank))
        self.row_module.train()
        if batch.total == 1:
            self.model.norms.eval()  # a single row has no variance
        # The rate of the optimizer is part of a captured step, and changes during the warm-up.
        if self._captured is not None and state.epoch >= self.config.warmup_epochs:
            loss = self._captured(batch)
        else:
            loss = self._step(batch)
        state.step += 1
        state.loss += self.group.sum(loss.double())

    def _step(self, batch: Batch) -> Tensor:
        """Update the weights, and return the sum of the losses of a batch."""
        with self._autocast():
            logits = self.row_module(batch.rows)
        loss = self._loss(_at_least_float32(logits), batch.y)
        # Processes average their gradients. Scaling by their number turns the average into the
        # mean over the whole batch.
        (loss * (self.group.size / batch.total)).backward()
        self.optimizer.step(self.state.epoch)
        return loss.detach()

    def _autocast(self) -> torch.autocast:
        """Compute in half precision inside the block if the settings say so."""
        enabled = self.config.uses_half_precision(self.model, self.device)
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def _loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the losses of a batch."""
        smoothing = self.config.label_smoothing
        if self._class_weight is None:
            return F.cross_entropy(logits, y, reduction="sum", label_smoothing=smoothing)
        losses = F.cross_entropy(logits, y, reduction="none", label_smoothing=smoothing)
        return (self._class_weight[y] * losses).sum()

    def _end_epoch(self) -> None:
        state = self.state
        history = state.history
        val_loss, val_accuracy, *metric = self._evaluate()
        history.train_loss.append(state.loss.item() / self.task.train.numel())
        history.val_loss.append(val_loss)
        history.val_accuracy.append(val_accuracy)
        history.val_metric += metric
        self.costs.append(self.criterion.cost(val_loss, history.scores[-1]))
        rank = (self.costs[-1], val_loss)
        if rank < self._least:
            self._least = rank
            weights = self.model.state_dict()
            state.best = {key: value.clone() for key, value in weights.items()}
        state.epoch += 1
        state.step = 0
        state.loss = self._zeros(())

    @torch.no_grad()
    def _evaluate(self) -> list[float]:
        """Return mean loss, accuracy and, if it is another one, the metric of all processes."""
        self.model.eval()
        sums = self._zeros((2,))
        predictions: list[tuple[Tensor, Tensor]] = []
        for batch in self.val_loader.batches(self.state.epoch):
            with self._autocast():
                logits = _at_least_float32(self.model.forward_rows(batch.rows))
            loss = F.cross_entropy(logits, batch.y, reduction="sum")
            correct = (logits.argmax(-1) == batch.y).sum()
            sums += torch.stack([loss.double(), correct.double()])
            if self.criterion.has_curve:
                predictions.append((logits.softmax(-1), batch.y))
        values: list[float] = (self.group.sum(sums) / self.task.val.numel()).tolist()
        if self.criterion.has_curve:
            values.append(self._metric(predictions))
        return values

    def _metric(self, predictions: list[tuple[Tensor, Tensor]]) -> float:
        """Return the metric of the validation rows of all processes."""
        probabilities = torch.cat([predicted for predicted, _ in predictions])
        y = torch.cat([labels for _, labels in predictions])
        if self.group.is_initialized:
            probabilities = self._joined(probabilities)
            y = self._joined(y)
        weight = torch.ones_like(y, dtype=torch.float64)
        return float(self.criterion.metric.value(probabilities, y, weight))

    def _joined(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the processes."""
        counts = torch.zeros(self.group.size, dtype=torch.long, device=self.device)
        counts[self.group.rank] = len(rows)
        first = int(self.group.sum(counts)[: self.group.rank].sum())
        joined = rows.new_zeros((int(counts.sum()), *rows.shape[1:]))
        joined[first : first + len(rows)] = rows
        return self.group.sum(joined)

    def check(self) -> bool:
        return not should_stop(self.costs, self.config.patience)

    def histories(self) -> list[History]:
        return [self.state.history]

    def finish(self) -> list[History]:
        history = self.state.history
        if self.state.best:
            self.model.load_state_dict(self.state.best)
        history.loading = self.train_loader.loading()
        return [history]

    def _save(self) -> None:
        """Write a checkpoint, unless checkpoints would take too large a share of the time."""
        if self._checkpoint_path is None or not self.group.is_first:
            return
        now = time.perf_counter()
        if (now - self._saved_at) * _CHECKPOINT_SHARE < self._saving_seconds:
            return
        self.state.history.seconds = self.seconds()
        save_checkpoint(self._checkpoint_path, self.model, self.optimizer, self.state)
        self._saved_at = time.perf_counter()
        self._saving_seconds = self._saved_at - now

    def close(self) -> None:
        """Stop the loaders. The distributed module must go before its process group does."""
        self.train_loader.close()
        self.val_loader.close()
        self._captured = None
        del self.row_module


def _at_least_float32(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype == torch.bfloat16 else logits
