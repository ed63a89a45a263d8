"""Things derived from a tensor, kept for as long as the tensor lives."""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")


class TensorCache:
    """Remembers what was computed from tensors, by identity.

    An entry belongs to the very tensor objects it was made from, is dropped when one of them dies, and is not used
    once one of them has been changed in place. So a graph is normalised once, not in every forward pass, and a model
    that is then applied to another graph never sees the first one's operator.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[tuple[weakref.ref[Tensor], ...], Any]] = {}

    def lookup(
        self, tensors: tuple[Tensor | None, ...], options: Hashable, make: Callable[[], T]
    ) -> T:
        """The value for these tensors and options; ``make`` computes it the first time."""
        present = [t for t in tensors if t is not None]
        if any(t.is_inference() for t in present):  # these keep no count of changes in place
            return make()
        key = (tuple(None if t is None else (id(t), t._version) for t in tensors), options)
        if key not in self._entries:
            value = make()

            def forget(_: Any) -> None:
                self._entries.pop(key, None)

            refs = tuple(weakref.ref(t, forget) for t in present)
            self._entries[key] = (refs, value)
        return self._entries[key][1]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._entries)
