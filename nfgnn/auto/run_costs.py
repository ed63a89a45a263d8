"""The time that runs take, estimated from finished ones."""

from nfgnn.auto.candidate_runs import RunRecord
from nfgnn.training import RunConfig, same_cost

_USUAL_EPOCHS = 250
"""Epochs until a training stops, as long as none has finished."""


class RunCosts:
    """Estimates seconds of runs. Only recorded times count, so equal records give equal plans."""

    def __init__(self) -> None:
        self._finished: list[tuple[RunConfig, RunRecord]] = []

    def add(self, config: RunConfig, record: RunRecord) -> None:
        """Add a finished run."""
        if record.epochs:
            self._finished.append((config, record))

    def seconds(self, config: RunConfig) -> float:
        """Return the expected seconds of a run; 0 as long as nothing is known."""
        known = self._similar(config)
        if not known:
            return 0.0
        per_epoch = sum(record.seconds / record.epochs for _, record in known) / len(known)
        extra = max(record.extra_seconds for _, record in known)
        return per_epoch * self.epochs(config) + extra

    def epochs(self, config: RunConfig) -> float:
        """Return the expected number of epochs until a training stops."""
        allowed = config.training.epochs
        stopped = [
            (other, record.epochs)
            for other, record in self._finished
            if not record.is_cut and record.epochs < other.training.epochs
        ]
        same = [epochs for other, epochs in stopped if other == config]
        found = same or [epochs for _, epochs in stopped] or [_USUAL_EPOCHS]
        return min(allowed, sum(found) / len(found))

    def _similar(self, config: RunConfig) -> list[tuple[RunConfig, RunRecord]]:
        """Return runs with the same cost per epoch, else those of the same model, else all."""
        settings = config.to_dict()
        same = [run for run in self._finished if same_cost(run[0], settings)]
        return same or [run for run in self._finished if run[0].model == config.model]
