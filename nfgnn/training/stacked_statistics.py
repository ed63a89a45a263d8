"""The running statistics of many runs as rows of one matrix.

A training pass updates the statistics of batch normalisation in place, after the evaluation of the
same weights. So what belongs to the best weights are the statistics before that pass.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nfgnn.nn import RunningStatistics
from nfgnn.training.stacked_parameters import Tree


class StackedStatistics:
    """Current and best running statistics, ``[runs, size]``; size is 0 for models without any.

    Args:
        models: the model of every run.
        device: of the models.
    """

    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        self.shapes = {name: value.shape for name, value in _statistics(models[0]).items()}
        rows = [
            torch.cat([torch.empty(0, device=device), *_statistics(model).values()])
            for model in models
        ]
        self.current = torch.stack(rows)
        self.evaluated = self.current.clone()
        """Those of the last evaluation."""
        self.best = self.current.clone()

    def views(self) -> Tree:
        """Return each buffer of all rows as a view, ``[runs, channels]``."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        return dict(zip(self.shapes, self.current.split(sizes, dim=1)))

    def mark_evaluated(self) -> None:
        """Note the current statistics, which an evaluation is about to use."""
        self.evaluated.copy_(self.current)

    def keep_best(self, improved: Tensor) -> None:
        """Keep the evaluated statistics of the rows that are ``improved``."""
        torch.where(improved[:, None], self.evaluated, self.best, out=self.best)

    def keep_rows(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.current = self.current[rows].clone()
        self.evaluated = self.evaluated[rows].clone()
        self.best = self.best[rows].clone()

    def write(self, row: Tensor, model: nn.Module) -> None:
        """Give the statistics of a row to a model."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        for buffer, part in zip(_statistics(model).values(), row.split(sizes)):
            buffer.copy_(part)


def _statistics(model: nn.Module) -> Tree:
    """Return the running statistics of a model by the names of their buffers."""
    found: Tree = {}
    for path, module in model.named_modules():
        if isinstance(module, RunningStatistics):
            found |= {f"{path}.{name}": value for name, value in module.named_buffers()}
    return found
