"""The splits that a source ships: train, val and test as boolean masks, [n] or [n, splits]."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.arrays import as_array
from nfgnn.data.labels import UNLABELLED, few
from nfgnn.errors import UserError

MASKS = ("train_mask", "val_mask", "test_mask")


def check_masks(
    data: Data, y: Tensor, class_names: list[str], notes: list[str], where: str
) -> dict[str, Tensor]:
    """Return the masks of ``data`` as boolean tensors of one shape: disjoint, and labelled nodes only."""
    masks = {
        key: _boolean(key, data.get(key), len(y), where)
        for key in MASKS
        if data.get(key) is not None
    }
    if len({tuple(mask.shape) for mask in masks.values()}) > 1:
        shapes = ", ".join(f"{key} {list(mask.shape)}" for key, mask in masks.items())
        raise UserError(f"{where}: the masks differ in shape: {shapes}.")
    if masks:
        times = torch.stack(list(masks.values())).sum(dim=0)
        if int(times.max()) > 1:
            node = int((times > 1).nonzero()[0, 0])
            raise UserError(
                f"{where}: node {node} is in more than one of train, val and test; it may be in one only."
            )
    return _labelled(masks, y, class_names, notes)


def _boolean(key: str, value: object, n: int, where: str) -> Tensor:
    mask = as_array(value, key, where)
    if mask.ndim not in (1, 2) or len(mask) != n:
        raise UserError(
            f"{where}: `{key}` has shape {list(mask.shape)}; [{n}] or [{n}, splits] is needed."
        )
    if mask.dtype != bool and not ((mask == 0) | (mask == 1)).all():
        raise UserError(f"{where}: `{key}` must hold true and false only.")
    return torch.from_numpy(np.array(mask, dtype=bool))


def _labelled(
    masks: dict[str, Tensor], y: Tensor, class_names: list[str], notes: list[str]
) -> dict[str, Tensor]:
    """Leave unlabelled nodes out of the masks; say when a class never occurs in training."""
    known = y != UNLABELLED
    column = {key: known if mask.dim() == 1 else known[:, None] for key, mask in masks.items()}
    stray = sum(
        int((mask & ~column[key]).reshape(len(y), -1).any(dim=1).sum())
        for key, mask in masks.items()
    )
    if stray:
        notes.append(
            f"left {stray:,} unlabelled node{'s' if stray > 1 else ''} out of train, val and test"
        )
    masks = {key: mask & column[key] for key, mask in masks.items()}
    if "train_mask" in masks:
        present = set(y[known].tolist())
        unseen = {
            c
            for split in masks["train_mask"].reshape(len(y), -1).unbind(1)
            for c in present - set(y[split].tolist())
        }
        if unseen:
            notes.append(
                f"some split has no training node of class {few([class_names[c] for c in sorted(unseen)])}"
            )
    return masks
