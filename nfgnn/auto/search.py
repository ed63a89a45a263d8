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

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nfgnn.auto.ablation import ABLATION, ablated_splits
from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.auto.budget import Budget
from nfgnn.auto.candidate import PORTFOLIO, SEARCH, Candidate
from nfgnn.auto.cheaper_forms import cheaper_forms
from nfgnn.auto.expected_scores import expected_scores
from nfgnn.auto.halving import next_round
from nfgnn.auto.leaderboard import rank_candidates
from nfgnn.auto.portfolio import PortfolioEntry
from nfgnn.auto.result import BOTH, FEATURES, LINKS
from nfgnn.auto.sampler import Sampler
from nfgnn.auto.schedule import (
    ABLATION_LONGEST,
    ABLATION_SHARE,
    BATCH,
    BATCH_SHARE,
    COSTLY_SHARE,
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
from nfgnn.auto.trained_entries import Entry, Executors, TrainedEntries
from nfgnn.auto.validation import ValidationSplits
from nfgnn.errors import UserError
from nfgnn.progress import Progress
from nfgnn.training import Metric, RunConfig


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
        entries = [Entry(entry.config, entry.family, PORTFOLIO) for entry in portfolio]
        self.trained = TrainedEntries(
            splits, metric, entries, budget, folder, executors, progress, device
        )
        self.splits = splits
        self.metric = metric
        self.entries = self.trained.entries
        self.budget = budget
        self.executors = executors
        self.costs = self.trained.costs
        self.seed = seed
        self._samplers: dict[str, Sampler] = {}
        self._ablations: list[Candidate] = []
        self._replaced: set[int] = set()
        """Positions of entries that have a cheaper form."""

    def run(self) -> SearchOutcome:
        """Search until the budget is spent."""
        self.trained.progress.start(self.budget.total, count=0)
        self.trained.runs.open()
        self._train_first()
        self._train_portfolio()
        self._repeat_validation()
        self._train_ablations()
        self._try_new_settings()
        return self._outcome()

    def _train_first(self) -> None:
        """Train the first configuration while worker processes start."""
        self.executors.rest.start()
        longest = None
        if self.budget.is_timed:
            # On a large graph even a cheap configuration could take the time of many others.
            seconds = self.budget.training_seconds
            longest = min(LONGEST_SHARE * seconds, max(FIRST_SECONDS, FIRST_LONGEST * seconds))
        planned = [(self.entries[0].config, 0)]
        self.trained.train(planned, FIRST_SHARE, longest, self.executors.first)

    def _train_portfolio(self) -> None:
        entries = self.entries[1:]
        if not self.budget.is_timed:
            # A repeated validation needs at least half of the runs.
            share = 1.0 if self.splits.count == 1 else 0.5
            allowed = max(0, math.ceil(share * self.budget.runs_left))
            if self.splits.count == 1:
                # Of the runs that are left, half train the best model without edges and features.
                allowed = max(allowed // 2, allowed - LEFT_RUNS)
            self.trained.train([(entry.config, 0) for entry in entries[:allowed]])
            return

        def first_slice() -> float:
            first = self.trained.record(self.entries[0].config, 0)
            left = self.executors.workers * self.budget.seconds_left(FIRST_ROUND_SHARE)
            # A shorter slice is too short to learn anything, so the last configurations get none.
            least = 0.0 if first is None else SLICE_EPOCHS * first.seconds / first.epochs
            seconds = max(least, left / max(1, len(entries)))
            return max(LEAST_SLICE, min(seconds, left / LEAST_ENTRIES))

        slice_seconds: float = self.trained.decided(first_slice)
        share = min(FIRST_ROUND_END, self._portfolio_share)
        self.trained.train([(entry.config, 0) for entry in entries], share, slice_seconds)
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
            unfinished = [e for e in self._promising() if not self.trained.is_finished(e)]
            left = self.executors.workers * self.budget.seconds_left(self._portfolio_share)
            # What could not be trained to the end leaves its time to what can be.
            affordable = [e for e in unfinished if self.costs.seconds(e.config) <= left]
            chosen = affordable or unfinished
            following = next_round([self.costs.seconds(e.config) for e in chosen], last, left)
            positions = [self.entries.index(entry) for entry in chosen[: following.keep]]
            return {"positions": positions, "seconds": following.seconds}

        decided = self.trained.decided(decide)
        planned = [(self.entries[position].config, 0) for position in decided["positions"]]
        self.trained.train(planned, self._portfolio_share, decided["seconds"])
        seconds: float | None = decided["seconds"]
        return seconds

    def _try_cheaper_forms(self, seconds: float) -> None:
        """Train cheaper forms of what would take too long, each for the first time slice."""

        def decide() -> list[int]:
            most = COSTLY_SHARE * self.executors.workers * self.budget.training_seconds
            costly = [e for e in self._promising() if self.costs.seconds(e.config) > most]
            return [self.entries.index(e) for e in costly if not self.trained.is_finished(e)]

        forms = []
        known = [entry.config for entry in self.entries]
        for position in self.trained.decided(decide):
            entry = self.entries[position]
            for config in cheaper_forms(entry.config):
                self._replaced.add(position)
                if config not in known:
                    known.append(config)
                    forms.append(Entry(config, entry.family, SEARCH))
        self.entries += forms
        planned = [(entry.config, 0) for entry in forms]
        self.trained.train(planned, self._portfolio_share, seconds)

    def _promising(self) -> list[Entry]:
        """Return the better half of the configurations by expected score, the best first.

        What a cheaper form has replaced is left out. The best configuration that ignores the edges
        and the best that ignores the features belong to the better half.
        """
        found = [
            entry
            for position, entry in enumerate(self.entries)
            if position not in self._replaced and self.trained.record(entry.config, 0) is not None
        ]
        partial_runs = [self.trained.partial_run(entry) for entry in found]
        expected = dict(zip(map(id, found), expected_scores(partial_runs)))
        # The order of equal scores is that of the usual ranking.
        ranked = [entry for entry in self.trained.ranked(self.entries) if id(entry) in expected]
        alive = [entry for entry in ranked if not self.trained.is_dead(entry)]
        alive.sort(key=lambda entry: -expected[id(entry)])
        better = alive[: math.ceil(len(ranked) / 2)]
        return better + [entry for entry in _family_bests(ranked) if entry not in better]

    def _repeat_validation(self) -> None:
        """Train the better configurations on the other splits, if there are several."""
        repeats = self.splits.count - 1
        if repeats == 0:
            return
        ranked = self.trained.ranked(self.entries)
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
            longest = self.trained.decided(
                partial(max, LEAST_SLICE, left / (LEAST_REPEATED * repeats))
            )
        self.trained.train(planned, self._repeat_share, longest)

    @property
    def _repeat_share(self) -> float:
        """Share of the time after which repeated validation ends; with little time, almost all."""
        is_short = (self.budget.seconds or 0) < SHORT_SECONDS
        return SHORT_REPEAT_SHARE if is_short else REPEAT_SHARE

    def _train_ablations(self) -> None:
        """Train the best configuration without edges and without features: see ``ablation.py``."""
        ranked = [entry for entry in self.trained.ranked(self.entries) if entry.family == BOTH]
        if not ranked:
            return
        config = ranked[0].config
        splits = len(self.trained.records(config))
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
            trained = TrainedEntries(
                ablated,
                self.metric,
                [Entry(config, family, ABLATION)],
                self.budget,
                self.trained.folder,
                executors,
                Progress(quiet=True),
                self.trained.device,
            )
            trained.runs.open()
            planned = [(config, split) for split in range(splits)]
            trained.train(planned, ABLATION_SHARE, longest)
            found = trained.candidate(trained.entries[0])
            self.trained.finished |= trained.finished
            if found is not None:
                self._ablations.append(found)

    def _try_new_settings(self) -> None:
        """Propose and train new settings until the budget is spent.

        Where there are several splits, the better half of the proposals is trained on all of them.
        """
        while True:
            proposed: list[Entry] = []
            for model, count in self.trained.decided(self._trials_by_model):
                proposed += self._propose(model, count)
            if not proposed or self.budget.seconds_left() == 0:
                return
            self.entries += proposed
            self._train_longest_first(proposed, range(1))
            better = self.trained.ranked(proposed)[: math.ceil(len(proposed) / 2)]
            self._train_longest_first(better, range(1, self.splits.count))
            for model, sampler in self._samplers.items():
                told = [entry for entry in proposed if entry.config.model == model]
                sampler.tell([self.trained.scored_config(entry) for entry in told])
            if not any(self.trained.record(entry.config, 0) for entry in proposed):
                return

    def _trials_by_model(self) -> list[tuple[str, int]]:
        """Return the best models and how many of their settings are tried next.

        They share the time of a batch, or its number of trials, and the best one gets most of it.
        """
        best: dict[str, Entry] = {}
        for entry in self.trained.ranked(self.entries):
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
            ranked = self.trained.ranked(known)
            ranked += [entry for entry in known if entry not in ranked]
            self._samplers[model] = Sampler(
                [self.trained.scored_config(entry) for entry in ranked], self.seed
            )
        configs = self._samplers[model].ask(count, same_shape=self.executors.is_batched)
        return [Entry(config, known[0].family, SEARCH) for config in configs]

    def _train_longest_first(self, entries: Sequence[Entry], splits: range) -> None:
        """Train configurations whose order does not matter so that all processes end together."""
        # Recorded times differ from search to search, and must not decide which runs are the last.
        if self.budget.is_timed:
            entries = sorted(entries, key=lambda entry: -self.costs.seconds(entry.config))
        self.trained.train([(entry.config, split) for entry in entries for split in splits])

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

    def _outcome(self) -> SearchOutcome:
        candidates = []
        for entry in self.entries:
            candidate = self.trained.candidate(entry)
            if candidate is not None:
                candidates.append(candidate)
        failures = self.trained.failures()
        if not candidates:
            reason = next(iter(failures), "give it more time")
            raise UserError(f"no model could be trained: {reason}")
        scored = self.splits.scored
        return SearchOutcome(
            tuple(rank_candidates(candidates, scored, self.metric)),
            scored,
            self.metric,
            len(self.trained.finished),
            self.budget.seconds_to_first,
            tuple(failures),
            tuple(self._ablations),
        )


def _family_bests(ranked: Sequence[Entry]) -> list[Entry]:
    """Return the best entry that ignores the edges and the best that ignores the features."""
    found = []
    for family in (FEATURES, LINKS):
        found += [entry for entry in ranked if entry.family == family][:1]
    return found
