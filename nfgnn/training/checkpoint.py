"""Checkpoints of mini-batch training: one file, written atomically.

Only mini-batch training takes long enough to need them. Whole-graph runs start again from the
first epoch; ``--resume`` keeps the seeds that are finished (:mod:`nfgnn.training.records`).

Tensors are stored in the safetensors format, everything else as JSON in the header of that file.
Nothing is unpickled.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.training.history import History
from nfgnn.training.optimizer import FusedAdam
from nfgnn.training.tensor_files import save_tensors

_CURVES = ("train_loss", "val_loss", "val_accuracy", "val_metric", "seconds")


@dataclass
class Checkpoint:
    """The progress of a training."""

    loss: Tensor
    """Sum of the training loss over the rows of the current epoch."""
    epoch: int = 0
    step: int = 0
    """Number of steps done in the current epoch."""
    history: History = field(default_factory=History)
    best: dict[str, Tensor] = field(default_factory=dict)
    """Weights of the best epoch; empty until the first epoch has ended."""


def save_checkpoint(
    path: Path, model: nn.Module, optimizer: FusedAdam, checkpoint: Checkpoint
) -> None:
    """Write model, optimizer and progress under a temporary name, then rename."""
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in checkpoint.best.items()}
    tensors |= {f"optimizer.{key}": value for key, value in optimizer.state().items()}
    header = {
        "epoch": checkpoint.epoch,
        "step": checkpoint.step,
        "loss": checkpoint.loss.item(),
        "train_loss": checkpoint.history.train_loss,
        "val_loss": checkpoint.history.val_loss,
        "val_accuracy": checkpoint.history.val_accuracy,
        "val_metric": checkpoint.history.val_metric,
        "seconds": checkpoint.history.seconds,
    }
    # Copies, because safetensors accepts neither shared memory nor non-contiguous tensors.
    copies = {
        key: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        for key, value in tensors.items()
    }
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    save_tensors(copies, partial, {"progress": json.dumps(header)})
    partial.replace(path)


def load_checkpoint(path: Path, model: nn.Module, optimizer: FusedAdam) -> Checkpoint:
    """Put model and optimizer into the saved state and return the progress."""
    try:
        with safe_open(path, framework="pt") as file:
            header: dict[str, Any] = json.loads((file.metadata() or {})["progress"])
            header.setdefault("val_metric", [])  # checkpoints of older versions lack it
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        model.load_state_dict(_with_prefix("model.", tensors))
        optimizer.load_state(_with_prefix("optimizer.", tensors))
        device = next(model.parameters()).device
        best = _with_prefix("best.", tensors)
        return Checkpoint(
            loss=torch.tensor(header["loss"], dtype=torch.float64, device=device),
            epoch=header["epoch"],
            step=header["step"],
            history=History(**{key: header[key] for key in _CURVES}),
            best={key: value.to(device) for key, value in best.items()},
        )
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}): start again without --resume") from None


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name starts with the prefix, without it."""
    return {
        key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)
    }
