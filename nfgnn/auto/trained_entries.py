"""The configurations of a search, their trainings, and what is known about them.

:mod:`nfgnn.auto.search` decides what is trained. This file trains it within the budget, and answers
from the records of finished and cut trainings.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfgnn.auto.budget import Budget
from nfgnn.auto.candidate import Candidate
from nfgnn.auto.candidate_runs import CandidateRuns, RunRecord
from nfgnn.auto.expected_scores import PartialRun
from nfgnn.auto.leaderboard import regrets
from nfgnn.auto.run_costs import RunCosts
from nfgnn.auto.run_memory import lacking_memory
from nfgnn.auto.sampler import ScoredConfig
from nfgnn.auto.schedule import CUT_TOLERANCE, LEAST_SECONDS, LONGEST_SHARE
from nfgnn.auto.search_progress import SearchProgress
from nfgnn.auto.validation import ValidationSplits
from nfgnn.files import atomic_write
from nfgnn.progress import Progress, duration
from nfgnn.training import (
    Executor,
    Failure,
    Metric,
    RunConfig,
    RunSpec,
    TimeLimit,
    execute,
)


@dataclass(frozen=True)
class Entry:
    """A configuration of the search."""

    config: RunConfig
    family: str
    origin: str


@dataclass
class Executors:
    """Where the runs of a search execute.

    Args:
        first: executes the first run, in this process while worker processes start.
        rest: executes all others.
        limit: the time limit of both.
        workers: number of runs that ``rest`` executes at the same time.
        is_batched: whether runs of the same shape are trained as one computation.
    """

    first: Executor
    rest: Executor
    limit: TimeLimit
    workers: int = 1
    is_batched: bool = False


class TrainedEntries:
    """The configurations of a search with their trainings.

    Args:
        splits: the graph with its validation splits.
        metric: what configurations are compared by.
        entries: the configurations; a search adds others.
        budget: time or runs.
        folder: for finished runs and written decisions.
        executors: where runs execute.
        progress: reports the best score so far.
        device: where to train.
    """

    def __init__(
        self,
        splits: ValidationSplits,
        metric: Metric,
        entries: Sequence[Entry],
        budget: Budget,
        folder: Path,
        executors: Executors,
        progress: Progress,
        device: str,
    ) -> None:
        self.splits = splits
        self.metric = metric
        self.entries = list(entries)
        self.budget = budget
        self.folder = folder
        self.executors = executors
        self.progress = progress
        self.device = device
        self.costs = RunCosts()
        self.runs = CandidateRuns(folder / "runs", self._on_finish)
        self.finished: set[Path] = set()
        """Folders of the runs that are planned and have ended."""
        self._decisions = 0
        self._best: str | None = None

    def train(
        self,
        planned: Sequence[tuple[RunConfig, int]],
        share: float = 1.0,
        longest: float | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Train configurations on splits until the budget is used.

        Args:
            planned: configurations and numbers of splits, the most important first.
            share: share of the budget for trainings after which all of them end.
            longest: seconds after which a single training ends.
            executor: where to train; by default where most runs are trained.
        """
        count = int(min(len(planned), self.budget.runs_left))
        wanted = [self.splits.spec(config, split) for config, split in planned[:count]]
        specs = wanted
        self.budget.runs_planned += count
        if self.budget.is_timed:
            limit = self.executors.limit
            limit.end = self.budget.end(share)
            limit.longest = longest or LONGEST_SHARE * self.budget.training_seconds
            limit.estimate = self._expected_seconds
            if not self.finished:
                # There must be an answer, even if it took long to load the graph.
                limit.end = max(limit.end, time.monotonic() + LEAST_SECONDS)
                limit.longest = max(limit.longest, LEAST_SECONDS)
            specs = [spec for spec in specs if not self._was_cut_at(spec, limit.longest)]
        failures = self._lacking_memory(specs)
        too_large = [failure.spec for failure in failures]
        failures += execute(
            [spec for spec in specs if spec not in too_large],
            self.runs,
            executor or self.executors.rest,
            SearchProgress(self.progress, self._status, self._done),
            self.device,
            start_progress=False,
        )
        for failure in failures:
            self.runs.store_failure(failure)
        for spec in wanted:
            record = self._record_of(spec)
            if record is not None:
                self.finished.add(self.runs.path(spec))
                self.costs.add(spec.config, record)
                # A member of the ensemble has one model per split.
                self.budget.prediction_seconds = max(
                    self.budget.prediction_seconds, self.splits.count * record.extra_seconds
                )
        self._report_best()

    def decided(self, decide: Callable[[], Any]) -> Any:
        """Return a decision that depends on the time left.

        It is written to a file, because a resumed search must decide the same.
        """
        path = self.folder / "decisions" / f"{self._decisions:04}.json"
        self._decisions += 1
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        decision = decide()
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, json.dumps(decision))
        return decision

    def record(self, config: RunConfig, split: int) -> RunRecord | None:
        """Return the record of a run that has a model, perhaps of one that was cut.

        A resumed search does not see what it has not planned yet, so that it decides as before.
        """
        spec = self.splits.spec(config, split)
        if self.runs.path(spec) not in self.finished:
            return None
        record = self._record_of(spec)
        return None if record is None or record.failure else record

    def records(self, config: RunConfig) -> list[RunRecord]:
        """Return the records of a configuration on the first splits, up to the first gap."""
        found = []
        for split in range(self.splits.count):
            record = self.record(config, split)
            if record is None:
                break
            found.append(record)
        return found

    def is_finished(self, entry: Entry) -> bool:
        """Whether a configuration was trained to the end on the given split."""
        return self.runs.find(self.splits.spec(entry.config, 0)) is not None

    def is_dead(self, entry: Entry) -> bool:
        """Whether a training never rose above chance."""
        return any(record.is_dead for record in self.records(entry.config))

    def partial_run(self, entry: Entry) -> PartialRun:
        spec = self._trained_spec(entry.config, 0)
        record = self._record_of(spec)
        assert record is not None
        curve = [self._greater(score) for score in self.runs.scores(spec, self.metric)]
        numbers = tuple(-math.inf if math.isnan(score) else score for score in curve)
        return PartialRun(self._greater(record.score), numbers, self.is_finished(entry))

    def ranked(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries with a model, the best first.

        Trainings that never rose above chance come last.
        """
        found = [(entry, self.records(entry.config)) for entry in entries]
        trained = [(entry, records) for entry, records in found if records]
        if not trained:
            return []
        scores = [[record.score for record in records] for _, records in trained]
        ranks = []
        for (_, records), behind in zip(trained, regrets(scores, self.splits.scored, self.metric)):
            dead = any(record.is_dead for record in records)
            ranks.append((dead, behind, _mean([record.log_loss for record in records])))
        return [trained[i][0] for i in sorted(range(len(trained)), key=ranks.__getitem__)]

    def scored_config(self, entry: Entry) -> ScoredConfig:
        records = self.records(entry.config)
        if not records:
            return ScoredConfig(entry.config, None)
        return ScoredConfig(entry.config, _mean([self._greater(r.score) for r in records]))

    def candidate(self, entry: Entry) -> Candidate | None:
        """Return a configuration with its predictions; ``None`` if it has no model."""
        records = self.records(entry.config)
        if not records:
            return None
        specs = [self._trained_spec(entry.config, split) for split in range(len(records))]
        return Candidate(
            specs[0].config,
            entry.family,
            entry.origin,
            tuple(self.runs.path(spec) for spec in specs),
            tuple(
                self.runs.probabilities(spec)[nodes]
                for spec, nodes in zip(specs, self.splits.scored.nodes)
            ),
            sum(record.seconds + record.extra_seconds for record in records),
        )

    def failures(self) -> list[str]:
        """Return one sentence for every model that could not be trained."""
        found: dict[str, str] = {}
        for entry in self.entries:
            model = entry.config.model
            record = self.runs.find(self.splits.spec(entry.config, 0))
            if record is not None and record.failure:
                found.setdefault(model, f"{model}: {record.failure}")
        return list(found.values())

    def _lacking_memory(self, specs: Sequence[RunSpec]) -> list[Failure]:
        """Return the runs that would not fit into the memory of this machine."""
        if self.executors.is_batched or not self.executors.rest.is_local:
            return []
        found = []
        for spec in self.runs.missing(specs):
            reason = lacking_memory(spec.config, spec.graph.data)
            if reason is not None:
                found.append(Failure(spec, reason))
        return found

    def _was_cut_at(self, spec: RunSpec, seconds: float) -> bool:
        """Whether a run was trained about as long before, and cut."""
        cut = self.runs.find_cut(spec)
        return cut is not None and cut.record.seconds >= CUT_TOLERANCE * seconds

    def _expected_seconds(self, batch: Sequence[RunSpec]) -> float:
        """Return the expected time of a batch, at most the time slice."""
        longest = self.executors.limit.longest
        # If the cost is unknown, half of the slice.
        seconds = [self.costs.seconds(spec.config) or longest / 2 for spec in batch]
        return min(longest, sum(seconds))

    def _record_of(self, spec: RunSpec) -> RunRecord | None:
        cut = self.runs.find_cut(spec)
        return self.runs.find(spec) or (None if cut is None else cut.record)

    def _trained_spec(self, config: RunConfig, split: int) -> RunSpec:
        """Return a run that has a model, with as many epochs as it had if it was cut."""
        spec = self.splits.spec(config, split)
        cut = self.runs.find_cut(spec)
        if self.runs.find(spec) is None and cut is not None:
            return self.splits.spec(cut.config, split)
        return spec

    def _greater(self, score: float) -> float:
        """Return a score of which the greater is better."""
        return score if self.metric.greater_is_better else -score

    def _on_finish(self, spec: RunSpec, record: RunRecord) -> None:
        self.finished.add(self.runs.path(spec))
        if not record.failure and not self.budget.seconds_to_first:
            self.budget.seconds_to_first = self.budget.elapsed()
        self.budget.save_clock()

    def _report_best(self) -> None:
        """Print the best configuration if it has changed."""
        ranked = self.ranked(self.entries)
        if not ranked:
            return
        records = self.records(ranked[0].config)
        best = f"{ranked[0].config.model}: validation {self.metric.title} "
        best += self.metric.shown(_mean([record.score for record in records]))
        if best != self._best:
            self._best = best
            self.progress.say(f"{duration(self.budget.elapsed())}: best so far {best}")

    def _status(self, text: str) -> str:
        left = "" if not self.budget.is_timed else f"{duration(self.budget.seconds_left())} left, "
        runs = f"{len(self.finished)} {'run' if len(self.finished) == 1 else 'runs'}"
        return f"{left}{runs}, best so far {self._best or 'none'}; {text}"

    def _done(self) -> float:
        """Return how much of the budget is used: seconds, or runs."""
        return self.budget.elapsed() if self.budget.is_timed else len(self.finished)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
