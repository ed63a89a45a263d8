"""A cache for values that are derived from tensors."""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")


class TensorCache:
    """Remember what was computed from tensors, for as long as the tensors live.

    An entry belongs to tensor objects, not to their values. It is dropped when one of the tensors
    is deleted, and ignored once one of them has been changed in place. So a graph is normalised
    once instead of in every forward pass, and a model that is applied to another graph never sees
    the operator of the first one.

    Args:
        by_memory: whether dense tensors that are views of the same memory count as one, for as long
            as the memory lives. Compiled code passes such aliases to its backward pass.
    """

    def __init__(self, by_memory: bool = False) -> None:
        self._by_memory = by_memory
        self._entries: dict[Hashable, tuple[tuple[weakref.ref[Any], ...], Any]] = {}

    def lookup(
        self, tensors: tuple[Tensor | None, ...], options: Hashable, make: Callable[[], T]
    ) -> T:
        """Return the value for these tensors and options. ``make`` computes it the first time."""
        present = [t for t in tensors if t is not None]
        if any(t.is_inference() for t in present):
            # Inference tensors do not count changes in place.
            return make()
        if self._by_memory:
            versions = tuple(None if t is None else _place(t) for t in tensors)
        else:
            versions = tuple(None if t is None else (id(t), t._version) for t in tensors)
        key = (versions, options)
        if key not in self._entries:
            value = make()

            def forget(_: Any) -> None:
                self._entries.pop(key, None)

            owners = [t.untyped_storage() if self._by_memory else t for t in present]
            refs = tuple(weakref.ref(owner, forget) for owner in owners)
            self._entries[key] = (refs, value)
        cached: T = self._entries[key][1]
        return cached

    def __len__(self) -> int:
        return len(self._entries)


def _place(tensor: Tensor) -> Hashable:
    """Return where the values of a tensor are, and how often they have been changed."""
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor._version
