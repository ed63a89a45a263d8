"""One run on rows of terms: mini-batches, in one process or many, killed and resumed as one likes."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nfgnn.errors import UserError
from nfgnn.nn.models import Scalable
from nfgnn.store import Batch, RowLoader, RowSource, stream_seed
from nfgnn.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from nfgnn.training.config import TrainingConfig
from nfgnn.training.distributed import Processes
from nfgnn.training.fit import parameter_groups, threads_for
from nfgnn.training.history import History

SAVING_SHARE = 0.05
"""At most this share of the time goes into checkpoints."""


@dataclass(frozen=True)
class RowTask:
    """What is learned: the labels ``y`` of the rows of ``source``, from those in ``train``, stopped by ``val``."""

    source: RowSource
    y: Tensor
    train: Tensor
    val: Tensor


def fit_rows(
    model: Scalable,
    task: RowTask,
    config: TrainingConfig,
    seed: int,
    on_epoch: Callable[[History], None] | None = None,
    checkpoint: Path | None = None,
) -> History:
    r"""Train ``model`` on mini-batches of rows and leave it with the weights of least validation loss.

    Adam with two groups and the stopping rule of :class:`TrainingConfig`; an epoch is one pass over the training rows.
    All that is random in step s of epoch e is drawn from (seed, e, s), so a run that is taken up again from
    ``checkpoint`` ends with the very same weights.

    Where torch.distributed is running, every process takes its stretch of each batch, and the gradient of the mean
    loss over the *whole* batch is put together from them: the number of processes decides nothing but rounding (and
    dropout's random numbers). Only the first process writes ``checkpoint``.
    """
    trainer = _RowTrainer(model, task, config, seed, checkpoint)
    try:
        with threads_for(trainer.train.batch_values, model, trainer.device):
            return trainer.run(on_epoch)
    finally:
        trainer.close()


class _ByRow(nn.Module):
    """A model called on rows, as DistributedDataParallel needs it."""

    def __init__(self, model: Scalable) -> None:
        super().__init__()
        self.model = model

    def forward(self, rows: Tensor) -> Tensor:
        return self.model.forward_rows(rows)


class _RowTrainer:
    def __init__(
        self,
        model: Scalable,
        task: RowTask,
        config: TrainingConfig,
        seed: int,
        checkpoint: Path | None,
    ) -> None:
        for name, rows in (("train_mask", task.train), ("val_mask", task.val)):
            if rows.numel() == 0:
                raise UserError(
                    f"{name} is empty: training needs nodes to train on and nodes to validate on"
                )
        self.model, self.task, self.config, self.seed, self.checkpoint = (
            model,
            task,
            config,
            seed,
            checkpoint,
        )
        self.processes, self.device = Processes.current(), next(model.parameters()).device
        if self.processes.count > 1 and len(model.norms) and self.device.type != "cuda":
            raise UserError(
                "batch_norm = true with several processes needs GPUs, because only there a batch is normalised as a "
                "whole: train in one process, or set batch_norm = false"
            )
        self.optimizer = torch.optim.Adam(parameter_groups(model, config), fused=True)
        self.progress = Progress(0, 0, self._zeros(()), History(), {})
        if checkpoint is not None and checkpoint.is_file():
            self.progress = load_checkpoint(checkpoint, model, self.optimizer)
        self.processes.wait()  # nobody writes before everybody has read
        self.on_rows = self._distributed() if self.processes.count > 1 else _ByRow(model)
        self.train, self.val = (self._loader(task.train, seed), self._loader(task.val, None))
        self.saved_at, self.saving_took = 0.0, 0.0

    def _distributed(self) -> nn.Module:
        # Replaces the layers inside the model, so that it goes on under its own name.
        nn.SyncBatchNorm.convert_sync_batchnorm(self.model)
        return DistributedDataParallel(_ByRow(self.model))

    def _loader(self, index: Tensor, seed: int | None) -> RowLoader:
        process = (self.processes.rank, self.processes.count)
        return RowLoader(
            self.task.source,
            self.task.y,
            index,
            self.config.batch_size,
            seed,
            self.device,
            *process,
        )

    def _zeros(self, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def run(self, on_epoch: Callable[[History], None] | None) -> History:
        history = self.progress.history
        before, start = history.seconds, time.perf_counter()
        while history.epochs < self.config.epochs and not history.should_stop(self.config.patience):
            for batch in self.train.batches(self.progress.epoch, self.progress.step):
                self._step(batch)
                history.seconds = before + time.perf_counter() - start
                self._save()
            self._end_epoch(history)
            history.seconds = before + time.perf_counter() - start
            self._save()
            if on_epoch is not None:
                on_epoch(history)
        if not self.progress.best:
            raise UserError(
                "the validation loss was never a number: lower the learning rates (lr, filter_lr)"
            )
        self.model.load_state_dict(self.progress.best)
        history.loading = self.train.loading()
        return history

    def _step(self, batch: Batch) -> None:
        progress, count = self.progress, self.processes.count
        torch.manual_seed(
            stream_seed(self.seed, progress.epoch, progress.step, self.processes.rank)
        )
        self.on_rows.train()
        if batch.total == 1:
            self.model.norms.eval()  # a single row has no deviation: it is normalised as in evaluation
        self.optimizer.zero_grad()
        smoothing = self.config.label_smoothing
        loss = F.cross_entropy(
            self.on_rows(batch.rows), batch.y, reduction="sum", label_smoothing=smoothing
        )
        # Processes average their gradients; the mean over the whole batch is the sum over all of them by its size.
        (loss * (count / batch.total)).backward()
        self.optimizer.step()
        progress.step += 1
        progress.loss += self.processes.total(loss.detach().double())

    def _end_epoch(self, history: History) -> None:
        progress = self.progress
        val_loss, val_accuracy = self._evaluate()
        history.train_loss.append(progress.loss.item() / self.task.train.numel())
        history.val_loss.append(val_loss)
        history.val_accuracy.append(val_accuracy)
        if val_loss < min(
            (loss for loss in history.val_loss[:-1] if not math.isnan(loss)), default=float("inf")
        ):
            progress.best = {key: value.clone() for key, value in self.model.state_dict().items()}
        progress.epoch, progress.step, progress.loss = progress.epoch + 1, 0, self._zeros(())

    @torch.no_grad()
    def _evaluate(self) -> tuple[float, float]:
        """Mean loss and accuracy over the validation rows, each process taking its share of every batch."""
        self.model.eval()
        sums = self._zeros((2,))
        for batch in self.val.batches(self.progress.epoch):
            logits = self.model.forward_rows(batch.rows)
            loss = F.cross_entropy(logits, batch.y, reduction="sum")
            sums += torch.stack([loss.double(), (logits.argmax(-1) == batch.y).sum().double()])
        val_loss, accuracy = (self.processes.total(sums) / self.task.val.numel()).tolist()
        return val_loss, accuracy

    def _save(self) -> None:
        """A checkpoint, unless too much of the time would go into it."""
        now = time.perf_counter()
        if self.checkpoint is None or not self.processes.first:
            return
        if (now - self.saved_at) * SAVING_SHARE < self.saving_took:
            return
        save_checkpoint(self.checkpoint, self.model, self.optimizer, self.progress)
        self.saved_at = time.perf_counter()
        self.saving_took = self.saved_at - now

    def close(self) -> None:
        self.train.close()
        self.val.close()
        del self.on_rows  # before the group of processes is taken down
