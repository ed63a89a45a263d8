"""One run: a model fitted to a graph with masks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.adam import adam
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn import NodeModel, as_node_model
from nfgnn.training.batched import Member, fit_many
from nfgnn.training.config import TrainingConfig
from nfgnn.training.history import History
from nfgnn.training.process_pool import one_thread

OnEpoch = Callable[[History], None]
Inputs = tuple[Tensor, Tensor, Tensor | None]


def fit(
    model: nn.Module, data: Data, config: TrainingConfig, on_epoch: OnEpoch | None = None
) -> History:
    """Train ``model`` on ``data`` (masks, scaled features) and leave it with the weights of least validation loss.

    Randomness (dropout) comes from torch's global generator: seed it first.

    A :class:`~nfgnn.nn.NodeModel` may have parts that are trained alone first (``pretraining``) and a loss of its own
    (``training_loss``). Any other module is trained by the cross-entropy of its logits.
    """
    model = as_node_model(model)
    if data.x.is_cuda and model.batchable:
        return _fit_on_gpu(model, data, config, on_epoch)
    for part, epochs in model.pretraining():
        fit(part, data, replace(config, epochs=epochs))
    train, val = (_nodes(data, name) for name in ("train_mask", "val_mask"))
    y_train, y_val = data.y[train], data.y[val]
    inputs = (data.x, data.edge_index, data.get("edge_weight"))
    optimizer = _Adam(parameter_groups(model, config))
    weights = [t for t in model.state_dict().values() if t.is_floating_point()]
    best, best_loss, history, start = (
        [w.clone() for w in weights],
        float("inf"),
        History(),
        time.perf_counter(),
    )
    with threads_for(stored_values(data.x), model, data.x.device):
        for epoch in range(config.epochs + 1):
            logits, held = _passes(model, inputs, epoch < config.epochs)
            if epoch > 0:  # the evaluation after the step before
                held = held.index_select(0, val)
                history.val_loss.append(F.cross_entropy(held, y_val).item())
                history.val_accuracy.append(int((held.argmax(-1) == y_val).sum()) / len(y_val))
                if history.val_loss[-1] < best_loss:
                    best_loss = history.val_loss[-1]
                    for kept, now in zip(best, weights):
                        kept.copy_(now)
                if on_epoch is not None:
                    on_epoch(history)
                if history.should_stop(config.patience):
                    break
            if epoch < config.epochs:
                loss = model.training_loss(*inputs, train, y_train, config.label_smoothing, logits)
                loss.backward()
                optimizer.step()
                history.train_loss.append(loss.item())
    history.seconds = time.perf_counter() - start
    history.check()
    with torch.no_grad():
        for kept, now in zip(best, weights):
            now.copy_(kept)
    return history


def _fit_on_gpu(
    model: NodeModel, data: Data, config: TrainingConfig, on_epoch: OnEpoch | None
) -> History:
    """A single run through the trainer of many, which captures its epochs."""
    member = Member(model, data.train_mask, data.val_mask, config)
    tell = None if on_epoch is None else lambda histories: on_epoch(histories[0])
    (history,) = fit_many([member], data, tell)
    history.check()
    return history


def _passes(model: NodeModel, inputs: Inputs, more: bool) -> tuple[Tensor | None, Tensor]:
    """The logits of evaluation, and before them those of training, if there are ``more`` steps and the model can make
    both at once."""
    if more and model.shares_passes:
        return model.forward_pair(*inputs)
    with torch.no_grad():
        return None, model.eval()(*inputs)


def parameter_groups(model: NodeModel, config: TrainingConfig) -> list[dict[str, Any]]:
    """Two optimiser groups: the filter and the rest."""
    of_filter = set() if model.filter is None else set(model.filter.parameters())
    filters: list[Tensor] = []
    others: list[Tensor] = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            (filters if parameter in of_filter else others).append(parameter)
    groups = [
        {"params": others, "lr": config.lr, "weight_decay": config.weight_decay},
        {"params": filters, "lr": config.filter_lr, "weight_decay": config.filter_weight_decay},
    ]
    return [group for group in groups if group["params"]]


class _Adam:
    """torch's fused Adam by its function: what the class does around it takes as long as a product on a small graph."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        self.groups = groups
        for group in groups:
            for p in group["params"]:
                p.grad = None
            group["means"], group["squares"] = (
                [torch.zeros_like(p) for p in group["params"]] for _ in range(2)
            )
            group["steps"] = [torch.zeros((), device=p.device) for p in group["params"]]

    @torch.no_grad()
    def step(self) -> None:
        """One step of all parameters that have a gradient, which they then lose."""
        for group in self.groups:
            used = [i for i, p in enumerate(group["params"]) if p.grad is not None]
            params, means, squares, steps = (
                [group[key][i] for i in used] for key in ("params", "means", "squares", "steps")
            )
            adam(
                params, [p.grad for p in params], means, squares, [], steps, lr=group["lr"],
                weight_decay=group["weight_decay"], beta1=0.9, beta2=0.999, eps=1e-8, amsgrad=False, maximize=False,
                fused=True,
            )  # fmt: skip
            for p in params:
                p.grad = None


def _nodes(data: Data, mask: str) -> Tensor:
    nodes: Tensor = data[mask].nonzero().flatten()
    if nodes.numel() == 0:
        raise UserError(
            f"{mask} is empty: training needs nodes to train on and nodes to validate on"
        )
    return nodes


@contextmanager
def threads_for(stored: int, model: nn.Module, device: torch.device) -> Iterator[None]:
    """One thread for small work on the CPU, ``stored`` values a step: handing it to more costs more than it brings."""
    with one_thread(device.type != "cuda" and is_small(stored, model)):
        yield


def is_small(stored: int, model: nn.Module) -> bool:
    """Whether one thread does best with so many stored values a step."""
    widest = max((p.shape[0] for p in model.parameters() if p.dim() == 2), default=1)
    return stored * widest < 2e8


def stored_values(x: Tensor) -> int:
    """Number of values that a dense or sparse matrix holds."""
    return x.numel() if x.layout == torch.strided else x.values().numel()
