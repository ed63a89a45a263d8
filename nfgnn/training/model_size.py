"""Check the size of a model while it is built, before its weights are allocated."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_ALLOCATING = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}


class CheckedAllocation(TorchFunctionMode):
    """Call a function with the bytes of all new tensors of a block, before each is allocated.

    Settings and files declare the widths of a model. A wrong one can ask for more memory than the
    machine has, which the system answers by killing the process.

    Args:
        check: called with the number of bytes; raises an error to refuse it.
    """

    def __init__(self, check: Callable[[int], None]) -> None:
        super().__init__()
        self.check = check
        self.num_bytes = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func in _ALLOCATING:
            # A tensor on "meta" has a shape and a type, but takes no memory.
            declared = func(*args, **{**options, "device": "meta"})
            self.num_bytes += declared.numel() * declared.element_size()
            self.check(self.num_bytes)
        return func(*args, **options)
