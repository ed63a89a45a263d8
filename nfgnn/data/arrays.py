"""Whatever holds numbers → a NumPy array, or one message that says which part of the graph does not."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.errors import UserError


def as_array(value: Any, key: str, where: str, kinds: str = "biuf") -> np.ndarray:
    """``value`` as an array of one of the ``kinds`` of NumPy types (b, i, u, f; U, S and O for text and objects)."""
    try:
        if isinstance(value, Tensor):
            value = value.to_dense() if value.layout != torch.strided else value
            value = (
                value.float() if value.dtype == torch.bfloat16 else value
            )  # NumPy has no such type
            array: np.ndarray = value.numpy(force=True)
        else:
            array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise UserError(f"{where}: `{key}` cannot be read as an array: {reason}") from None
    if array.dtype.kind not in kinds:
        raise UserError(f"{where}: `{key}` is of type {array.dtype}; numbers are needed.")
    return array
