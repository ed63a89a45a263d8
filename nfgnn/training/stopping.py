"""Early stopping and the weights that a training keeps.

Training stops as soon as the cost of an epoch exceeds the mean of the ``patience`` costs before it,
and keeps the weights of least cost. The cost is the validation loss, or the metric
(:mod:`~nfgnn.training.criterion`). :func:`should_stop` and :class:`BestWeights` serve a single run.
:class:`BatchedStopping` applies the same rule to many runs at once in tensors that stay on the
device, so that an epoch never waits for it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.spectral import triton_supports
from nfgnn.training.criterion import Criterion
from nfgnn.training.history import History


def should_stop(costs: Sequence[float], patience: int) -> bool:
    """Whether the newest cost exceeds the mean of the ``patience`` values before it."""
    # The rule of GPRGNN's published code, not the more common "no new minimum for `patience`
    # epochs".
    if len(costs) <= patience:
        return False
    window = costs[-patience - 1 : -1]
    return costs[-1] > sum(window) / patience


class BestWeights:
    """A copy of the weights (and floating-point buffers) of least cost."""

    def __init__(self, model: nn.Module) -> None:
        # Integer buffers are counters of batch normalisation, which do not affect predictions.
        self._current = [t for t in model.state_dict().values() if t.is_floating_point()]
        self._best = [t.clone() for t in self._current]
        self._least = (float("inf"), float("inf"))

    def update(self, cost: float, val_loss: float) -> None:
        """Keep the current weights if their cost is the least so far; the loss breaks ties."""
        if (cost, val_loss) < self._least:
            self._least = (cost, val_loss)
            for best, current in zip(self._best, self._current):
                best.copy_(current)

    @torch.no_grad()
    def restore(self) -> None:
        """Put the best weights back into the model."""
        for best, current in zip(self._best, self._current):
            current.copy_(best)


class BatchedStopping:
    """The rule above for the rows of a weight matrix, one row per run.

    Args:
        weights: the weights of all runs, ``[runs, size]``; changed in place by the optimizer.
        epochs: largest number of epochs.
        patience: of the stopping rule.
        criterion: the cost of an epoch, by default the validation loss.
    """

    def __init__(
        self, weights: Tensor, epochs: int, patience: int, criterion: Criterion | None = None
    ) -> None:
        runs = weights.shape[0]
        device = weights.device
        self.patience = patience
        self.criterion = criterion or Criterion()
        self.epoch = torch.zeros(1, dtype=torch.long, device=device)
        self.active = torch.ones(runs, dtype=torch.bool, device=device)
        """Runs that have not stopped, ``[runs]``."""
        self.epochs = torch.zeros(runs, dtype=torch.long, device=device)
        """Number of epochs of every run, ``[runs]``."""
        self.improved = torch.zeros_like(self.active)
        self.best = weights.clone()
        self.best_loss = torch.full((runs,), torch.inf, device=device).to(weights.dtype)
        self.best_cost = torch.full((runs,), torch.inf, dtype=torch.float64, device=device)
        self.window = torch.zeros(patience, runs, dtype=torch.float64, device=device)
        """The last ``patience`` costs, as a ring buffer, ``[patience, runs]``."""
        num_curves = 4 if self.criterion.has_curve else 3
        self.curves = torch.zeros(epochs + 1, num_curves, runs, dtype=torch.float64, device=device)
        """Training loss, validation loss, accuracy and, if it is another one, the metric of every
        epoch, ``[epochs + 1, 3 or 4, runs]``."""

    def record(
        self,
        weights: Tensor,
        train_loss: Tensor,
        val_loss: Tensor,
        accuracy: Tensor,
        metric: Tensor | None = None,
    ) -> None:
        """Record losses and scores of the current weights, keep the best, mark stopped runs.

        The pass computes the training loss of epoch t + 1 and evaluates the weights after epoch t.
        The evaluation before the first epoch does not count. ``metric`` is given where the metric
        of the criterion is not accuracy.
        """
        if triton_supports(weights) and self.criterion.is_plain:
            from nfgnn.kernels import training_step

            training_step.record(
                train_loss, val_loss, accuracy, self.epoch, self.curves, self.window,
                self.active, self.epochs, self.best_loss, self.improved,
            )  # fmt: skip
        else:
            scores = [accuracy] if metric is None else [accuracy, metric]
            self._record(train_loss, val_loss, scores)
        if weights.is_cuda:
            # The same work whatever the outcome, so that the step can be captured in a CUDA graph.
            torch.where(self.improved[:, None], weights, self.best, out=self.best)
        else:
            improved_rows = self.improved.nonzero()[:, 0]
            self.best[improved_rows] = weights[improved_rows]

    def _record(self, train_loss: Tensor, val_loss: Tensor, scores: list[Tensor]) -> None:
        """The torch twin of the kernel ``training_step.record``, for any criterion."""
        last = self.epoch - 1
        # Before the first epoch `last` is -1. What is written then, to the first row of the curves
        # and to the last slot of the window, is overwritten before anything reads it.
        evaluated = torch.stack([value.double() for value in (val_loss, *scores)])
        self.curves[:, 0].index_copy_(0, self.epoch, train_loss.double()[None])
        self.curves[:, 1:].index_copy_(0, last.clamp(min=0), evaluated[None])
        # The last score is the metric: accuracy, or the one that follows it.
        cost = self.criterion.cost(evaluated[0], evaluated[-1])
        stop = (last >= self.patience) & (cost > self.window.mean(0))
        self.window.index_copy_(0, last % self.patience, cost[None])
        self.epochs.copy_(torch.where(self.active, self.epoch, self.epochs))
        is_tied = (cost == self.best_cost) & (val_loss < self.best_loss)
        is_better = (cost < self.best_cost) | is_tied
        self.improved.copy_(self.active & is_better & (self.epoch > 0))
        self.best_cost.copy_(torch.where(self.improved, cost, self.best_cost))
        self.best_loss.copy_(torch.where(self.improved, val_loss, self.best_loss))
        self.active &= ~stop

    def histories(self) -> list[History]:
        """The learning curves of every row."""
        curves = self.curves[: int(self.epoch)].cpu()
        histories = []
        for row, count in enumerate(self.epochs.tolist()):
            train_loss, val_loss, accuracy, *metric = curves[:count, :, row].T.tolist()
            history = History(train_loss, val_loss, accuracy, criterion=self.criterion)
            history.val_metric = metric[0] if metric else []
            histories.append(history)
        return histories

    def keep_rows(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.active = self.active[rows].clone()
        self.epochs = self.epochs[rows].clone()
        self.improved = self.improved[rows].clone()
        self.best = self.best[rows].clone()
        self.best_loss = self.best_loss[rows].clone()
        self.best_cost = self.best_cost[rows].clone()
        self.window = self.window[:, rows].clone()
        self.curves = self.curves[:, :, rows].clone()
