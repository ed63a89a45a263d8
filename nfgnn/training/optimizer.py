"""Optimizer groups and Adam.

Every model has two groups: its filter (the submodule ``prop``) and everything else, each with its
own learning rate and L2 penalty.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from nfgnn.nn import NodeModel
from nfgnn.spectral import triton_supports
from nfgnn.training.config import TrainingConfig

BETAS = (0.9, 0.999)
EPSILON = 1e-8


def parameter_groups(model: NodeModel, config: TrainingConfig) -> list[dict[str, Any]]:
    """Return the optimizer groups of a model: everything but the filter, and the filter."""
    of_filter = set() if model.filter is None else set(model.filter.parameters())
    filters: list[Tensor] = []
    others: list[Tensor] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            group = filters if parameter in of_filter else others
            group.append(parameter)
    groups = [
        {"params": others, "lr": config.lr, "weight_decay": config.weight_decay},
        {
            "params": filters,
            "lr": config.filter_lr,
            "weight_decay": config.filter_weight_decay,
        },
    ]
    return [group for group in groups if group["params"]]


class FusedAdam:
    """Torch's fused Adam without the overhead of ``torch.optim.Adam``.

    On a small graph that overhead takes as long as a sparse product. The numbers are the same.
    """

    def __init__(self, model: NodeModel, config: TrainingConfig) -> None:
        self.warmup_epochs = config.warmup_epochs
        self.groups = parameter_groups(model, config)
        for group in self.groups:
            parameters = group["params"]
            for p in parameters:
                p.grad = None
            group["exp_avg"] = [torch.zeros_like(p) for p in parameters]
            group["exp_avg_sq"] = [torch.zeros_like(p) for p in parameters]
            # The fused kernel reads and increments the step on the device.
            group["step"] = [torch.zeros((), device=p.device) for p in parameters]

    @torch.no_grad()
    def step(self, epoch: int = 0) -> None:
        """Update all parameters that have a gradient, and drop their gradients.

        Args:
            epoch: the present epoch, counted from 0, for the warm-up.
        """
        rate = min(1.0, (epoch + 1) / max(1, self.warmup_epochs))
        for group in self.groups:
            parameters = group["params"]
            # As in torch.optim, moments of parameters without a gradient do not decay.
            used = [i for i, p in enumerate(parameters) if p.grad is not None]
            updated = [parameters[i] for i in used]
            adam(
                updated,
                [p.grad for p in updated],
                [group["exp_avg"][i] for i in used],
                [group["exp_avg_sq"][i] for i in used],
                [],
                [group["step"][i] for i in used],
                lr=rate * group["lr"],
                weight_decay=group["weight_decay"],
                beta1=BETAS[0],
                beta2=BETAS[1],
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
                fused=True,
            )
            for p in updated:
                p.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the moments as ``"0.exp_avg"``, …: number of the parameter and name."""
        tensors = {}
        for number, (group, i) in enumerate(self._slots()):
            for name in ("exp_avg", "exp_avg_sq", "step"):
                tensors[f"{number}.{name}"] = group[name][i]
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take over the moments that :meth:`state` returned."""
        for number, (group, i) in enumerate(self._slots()):
            for name in ("exp_avg", "exp_avg_sq", "step"):
                group[name][i].copy_(tensors[f"{number}.{name}"])

    def _slots(self) -> list[tuple[dict[str, Any], int]]:
        return [(group, i) for group in self.groups for i in range(len(group["params"]))]


class StackedAdam:
    """Adam for the rows of a weight matrix, one run per row, each with its own rates.

    Args:
        weights: ``[runs, size]``; the columns from ``filter_start`` on belong to the filter.
        filter_start: first column of the filter.
        configs: learning rates and penalties of every run.
    """

    def __init__(
        self, weights: Tensor, filter_start: int, configs: Sequence[TrainingConfig]
    ) -> None:
        self.m = torch.zeros_like(weights)
        self.v = torch.zeros_like(weights)
        self.filter_start = filter_start
        # In float64, because 1 - 0.999^t loses digits in float32. Tensors, because a captured CUDA
        # graph repeats Python numbers as they were.
        self.betas = torch.tensor(BETAS, dtype=torch.float64, device=weights.device)
        self.powers = torch.ones_like(self.betas)
        self.lr = weights.new_tensor([(c.lr, c.filter_lr) for c in configs])
        self.weight_decay = weights.new_tensor(
            [(c.weight_decay, c.filter_weight_decay) for c in configs]
        )
        self.steps = torch.zeros_like(self.powers[0])
        # Without a warm-up nothing is computed for it. A batch has it or not from start to end.
        self.warmup: Tensor | None = None
        if any(c.warmup_epochs for c in configs):
            self.warmup = weights.new_tensor([max(1, c.warmup_epochs) for c in configs])[:, None]

    def keep_rows(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.m = self.m[rows].clone()
        self.v = self.v[rows].clone()
        self.lr = self.lr[rows].clone()
        self.weight_decay = self.weight_decay[rows].clone()
        if self.warmup is not None:
            self.warmup = self.warmup[rows].clone()

    def step(self, weights: Tensor, gradient: Tensor, active: Tensor) -> None:
        """Update the rows that are ``active``."""
        self.powers.mul_(self.betas)
        lr = self._rates()
        if triton_supports(weights):
            from nfgnn.kernels import training_step

            training_step.adam(
                weights, gradient, self.m, self.v, self.powers, lr, self.weight_decay,
                active, self.filter_start,
            )  # fmt: skip
            return
        correction_1, correction_2 = (1 - self.powers).to(weights.dtype)
        columns = (slice(0, self.filter_start), slice(self.filter_start, None))
        for group, part in enumerate(columns):
            p = weights[:, part]
            m = self.m[:, part]
            v = self.v[:, part]
            g = torch.addcmul(gradient[:, part], p, self.weight_decay[:, group, None])
            m.lerp_(g, 0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            root = v.sqrt().div_(correction_2.sqrt()).add_(EPSILON)
            rate = lr[:, group, None] * active[:, None] / correction_1
            p.addcdiv_(m * -rate, root)

    def _rates(self) -> Tensor:
        """Return the learning rates of this step, ``[runs, 2]``."""
        if self.warmup is None:
            return self.lr
        self.steps += 1
        return self.lr * (self.steps / self.warmup).clamp(max=1)
