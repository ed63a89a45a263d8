"""The state of a training on rows, in one file that is there whole or not at all.

Tensors lie in the safetensors format; everything else is a JSON text in that file's header. Nothing is unpickled.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.training.history import History


@dataclass
class Progress:
    """How far a training is."""

    epoch: int
    step: int
    """Steps done in that epoch."""
    loss: Tensor
    """Sum of the training loss over the rows of those steps."""
    history: History
    best: dict[str, Tensor]
    """The state of least validation loss; empty before the first epoch has ended."""


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress
) -> None:
    """Write model, optimiser and progress under a temporary name, then rename."""
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in progress.best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{number}.{key}": torch.as_tensor(value) for key, value in state.items()
        }
    history = progress.history
    about = {
        "epoch": progress.epoch,
        "step": progress.step,
        "loss": progress.loss.item(),
        "train_loss": history.train_loss,
        "val_loss": history.val_loss,
        "val_accuracy": history.val_accuracy,
        "seconds": history.seconds,
    }
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    # A copy each, row by row: the format takes neither shared memory nor other layouts.
    plain = {
        k: v.detach().cpu().clone(memory_format=torch.contiguous_format) for k, v in tensors.items()
    }
    save_file(plain, partial, {"progress": json.dumps(about)})
    partial.replace(path)


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Put model and optimiser into the saved state."""
    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {})["progress"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        model.load_state_dict(_under("model.", tensors))
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for key, value in _under("optimizer.", tensors).items():
            number, name = key.split(".", 1)
            like = parameters[
                int(number)
            ]  # Adam's fused kernel takes for granted that both have the same layout
            value = torch.empty_like(like).copy_(value) if value.shape == like.shape else value
            state.setdefault(int(number), {})[name] = value
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
        curves = {key: about[key] for key in ("train_loss", "val_loss", "val_accuracy", "seconds")}
        device = next(model.parameters()).device
        best = {key: value.to(device) for key, value in _under("best.", tensors).items()}
        loss = torch.tensor(about["loss"], dtype=torch.float64, device=device)
        return Progress(about["epoch"], about["step"], loss, History(**curves), best)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}): start anew without --resume") from None


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)
    }
