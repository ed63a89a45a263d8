"""The search for the best configurations of a graph.

1. The portfolio is trained on the given split, in its order. Within a time limit every
   configuration gets the same slice of time, and then the better half gets more
   (:mod:`~nfgnn.auto.halving`), by the scores that trainings are expected to reach
   (:mod:`~nfgnn.auto.expected_scores`). What would take a large part of the time is replaced by
   cheaper forms (:mod:`~nfgnn.auto.cheaper_forms`). The best configuration that ignores the edges
   and the best that ignores the features always count as the better half, because the report
   compares them with the others.
2. Where there are few validation nodes, the better ones are trained on repeated splits.
3. The best configuration is trained without edges and without features, for the report
   (:mod:`~nfgnn.auto.ablation`).
4. The rest of the budget tries new settings of the best models (:mod:`~nfgnn.auto.sampler`).

Every decision depends on recorded results in a fixed order, never on the order in which runs
finish. A search that was interrupted therefore repeats its decisions and finds its finished runs.
Decisions that depend on the time left are written down before they are carried out.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nfgnn.auto.ablation import ABLATION, ablated_splits
from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.auto.budget import Budget
from nfgnn.auto.candidate import PORTFOLIO, SEARCH, Candidate
from nfgnn.auto.candidate_runs import CandidateRuns, RunRecord
from nfgnn.auto.cheaper_forms import cheaper_forms
from nfgnn.auto.expected_scores import PartialRun, expected_scores
from nfgnn.auto.halving import next_round
from nfgnn.auto.leaderboard import rank_candidates, regrets
from nfgnn.auto.portfolio import PortfolioEntry
from nfgnn.auto.result import BOTH, FEATURES, LINKS
from nfgnn.auto.run_costs import RunCosts
from nfgnn.auto.run_memory import lacking_memory
from nfgnn.auto.sampler import Sampler, ScoredConfig
from nfgnn.auto.schedule import (
    ABLATION_LONGEST,
    ABLATION_SHARE,
    BATCH,
    BATCH_SHARE,
    COSTLY_SHARE,
    CUT_TOLERANCE,
    FIRST_LONGEST,
    FIRST_ROUND_END,
    FIRST_ROUND_SHARE,
    FIRST_SECONDS,
    FIRST_SHARE,
    LEAST_ENTRIES,
    LEAST_REPEATED,
    LEAST_SEARCH_SHARE,
    LEAST_SECONDS,
    LEAST_SLICE,
    LEFT_RUNS,
    LONGEST_SHARE,
    MODEL_SHARES,
    PORTFOLIO_SHARE,
    REPEAT_SHARE,
    REPEATED_PORTFOLIO_SHARE,
    SHORT_REPEAT_SHARE,
    SHORT_SECONDS,
    SLICE_EPOCHS,
)
from nfgnn.auto.search_progress import SearchProgress
from nfgnn.auto.validation import ValidationSplits
from nfgnn.errors import UserError
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


@dataclass(frozen=True)
class SearchOutcome:
    """What a search has found."""

    candidates: tuple[Candidate, ...]
    """The best first."""
    scored: ScoredNodes
    """Validation nodes and labels of every split."""
    metric: Metric
    runs: int
    """Number of trainings."""
    seconds_to_first: float
    """Until the first configuration was trained to the end."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as models that were left out."""
    ablations: tuple[Candidate, ...] = ()
    """A configuration without edges and without features, for the report only."""


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
        self._ablations: list[Candidate] = []
        self._replaced: set[int] = set()
        """Positions of entries that have a cheaper form."""

    def run(self) -> SearchOutcome:
        """Search until the budget is spent."""
        self.progress.start(self.budget.total, count=0)
        self.runs.open()
        self._train_first()
        self._train_portfolio()
        self._repeat_validation()
        self._train_ablations()
        self._try_new_settings()
        return self._outcome()

    # The steps of the search.

    def _train_first(self) -> None:
        """Train the first configuration while worker processes start."""
        self.executors.rest.start()
        longest = None
        if self.budget.is_timed:
            # On a large graph even a cheap configuration could take the time of many others.
            seconds = self.budget.training_seconds
            longest = min(LONGEST_SHARE * seconds, max(FIRST_SECONDS, FIRST_LONGEST * seconds))
        planned = [(self.entries[0].config, 0)]
        self._train(planned, FIRST_SHARE, longest, self.executors.first)

    def _train_portfolio(self) -> None:
        entries = self.entries[1:]
        if not self.budget.is_timed:
            # A repeated validation needs at least half of the runs.
            share = 1.0 if self.splits.count == 1 else 0.5
            allowed = max(0, math.ceil(share * self.budget.runs_left))
            if self.splits.count == 1:
                # Of the runs that are left, half train the best model without edges and features.
                allowed = max(allowed // 2, allowed - LEFT_RUNS)
            self._train([(entry.config, 0) for entry in entries[:allowed]])
            return

        def first_slice() -> float:
            first = self._record(self.entries[0].config, 0)
            left = self.executors.workers * self.budget.seconds_left(FIRST_ROUND_SHARE)
            # A shorter slice is too short to learn anything, so the last configurations get none.
            least = 0.0 if first is None else SLICE_EPOCHS * first.seconds / first.epochs
            seconds = max(least, left / max(1, len(entries)))
            return max(LEAST_SLICE, min(seconds, left / LEAST_ENTRIES))

        slice_seconds: float = self._decided(first_slice)
        share = min(FIRST_ROUND_END, self._portfolio_share)
        self._train([(entry.config, 0) for entry in entries], share, slice_seconds)
        self._try_cheaper_forms(slice_seconds)
        seconds: float | None = slice_seconds
        while seconds is not None:
            seconds = self._train_better_half(seconds)

    @property
    def _portfolio_share(self) -> float:
        """Share of the time after which the portfolio ends on the given split."""
        return PORTFOLIO_SHARE if self.splits.count == 1 else REPEATED_PORTFOLIO_SHARE

    def _train_better_half(self, last: float) -> float | None:
        """Train configurations of the better half longer that the last time slice has cut.

        Returns the new time slice, ``None`` if no round follows.
        """

        def decide() -> dict[str, Any]:
            unfinished = [e for e in self._promising() if not self._is_finished(e)]
            left = self.executors.workers * self.budget.seconds_left(self._portfolio_share)
            # What could not be trained to the end leaves its time to what can be.
            affordable = [e for e in unfinished if self.costs.seconds(e.config) <= left]
            chosen = affordable or unfinished
            following = next_round([self.costs.seconds(e.config) for e in chosen], last, left)
            positions = [self.entries.index(entry) for entry in chosen[: following.keep]]
            return {"positions": positions, "seconds": following.seconds}

        decided = self._decided(decide)
        planned = [(self.entries[position].config, 0) for position in decided["positions"]]
        self._train(planned, self._portfolio_share, decided["seconds"])
        seconds: float | None = decided["seconds"]
        return seconds

    def _try_cheaper_forms(self, seconds: float) -> None:
        """Train cheaper forms of what would take too long, each for the first time slice."""

        def decide() -> list[int]:
            most = COSTLY_SHARE * self.executors.workers * self.budget.training_seconds
            costly = [e for e in self._promising() if self.costs.seconds(e.config) > most]
            return [self.entries.index(e) for e in costly if not self._is_finished(e)]

        forms = []
        known = [entry.config for entry in self.entries]
        for position in self._decided(decide):
            entry = self.entries[position]
            for config in cheaper_forms(entry.config):
                self._replaced.add(position)
                if config not in known:
                    known.append(config)
                    forms.append(Entry(config, entry.family, SEARCH))
        self.entries += forms
        planned = [(entry.config, 0) for entry in forms]
        self._train(planned, self._portfolio_share, seconds)

    def _promising(self) -> list[Entry]:
        """Return the better half of the configurations by expected score, the best first.

        What a cheaper form has replaced is left out. The best configuration that ignores the edges
        and the best that ignores the features belong to the better half.
        """
        found = [
            entry
            for position, entry in enumerate(self.entries)
            if position not in self._replaced and self._record(entry.config, 0) is not None
        ]
        partial_runs = [self._partial_run(entry) for entry in found]
        expected = dict(zip(map(id, found), expected_scores(partial_runs)))
        # The order of equal scores is that of the usual ranking.
        ranked = [entry for entry in self._ranked(self.entries) if id(entry) in expected]
        alive = [entry for entry in ranked if not self._is_dead(entry)]
        alive.sort(key=lambda entry: -expected[id(entry)])
        better = alive[: math.ceil(len(ranked) / 2)]
        return better + [entry for entry in _family_bests(ranked) if entry not in better]

    def _partial_run(self, entry: Entry) -> PartialRun:
        spec = self._trained_spec(entry.config, 0)
        record = self._record_of(spec)
        assert record is not None
        curve = [self._greater(score) for score in self.runs.scores(spec, self.metric)]
        numbers = tuple(-math.inf if math.isnan(score) else score for score in curve)
        return PartialRun(self._greater(record.score), numbers, self._is_finished(entry))

    def _is_dead(self, entry: Entry) -> bool:
        """Whether a training never rose above chance."""
        return any(record.is_dead for record in self._records(entry.config))

    def _is_finished(self, entry: Entry) -> bool:
        """Whether a configuration was trained to the end on the given split."""
        return self.runs.find(self.splits.spec(entry.config, 0)) is not None

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
        planned = [
            (entry.config, split)
            for entry in chosen[:count]
            for split in range(1, self.splits.count)
        ]
        longest = None
        if self.budget.is_timed:
            # A few expensive configurations must not take the time of all others.
            left = self.executors.workers * self.budget.seconds_left(self._repeat_share)
            longest = self._decided(partial(max, LEAST_SLICE, left / (LEAST_REPEATED * repeats)))
        self._train(planned, self._repeat_share, longest)

    @property
    def _repeat_share(self) -> float:
        """Share of the time after which repeated validation ends; with little time, almost all."""
        is_short = (self.budget.seconds or 0) < SHORT_SECONDS
        return SHORT_REPEAT_SHARE if is_short else REPEAT_SHARE

    def _train_ablations(self) -> None:
        """Train the best configuration without edges and without features: see ``ablation.py``."""
        ranked = [entry for entry in self._ranked(self.entries) if entry.family == BOTH]
        if not ranked:
            return
        config = ranked[0].config
        splits = len(self._records(config))
        if not self.budget.is_timed:
            # At most half of the runs that are left.
            splits = min(splits, int(self.budget.runs_left // 4))
        # A pool of processes has the whole graph only, so the first executor trains.
        executors = replace(self.executors, rest=self.executors.first, workers=1)
        versions = ablated_splits(self.splits)
        for position, (family, ablated) in enumerate(versions.items()):
            left = self.budget.seconds_left(ABLATION_SHARE)
            if left < LEAST_SECONDS:
                return
            longest = None
            if self.budget.is_timed:
                share = ABLATION_LONGEST * self.budget.training_seconds
                longest = min(share, left / (len(versions) - position))
            search = Search(
                ablated,
                self.metric,
                [PortfolioEntry(config, family)],
                self.budget,
                self.folder,
                executors,
                Progress(quiet=True),
                self.seed,
                self.device,
            )
            search.runs.open()
            planned = [(config, split) for split in range(splits)]
            search._train(planned, ABLATION_SHARE, longest)
            found = search._candidate(Entry(config, family, ABLATION))
            self._finished |= search._finished
            if found is not None:
                self._ablations.append(found)

    def _try_new_settings(self) -> None:
        """Propose and train new settings until the budget is spent.

        Where there are several splits, the better half of the proposals is trained on all of them.
        """
        while True:
            proposed: list[Entry] = []
            for model, count in self._decided(self._trials_by_model):
                proposed += self._propose(model, count)
            if not proposed or self.budget.seconds_left() == 0:
                return
            self.entries += proposed
            self._train_longest_first(proposed, range(1))
            better = self._ranked(proposed)[: math.ceil(len(proposed) / 2)]
            self._train_longest_first(better, range(1, self.splits.count))
            for model, sampler in self._samplers.items():
                told = [entry for entry in proposed if entry.config.model == model]
                sampler.tell([self._scored(entry) for entry in told])
            if not any(self._record(entry.config, 0) for entry in proposed):
                return

    def _trials_by_model(self) -> list[tuple[str, int]]:
        """Return the best models and how many of their settings are tried next.

        They share the time of a batch, or its number of trials, and the best one gets most of it.
        """
        best: dict[str, Entry] = {}
        for entry in self._ranked(self.entries):
            if self._is_affordable(entry.config):
                best.setdefault(entry.config.model, entry)
        models = list(best)[: len(MODEL_SHARES)]
        if not self.budget.is_timed:
            # A trial takes one run, and the better half takes those of the other splits, too.
            runs = (self.splits.count + 1) / 2
            trials = min(BATCH, max(1, int(self.budget.runs_left // runs)))
            counts = [math.ceil(share * trials) for share in MODEL_SHARES]
        else:
            seconds = BATCH_SHARE * self.executors.workers * self.budget.training_seconds
            counts = []
            for model, share in zip(models, MODEL_SHARES):
                cost = max(self._trial_seconds(best[model].config), 1e-3)
                counts.append(max(1, min(BATCH, int(share * seconds / cost))))
        return list(zip(models, counts))

    def _propose(self, model: str, count: int) -> list[Entry]:
        """Propose new settings of a model."""
        known = [entry for entry in self.entries if entry.config.model == model]
        if model not in self._samplers:
            ranked = self._ranked(known)
            ranked += [entry for entry in known if entry not in ranked]
            self._samplers[model] = Sampler([self._scored(entry) for entry in ranked], self.seed)
        configs = self._samplers[model].ask(count, same_shape=self.executors.is_batched)
        return [Entry(config, known[0].family, SEARCH) for config in configs]

    def _train_longest_first(self, entries: Sequence[Entry], splits: range) -> None:
        """Train configurations whose order does not matter so that all processes end together."""
        # Recorded times differ from search to search, and must not decide which runs are the last.
        if self.budget.is_timed:
            entries = sorted(entries, key=lambda entry: -self.costs.seconds(entry.config))
        self._train([(entry.config, split) for entry in entries for split in splits])

    def _trial_seconds(self, config: RunConfig) -> float:
        """Return the expected time of one process for a new configuration of this cost."""
        return self.costs.seconds(config) * (self.splits.count + 1) / 2

    def _is_affordable(self, config: RunConfig) -> bool:
        """Whether the budget suffices to try settings of this cost."""
        if not self.budget.is_timed:
            return self.budget.runs_left >= self.splits.count
        # Proposing settings takes time, too.
        least = LEAST_SEARCH_SHARE * self.budget.training_seconds
        seconds = self._trial_seconds(config) / min(self.executors.workers, self.splits.count)
        return max(seconds, least) < self.budget.seconds_left()

    # What the steps have in common.

    def _train(
        self,
        planned: Sequence[tuple[RunConfig, int]],
        share: float = 1.0,
        longest: float | None = None,
        executor: Executor | None = None,
    ) -> None:
        """Train configurations on splits, as far as the budget allows it.

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
            if not self._finished:
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
                self._finished.add(self.runs.path(spec))
                self.costs.add(spec.config, record)
                # A member of the ensemble has one model per split.
                self.budget.prediction_seconds = max(
                    self.budget.prediction_seconds, self.splits.count * record.extra_seconds
                )
        self._report_best()

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
        """Return the record of a run that has a model, perhaps of one that was cut.

        A resumed search does not see what it has not planned yet, so that it decides as before.
        """
        spec = self.splits.spec(config, split)
        if self.runs.path(spec) not in self._finished:
            return None
        record = self._record_of(spec)
        return None if record is None or record.failure else record

    def _record_of(self, spec: RunSpec) -> RunRecord | None:
        cut = self.runs.find_cut(spec)
        return self.runs.find(spec) or (None if cut is None else cut.record)

    def _records(self, config: RunConfig) -> list[RunRecord]:
        """Return the records of a configuration on the first splits, as far as there are any."""
        found = []
        for split in range(self.splits.count):
            record = self._record(config, split)
            if record is None:
                break
            found.append(record)
        return found

    def _ranked(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries with a model, the best first.

        Trainings that never rose above chance come last.
        """
        found = [(entry, self._records(entry.config)) for entry in entries]
        trained = [(entry, records) for entry, records in found if records]
        if not trained:
            return []
        scores = [[record.score for record in records] for _, records in trained]
        ranks = []
        for (_, records), behind in zip(trained, regrets(scores, self.splits.scored, self.metric)):
            dead = any(record.is_dead for record in records)
            ranks.append((dead, behind, _mean([record.log_loss for record in records])))
        return [trained[i][0] for i in sorted(range(len(trained)), key=ranks.__getitem__)]

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
        runs = f"{len(self._finished)} {'run' if len(self._finished) == 1 else 'runs'}"
        return f"{left}{runs}, best so far {self._best or 'none'}; {text}"

    def _done(self) -> float:
        """Return how much of the budget is used: seconds, or runs."""
        return self.budget.elapsed() if self.budget.is_timed else len(self._finished)

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
            tuple(self._ablations),
        )

    def _candidate(self, entry: Entry) -> Candidate | None:
        """Return a configuration with its predictions; ``None`` if it has no model."""
        records = self._records(entry.config)
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

    def _trained_spec(self, config: RunConfig, split: int) -> RunSpec:
        """Return a run that has a model, with as many epochs as it had if it was cut."""
        spec = self.splits.spec(config, split)
        cut = self.runs.find_cut(spec)
        if self.runs.find(spec) is None and cut is not None:
            return self.splits.spec(cut.config, split)
        return spec

    def _failures(self) -> list[str]:
        """Return one sentence for every model that could not be trained."""
        found: dict[str, str] = {}
        for entry in self.entries:
            model = entry.config.model
            record = self.runs.find(self.splits.spec(entry.config, 0))
            if record is not None and record.failure:
                found.setdefault(model, f"{model}: {record.failure}")
        return list(found.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _family_bests(ranked: Sequence[Entry]) -> list[Entry]:
    """Return the best entry that ignores the edges and the best that ignores the features."""
    found = []
    for family in (FEATURES, LINKS):
        found += [entry for entry in ranked if entry.family == family][:1]
    return found
