"""The search for the best configurations of a graph.

1. The portfolio is trained on the given split, in its order. If there is no time to train all of it
   to the end, rounds of few epochs select the better half (:mod:`~nfgnn.auto.halving`). The best
   configuration that ignores the edges and the best that ignores the features are always trained to
   the end, because the report compares them with the others.
2. Where there are few validation nodes, the better ones are trained on repeated splits.
3. What is left of the budget tries new settings of the best models (:mod:`~nfgnn.auto.sampler`).

Every decision depends on recorded results in a fixed order, never on the order in which runs
finish. A search that was interrupted therefore repeats its decisions and finds its finished runs.
Decisions that depend on the time left are written down before they are carried out.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.auto.budget import Budget
from nfgnn.auto.candidate import PORTFOLIO, SEARCH, Candidate
from nfgnn.auto.candidate_runs import CandidateRuns, RunRecord
from nfgnn.auto.halving import FIRST_EPOCHS, GROWTH, next_rung, shortened, with_epochs
from nfgnn.auto.leaderboard import rank_candidates
from nfgnn.auto.portfolio import PortfolioEntry
from nfgnn.auto.result import FEATURES, LINKS
from nfgnn.auto.run_costs import RunCosts
from nfgnn.auto.sampler import Sampler, ScoredConfig
from nfgnn.auto.validation import ValidationSplits
from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.progress import Progress, duration
from nfgnn.training import (
    Executor,
    Metric,
    RunConfig,
    RunSpec,
    TimeLimit,
    WorkerPool,
    execute,
)

PORTFOLIO_SHARE = 0.4
"""Share of the budget in which the whole portfolio must be trained; otherwise halving starts."""
FIRST_SHARE = 0.35
"""Share of the time after which the first training ends."""
PROBE_SHARE = 0.45
"""Share of the time after which the first round of few epochs ends."""
HALVING_SHARE = 0.85
"""Share of the time after which the portfolio ends where it has to be halved."""
REPEAT_SHARE = 0.7
"""Share of the budget after which the repeated validation ends."""
PROBE_SECONDS = 0.1
"""Share of the time after which a single training of the first round of few epochs ends."""
LONGEST_SHARE = 0.3
"""Share of the time after which any other training ends."""
LEAST_SECONDS = 2.0
"""Time of the first training where no time is left for it."""
MODELS = 3
"""Number of models whose settings are searched at the same time."""
BATCH = 8
"""Number of new configurations that are tried at once."""
LEAST_REPEATED = 4
"""Number of configurations that are trained on all splits, if the budget allows it."""


@dataclass(frozen=True)
class Entry:
    """A configuration of the search."""

    config: RunConfig
    family: str
    origin: str


@dataclass(frozen=True)
class SearchOutcome:
    """What a search has found."""

    candidates: tuple[Candidate, ...]
    """The best first. Those that were trained on all splits come before the others."""
    scored: ScoredNodes
    """Validation nodes and labels of every split."""
    metric: Metric
    runs: int
    """Number of trainings."""
    seconds_to_first: float
    """Until the first configuration was trained to the end."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as models that were left out."""


@dataclass
class Executors:
    """Where the runs of a search execute.

    Args:
        first: executes the first run in this process, while workers start.
        rest: executes all others.
        limit: the time limit of both.
        workers: number of runs that ``rest`` executes at the same time.
    """

    first: Executor
    rest: Executor
    limit: TimeLimit
    workers: int = 1

    def start(self) -> None:
        """Start workers, if there are any."""
        if isinstance(self.rest, WorkerPool):
            self.rest.start()


class Search:
    """A search on one graph. :meth:`run` does all of it.

    Args:
        splits: the graph with its validation splits.
        metric: what configurations are compared by.
        portfolio: what is trained first, with the metric of the graph in every configuration.
        budget: time or runs.
        folder: for finished runs and written decisions.
        executors: where runs execute.
        progress: reports the best score so far.
        seed: of the proposals.
        device: where to train.
    """

    def __init__(
        self,
        splits: ValidationSplits,
        metric: Metric,
        portfolio: Sequence[PortfolioEntry],
        budget: Budget,
        folder: Path,
        executors: Executors,
        progress: Progress,
        seed: int,
        device: str,
    ) -> None:
        self.splits = splits
        self.metric = metric
        self.entries = [Entry(entry.config, entry.family, PORTFOLIO) for entry in portfolio]
        self.budget = budget
        self.folder = folder
        self.executors = executors
        self.progress = progress
        self.seed = seed
        self.device = device
        self.costs = RunCosts()
        self.runs = CandidateRuns(folder / "runs", self._on_finish)
        self._decisions = 0
        self._finished: set[Path] = set()
        self._best: str | None = None
        self._samplers: dict[str, Sampler] = {}

    def run(self) -> SearchOutcome:
        """Search until the budget is spent."""
        self.runs.folder.mkdir(parents=True, exist_ok=True)
        self.runs.remove_damaged()
        self._train_first()
        self._train_portfolio()
        self._repeat_validation()
        self._try_new_settings()
        return self._outcome()

    # The steps of the search.

    def _train_first(self) -> None:
        """Train the first configuration in this process while the workers start."""
        self.executors.start()
        self._train([(self.entries[0].config, 0)], FIRST_SHARE, executor=self.executors.first)

    def _train_portfolio(self) -> None:
        entries = self.entries[1:]
        if not self.budget.is_timed:
            # A repeated validation needs at least half of the runs.
            share = 1.0 if self.splits.count == 1 else 0.5
            allowed = max(0, math.ceil(share * self.budget.runs_left))
            self._train([(entry.config, 0) for entry in entries[:allowed]])
            return
        epochs: int | None = FIRST_EPOCHS
        planned = [(shortened(entry.config, epochs), 0) for entry in entries]
        self._train(planned, PROBE_SHARE, longest=PROBE_SECONDS)
        while epochs is not None and entries:
            entries, epochs = self._halve(entries, epochs)

    def _halve(self, entries: list[Entry], epochs: int) -> tuple[list[Entry], int | None]:
        """Train the better ones of some configurations longer, and return them."""
        ranked = self._ranked(entries, epochs)
        if not ranked:
            return [], None
        longest = max(entry.config.training.epochs for entry in ranked)

        def decide() -> dict[str, Any]:
            seconds = [self.costs.seconds(entry.config) for entry in ranked]
            whole = self.executors.workers * self.budget.seconds_left(PORTFOLIO_SHARE)
            rung = next_rung(seconds, epochs, longest, whole)
            if rung.keep < len(ranked):
                more = self.executors.workers * self.budget.seconds_left(HALVING_SHARE)
                rung = next_rung(seconds, epochs, longest, more)
            return {"keep": rung.keep, "epochs": rung.epochs}

        decision = self._decided(decide)
        kept = ranked[: decision["keep"]]
        kept += [entry for entry in _family_bests(ranked) if entry not in kept]
        self._train(
            [(shortened(entry.config, decision["epochs"]), 0) for entry in kept], HALVING_SHARE
        )
        return kept, decision["epochs"]

    def _repeat_validation(self) -> None:
        """Train the better configurations on the other splits, if there are several."""
        repeats = self.splits.count - 1
        if repeats == 0:
            return
        ranked = self._ranked(self.entries)
        count = max(LEAST_REPEATED, math.ceil(len(ranked) / 2))
        if not self.budget.is_timed:
            affordable = int(self.budget.runs_left // repeats)
            wanted = max(LEAST_REPEATED, int(REPEAT_SHARE * affordable))
            count = min(count, wanted, affordable)
        chosen = ranked[:1]
        for entry in [*_family_bests(ranked), *ranked]:
            if entry not in chosen:
                chosen.append(entry)
        self._train(
            [
                (entry.config, split)
                for entry in chosen[:count]
                for split in range(1, self.splits.count)
            ],
            REPEAT_SHARE,
        )

    def _try_new_settings(self) -> None:
        """Propose and train new settings until the budget is spent."""
        while True:
            proposed = self._propose()
            if not proposed:
                return
            self.entries += proposed
            splits = range(self.splits.count)
            self._train([(entry.config, split) for entry in proposed for split in splits])
            for model, sampler in self._samplers.items():
                told = [entry for entry in proposed if entry.config.model == model]
                sampler.tell([self._scored(entry) for entry in told])
            if not any(self._record(entry.config, 0) for entry in proposed):
                return

    def _propose(self) -> list[Entry]:
        """Propose settings of the best models, half of them for the very best one."""

        def decide() -> list[str]:
            models = dict.fromkeys(
                entry.config.model
                for entry in self._ranked(self.entries)
                if self._is_affordable(entry.config)
            )
            return list(models)[:MODELS]

        count = BATCH
        if not self.budget.is_timed:
            count = min(BATCH, int(self.budget.runs_left // self.splits.count))
        models = self._decided(decide)
        proposed: list[Entry] = []
        for position, model in enumerate(models):
            known = [entry for entry in self.entries if entry.config.model == model]
            if model not in self._samplers:
                ranked = self._ranked(known)
                ranked += [entry for entry in known if entry not in ranked]
                scored = [self._scored(entry) for entry in ranked]
                self._samplers[model] = Sampler(scored, self.seed)
            left = count - len(proposed)
            is_last = position == len(models) - 1
            configs = self._samplers[model].ask(left if is_last else math.ceil(left / 2))
            proposed += [Entry(config, known[0].family, SEARCH) for config in configs]
        return proposed

    def _is_affordable(self, config: RunConfig) -> bool:
        """Whether there is time to try settings of this cost."""
        if not self.budget.is_timed:
            return self.budget.runs_left >= self.splits.count
        seconds = self.costs.seconds(config) * math.ceil(self.splits.count / self.executors.workers)
        return 0 < seconds < self.budget.seconds_left()

    # What the steps have in common.

    def _train(
        self,
        planned: Sequence[tuple[RunConfig, int]],
        share: float = 1.0,
        longest: float = LONGEST_SHARE,
        executor: Executor | None = None,
    ) -> None:
        """Train configurations on splits, as far as the budget allows it.

        Args:
            planned: configurations and numbers of splits, the most important first.
            share: share of the budget for trainings after which all of them end.
            longest: share of the budget for trainings after which a single one ends.
            executor: where to train; by default where most runs are trained.
        """
        count = int(min(len(planned), self.budget.runs_left))
        specs = [self.splits.spec(config, split) for config, split in planned[:count]]
        self.budget.runs_planned += count
        limit = self.executors.limit
        if self.budget.is_timed:
            limit.end = self.budget.end(share)
            limit.longest = longest * self.budget.training_seconds
            limit.estimate = self._expected_seconds
            if not self._finished:
                # There must be an answer, even if it took long to load the graph.
                limit.end = max(limit.end, time.monotonic() + LEAST_SECONDS)
        failures = execute(
            specs,
            self.runs,
            executor or self.executors.rest,
            SearchProgress(self.progress, self._status),
            self.device,
            start_progress=False,
        )
        for failure in failures:
            self.runs.store_failure(failure)
        for spec in specs:
            record = self.runs.find(spec)
            if record is not None:
                self._finished.add(self.runs.path(spec))
                self.costs.add(spec.config, record)
        self._report_best()

    def _expected_seconds(self, batch: Sequence[RunSpec]) -> float:
        return sum(self.costs.seconds(spec.config) for spec in batch)

    def _decided(self, decide: Callable[[], Any]) -> Any:
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

    def _record(self, config: RunConfig, split: int) -> RunRecord | None:
        """Return the record of a run that has a model."""
        record = self.runs.find(self.splits.spec(config, split))
        return None if record is None or record.failure else record

    def _records(self, config: RunConfig) -> list[RunRecord]:
        """Return the records of a configuration on the first splits, as far as there are any."""
        found = []
        for split in range(self.splits.count):
            record = self._record(config, split)
            if record is None:
                break
            found.append(record)
        return found

    def _ranked(self, entries: Sequence[Entry], epochs: int | None = None) -> list[Entry]:
        """Return the entries with a model, the best first.

        More splits come before fewer ones, and trainings that never rose above chance come last.

        Args:
            entries: what to rank.
            epochs: the round of few epochs that is ranked; by default the whole trainings.
        """
        ranks: list[tuple[tuple[float, ...], Entry]] = []
        for entry in entries:
            records = self._records(shortened(entry.config, epochs))
            if records:
                dead = any(record.is_dead for record in records)
                score = _mean([self._greater(record.score) for record in records])
                loss = _mean([record.log_loss for record in records])
                ranks.append(((dead, -len(records), -score, loss), entry))
        return [entry for _, entry in sorted(ranks, key=lambda pair: pair[0])]

    def _greater(self, score: float) -> float:
        """Return a score of which the greater is better."""
        return score if self.metric.greater_is_better else -score

    def _scored(self, entry: Entry) -> ScoredConfig:
        records = self._records(entry.config)
        if not records:
            return ScoredConfig(entry.config, None)
        return ScoredConfig(entry.config, _mean([self._greater(r.score) for r in records]))

    def _on_finish(self, spec: RunSpec, record: RunRecord) -> None:
        self._finished.add(self.runs.path(spec))
        if not record.failure and not self.budget.seconds_to_first:
            self.budget.seconds_to_first = self.budget.elapsed()
        self.budget.save_clock()

    def _report_best(self) -> None:
        """Print the best configuration if it has changed."""
        ranked = self._ranked(self.entries)
        if not ranked:
            return
        records = self._records(ranked[0].config)
        best = f"{ranked[0].config.model}: validation {self.metric.title} "
        best += self.metric.shown(_mean([record.score for record in records]))
        if best != self._best:
            self._best = best
            self.progress.say(f"{duration(self.budget.elapsed())}: best so far {best}")

    def _status(self, text: str) -> str:
        left = "" if not self.budget.is_timed else f"{duration(self.budget.seconds_left())} left, "
        return f"{len(self._finished)} runs, {left}best so far {self._best or 'none'}; {text}"

    # The result.

    def _outcome(self) -> SearchOutcome:
        candidates = []
        for entry in self.entries:
            candidate = self._candidate(entry)
            if candidate is not None:
                candidates.append(candidate)
        failures = self._failures()
        if not candidates:
            reason = next(iter(failures), "give it more time")
            raise UserError(f"no model could be trained: {reason}")
        scored = self.splits.scored
        return SearchOutcome(
            tuple(rank_candidates(candidates, scored, self.metric)),
            scored,
            self.metric,
            len(self._finished),
            self.budget.seconds_to_first,
            tuple(failures),
        )

    def _candidate(self, entry: Entry) -> Candidate | None:
        """Return a configuration with its predictions; ``None`` if it has no model.

        What was only trained in rounds of few epochs counts with the longest of them.
        """
        config = self._longest_trained(entry.config)
        if config is None:
            return None
        records = self._records(config)
        specs = [self.splits.spec(config, split) for split in range(len(records))]
        epochs = records[0].epochs if records[0].is_cut else None
        return Candidate(
            config if epochs is None else with_epochs(config, epochs),
            entry.family,
            entry.origin,
            self.runs.path(specs[0]),
            tuple(
                self.runs.probabilities(spec)[nodes]
                for spec, nodes in zip(specs, self.splits.scored.nodes)
            ),
            sum(record.seconds + record.extra_seconds for record in records),
        )

    def _longest_trained(self, config: RunConfig) -> RunConfig | None:
        found = None
        epochs = FIRST_EPOCHS
        while epochs < config.training.epochs:
            short = shortened(config, epochs)
            found = short if self._record(short, 0) else found
            epochs *= GROWTH
        return config if self._record(config, 0) else found

    def _failures(self) -> list[str]:
        """Return one sentence for every model that could not be trained."""
        found: dict[str, str] = {}
        for entry in self.entries:
            for config in (entry.config, shortened(entry.config, FIRST_EPOCHS)):
                record = self.runs.find(self.splits.spec(config, 0))
                if record is not None and record.failure:
                    found.setdefault(config.model, f"{config.model}: {record.failure}")
        return list(found.values())


class SearchProgress(Progress):
    """Passes the state of single runs on to the display of a search.

    The display advances by the state of the search, because the number of runs is not known.

    Args:
        display: what the user sees.
        status: completes a line about a run.
    """

    def __init__(self, display: Progress, status: Callable[[str], str]) -> None:
        super().__init__(quiet=True)
        self._display = display
        self._describe = status

    def status(self, text: str) -> None:
        self._display.status(self._describe(text))

    def advance(self, amount: float, status: str, count: int = 1, plain: bool = True) -> None:
        self._display.status(self._describe(status))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _family_bests(ranked: Sequence[Entry]) -> list[Entry]:
    """Return the best entry that ignores the edges and the best that ignores the features."""
    found = []
    for family in (FEATURES, LINKS):
        found += [entry for entry in ranked if entry.family == family][:1]
    return found
