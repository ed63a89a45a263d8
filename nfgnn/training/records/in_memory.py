"""Results that stay in memory, with their fitted models."""

from collections.abc import Sequence

from nfgnn.training.execution import Results
from nfgnn.training.run import RunResult, RunSpec


class InMemory(Results):
    """Keep fitted classifiers, for figures and studies that look into them."""

    def __init__(self) -> None:
        self.results: list[RunResult] = []

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if not any(r.spec == spec for r in self.results)]

    def pack(self, result: RunResult) -> RunResult:
        return result

    def store(self, spec: RunSpec, packed: RunResult) -> str:
        self.results.append(packed)
        return ""

    def find(self, spec: RunSpec) -> RunResult:
        """Return the result of a run."""
        return next(result for result in self.results if result.spec == spec)
