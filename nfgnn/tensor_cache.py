"""A cache for values that are derived from tensors."""

import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@contextmanager
def constants() -> Iterator[None]:
    """Context in which new tensors have no gradient, and any later pass can use them.

    Tensors that are created in ``torch.inference_mode`` cannot be saved for a backward pass.
    """
    with torch.inference_mode(False), torch.no_grad():
        yield


@dataclass(frozen=True)
class _Entry:
    references: tuple[weakref.ref[Any], ...]
    """To the tensors or their memory. They remove the entry."""
    versions: tuple[int, ...]
    """How often each tensor had been changed in place."""
    value: Any


class TensorCache:
    """Remember what was computed from tensors, for as long as the tensors live.

    An entry belongs to tensor objects, not to their values. It is dropped when one of the tensors
    is deleted, and replaced once one of them has been changed in place. So a graph is normalised
    once instead of in every forward pass, and a model that is applied to another graph never sees
    the operator of the first one.

    A value has no gradient. It must not contain the tensors that it is computed from, or views of
    them, because the cache would then keep them alive. ``tensor.detach()`` is a tensor of its own.

    Args:
        by_memory: whether dense tensors that are views of the same memory count as one, for as long
            as the memory lives. Compiled code passes such aliases to its backward pass.
    """

    def __init__(self, by_memory: bool = False) -> None:
        self._by_memory = by_memory
        self._entries: dict[Hashable, _Entry] = {}

    def lookup(
        self, tensors: tuple[Tensor | None, ...], options: Hashable, make: Callable[[], T]
    ) -> T:
        """Return the value for these tensors and options. ``make`` computes it the first time."""
        present = [t for t in tensors if t is not None]
        if any(t.is_inference() for t in present):
            # Inference tensors do not count changes in place.
            return make()
        identify = _place if self._by_memory else id
        key = (tuple(None if t is None else identify(t) for t in tensors), options)
        versions = tuple(t._version for t in present)
        entry = self._entries.get(key)
        if entry is None or entry.versions != versions:
            with constants():
                value = make()

            def forget(_: Any) -> None:
                self._entries.pop(key, None)

            owners = [t.untyped_storage() if self._by_memory else t for t in present]
            references = tuple(weakref.ref(owner, forget) for owner in owners)
            entry = _Entry(references, versions, value)
            self._entries[key] = entry
        cached: T = entry.value
        return cached

    def __len__(self) -> int:
        return len(self._entries)


def _place(tensor: Tensor) -> Hashable:
    """Return where the values of a tensor are."""
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
