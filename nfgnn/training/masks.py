"""Masks of nodes as users pass them: booleans, or values that mean the same."""

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError

MASKS = ("train_mask", "val_mask", "test_mask")
_INSTEAD = "pass booleans, not indices of nodes"


def boolean_mask(mask: Any, num_nodes: int, name: str) -> Tensor:
    """Return a mask as booleans, ``[num_nodes]`` or one column per split.

    Indices of nodes are refused, because they can be mistaken for a mask.

    Args:
        mask: a tensor, an array or a sequence of True and False, or of 1 and 0.
        num_nodes: number of nodes of the graph.
        name: what an error message calls the mask.
    """
    try:
        values = torch.as_tensor(mask)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{name} is not a mask: pass one boolean per node") from None
    if values.dim() not in (1, 2) or len(values) != num_nodes:
        raise UserError(
            f"{name} has the shape {list(values.shape)}, but must have one value per node, "
            f"[{num_nodes}]: {_INSTEAD}"
        )
    if values.dtype == torch.bool:
        return values
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise UserError(
            f"{name} holds {wrong[0].item()}, but every value must be True or False: {_INSTEAD}"
        )
    return values.bool()


def with_boolean_masks(data: Data) -> Data:
    """Return the graph with its masks as booleans. A graph that has them is returned itself."""
    converted = {}
    for name in MASKS:
        mask = data.get(name)
        if mask is None:
            continue
        values = boolean_mask(mask, data.num_nodes, name)
        if values is not mask:
            converted[name] = values
    if not converted:
        return data
    data = copy.copy(data)
    for name, values in converted.items():
        data[name] = values
    return data
