"""Results that stay in memory."""

from collections.abc import Callable, Sequence
from typing import Any

from nfgnn.training.execution import Results
from nfgnn.training.run import RunResult, RunSpec


class InMemory(Results):
    """Keep results in memory, for figures and studies that look into fitted models.

    Args:
        reduce: returns what to keep of a result; by default the result with its fitted classifier.
            Worker processes need a function of a module.
    """

    def __init__(self, reduce: Callable[[RunResult], Any] | None = None) -> None:
        self._reduce = reduce
        self.results: list[Any] = []
        """What was kept, in the order in which runs finished."""
        self._specs: list[RunSpec] = []

    def in_worker(self) -> "InMemory":
        return InMemory(self._reduce)

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if spec not in self._specs]

    def pack(self, result: RunResult) -> Any:
        return result if self._reduce is None else self._reduce(result)

    def store(self, spec: RunSpec, packed: Any) -> str:
        self._specs.append(spec)
        self.results.append(packed)
        return ""

    def find(self, spec: RunSpec) -> Any:
        """Return what was kept of a run, or ``None`` if it has no result."""
        if spec not in self._specs:
            return None
        return self.results[self._specs.index(spec)]
