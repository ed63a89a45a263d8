"""Search the presets that the package ships: ``nfgnn tune --presets``.

For a round, a cell (graph and protocol) and a family (a model with its structural choices), random
numbers are drawn, always the same ones, and trained on a few search seeds. The best by mean
validation accuracy become finalists, which are trained on more seeds. Every configuration is a row
of ``results/search.parquet``, and a finished one is not trained again, so an interrupted search
resumes where it stopped.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.search.engine import Evaluator
from nfgnn.paper.search.preset_files import write_presets
from nfgnn.paper.search.results import Result, SearchResults
from nfgnn.paper.search.rounds import (
    CONTAINED,
    FAMILIES,
    ROUNDS,
    SEARCH,
    Cell,
    Config,
    cells_of,
    draws,
    families_of,
    group_by_structure,
    seeds_of,
    shipped,
)
from nfgnn.progress import Progress
from nfgnn.training import (
    InProcess,
    Record,
    Records,
    Results,
    RunConfig,
    RunResult,
    RunSpec,
    execute,
    raise_first,
)

Scores = tuple[float, float, int]
"""Validation and test accuracy of a run, and its number of epochs."""


def run_preset_search(
    results: Path = Path("results/search.parquet"),
    missing: bool = False,
    from_records: bool = False,
    write: bool = False,
    rounds: Sequence[str] = SEARCH,
    cells: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    root: Path | None = None,
    device: str = "auto",
    storage: Path = Path("runs/search.sqlite"),
    presets: Path | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """List or train what is missing of the preset search, and write the winners.

    Args:
        results: the Parquet file of all configurations that were tried.
        missing: only list what ``results`` lacks; train and write nothing.
        from_records: train nothing; use what ``results`` holds.
        write: write the winners to the preset files, and a summary beside ``results``.
        rounds: rounds to run, of :data:`~nfgnn.paper.search.rounds.ROUNDS`.
        cells: cells to search, such as ``"texas:full"``; all of a round by default.
        families: families to search, of :data:`~nfgnn.paper.search.rounds.FAMILIES`.
        root: folder of raw datasets.
        device: where to train.
        storage: database of the single runs, from which an interrupted search resumes.
        presets: folder of the preset files; that of the package by default.
        progress: the display.

    Returns:
        Lines to print: what is missing, what was trained, or what was written.
    """
    progress = progress or Progress("presets", quiet=True)
    found = SearchResults(results)
    tasks = _tasks(rounds, cells, families)
    lines: list[str] = []
    if missing:
        for round, cell, family in tasks:
            counts = Round(round, found).count_missing(cell, family)
            if any(counts):
                lines.append(_describe(round, cell, family, counts))
        return lines
    if not from_records:
        with Records(storage) as records:
            for round, cell, family in tasks:
                search = Round(round, found)
                if any(search.count_missing(cell, family)):
                    graph = find_graph(cell.dataset, root)
                    evaluator = Evaluator(graph, cell.protocol, records, progress, device, True)
                    best = search.run(cell, family, evaluator)
                    lines.append(f"{round} {cell} {family}: validation accuracy {best:.2f} %")
    if write:
        lines += write_presets(found.rows, presets, results.with_suffix(".md"))
    return lines


def _tasks(
    rounds: Sequence[str], cells: Sequence[str] | None, families: Sequence[str] | None
) -> list[tuple[str, Cell, str]]:
    """Return round, cell and family of everything that was asked for."""
    known_cells = {str(cell) for cell in cells_of("wide")}
    for kind, given, known in (
        ("round", rounds, set(ROUNDS)),
        ("cell", cells or (), known_cells),
        ("family", families or (), set(FAMILIES)),
    ):
        for name in given:
            if name not in known:
                choices = ", ".join(sorted(known))
                raise UserError(f"the preset search has no {kind} '{name}': choose from {choices}")
    tasks = []
    for round in rounds:
        for cell in cells_of(round):
            if cells is None or str(cell) in cells:
                wanted = [f for f in families_of(round) if families is None or f in families]
                tasks += [(round, cell, family) for family in wanted]
    return tasks


def _describe(round: str, cell: Cell, family: str, counts: tuple[int, int]) -> str:
    drawn, finalists = counts
    if drawn:  # the finalists are not known before all draws are trained
        return f"{round} {cell} {family}: {drawn} draws"
    return f"{round} {cell} {family}: {finalists} finalists"


class Round:
    """One round of the search, on all that is known so far.

    Args:
        name: one of :data:`~nfgnn.paper.search.rounds.ROUNDS`.
        results: the results, to which new ones are added.
    """

    def __init__(self, name: str, results: SearchResults) -> None:
        self.name = name
        self.results = results
        self.last_stage = 3 if name == "held" else 2

    def seeds(self, cell: Cell, family: str) -> tuple[range, range]:
        """Return the seeds of the draws and of the finalists."""
        few, many = seeds_of(cell, self.name)
        if self.name == "contained":  # as many as the other finalists have
            finalists = self.results.finalists(cell, family)
            many = range(max(result.num_seeds for result in finalists))
        return few, many

    def finalists(self, cell: Cell, family: str) -> list[Config]:
        """Return the configurations for the last stage.

        They are the best of this round's draws, and the shipped preset from the third round on.
        """
        if self.name == "final":
            return [result.config for result in self.results.finalists(cell, family)[:4]]
        if self.name == "held":
            return self._best_of_every_structure(cell, family)[:8]
        if self.name == "contained":
            others: list[Config] = []
            for model in CONTAINED:
                finalists = self.results.finalists(cell, model)[:3]
                others += [_with_filter(family, result.config) for result in finalists]
            return [*others, shipped(cell, family)]
        few, _ = self.seeds(cell, family)
        tried: list[tuple[float, Config]] = []
        for configs in draws(cell, family, self.name):
            for config in configs:
                result = self.results.find(cell, family, 1, config)
                assert result is not None, "finalists are chosen when all draws are trained"
                tried.append((round(result.val_mean(len(few)), 6), config))
        tried.sort(key=lambda item: -item[0])
        count = 3 if cell.is_large or self.name == "raw" else 5
        best = [config for _, config in tried[:count]]
        return best if self.name in ("wide", "narrow") else [*best, shipped(cell, family)]

    def _best_of_every_structure(self, cell: Cell, family: str) -> list[Config]:
        """Return all finalists: the best of every structure, then the others.

        Those with more seeds come first.
        """
        found = sorted(
            self.results.finalists(cell, family),
            key=lambda result: (-len(result.val), -round(result.val_mean(100), 6)),
        )
        distinct: list[Config] = []
        for result in found:
            config = RunConfig.from_dict(result.config).to_dict()
            if config not in distinct:
                distinct.append(config)
        first = [group[0] for group in group_by_structure(distinct)]
        return [*first, *(config for config in distinct if config not in first)]

    def count_missing(self, cell: Cell, family: str) -> tuple[int, int]:
        """Return how many draws, and how many finalists among those trained, lack results."""
        few, many = self.seeds(cell, family)
        tried = [config for configs in draws(cell, family, self.name) for config in configs]
        drawn = len(self._missing(cell, family, 1, tried, few))
        if drawn:
            return drawn, 0
        # The shipped preset changes with every search, so it does not count.
        finalists = [c for c in self.finalists(cell, family) if c != shipped(cell, family)]
        return 0, len(self._missing(cell, family, self.last_stage, finalists, many))

    def _missing(
        self, cell: Cell, family: str, stage: int, configs: Sequence[Config], seeds: range
    ) -> list[Config]:
        """Return the configurations that were not trained on all of the seeds."""
        return [c for c in configs if self._seeds_done(cell, family, stage, c) < len(seeds)]

    def _seeds_done(self, cell: Cell, family: str, stage: int, config: Config) -> int:
        """Return on how many seeds a configuration was trained; 0 if only a mean was kept."""
        result = self.results.find(cell, family, stage, config)
        if result is None or result.seeds is not None:
            return 0
        return len(result.val)

    def run(self, cell: Cell, family: str, evaluator: Evaluator) -> float:
        """Train what is missing. Returns the best mean validation accuracy of the last stage."""
        few, many = self.seeds(cell, family)
        for configs in draws(cell, family, self.name):
            self._train(cell, family, 1, configs, few, evaluator)
        finalists = self.finalists(cell, family)
        for configs in group_by_structure(finalists):
            self._train(cell, family, self.last_stage, configs, many, evaluator)
        found = [self.results.find(cell, family, self.last_stage, c) for c in finalists]
        return max(result.val_mean(len(many)) for result in found if result is not None)

    def _train(
        self,
        cell: Cell,
        family: str,
        stage: int,
        configs: Sequence[Config],
        seeds: range,
        evaluator: Evaluator,
    ) -> None:
        """Train configurations of one structure on the seeds that they lack."""
        missing = self._missing(cell, family, stage, configs, seeds)
        for start in sorted({self._seeds_done(cell, family, stage, c) for c in missing}):
            part = [c for c in missing if self._seeds_done(cell, family, stage, c) == start]
            new = range(start, len(seeds))
            evaluator.progress.start(len(part) * len(new), len(part) * len(new))
            resolved = [RunConfig.from_dict(config) for config in part]
            if stage == 3:
                scores = held_out_scores(evaluator, resolved, new)
            else:
                runs = evaluator.evaluate(resolved, new)
                scores = [[_scores(run) for run in of_config] for of_config in runs]
            self.results.add(
                self._result(cell, family, stage, config, start, found)
                for config, found in zip(part, scores)
            )

    def _result(
        self,
        cell: Cell,
        family: str,
        stage: int,
        config: Config,
        start: int,
        scores: list[Scores],
    ) -> Result:
        """Join what is known of the first ``start`` seeds with the scores on the others."""
        known = self.results.find(cell, family, stage, config) if start else None
        val, test, epochs = (list(values) for values in zip(*scores))
        if known is not None:
            val = [*known.val, *val]
            test = [*known.test, *test]
            epochs = [*(known.epochs or ()), *epochs]
        return Result(*cell, family, stage, config, val, test, epochs)


def _scores(run: Record) -> Scores:
    val = round(run.metrics["val_accuracy"], 5)
    test = round(run.metrics["test_accuracy"], 5)
    return val, test, int(run.metrics["epochs"])


def _with_filter(family: str, config: Config) -> Config:
    """Replace the filter of a model that is a global filter by the one of a family."""
    values = RunConfig.from_dict(config).to_dict()
    return {**values, **CONTAINED[config["model"]], **FAMILIES[family]}


def halve_validation(data: Data, seed: int) -> Data:
    """Return a split whose validation nodes are divided at random.

    One half stays in ``val_mask`` and the other is in ``held_mask``.
    """
    nodes = data.val_mask.nonzero().flatten()
    generator = torch.Generator().manual_seed(seed)
    nodes = nodes[torch.randperm(len(nodes), generator=generator)]
    out = data.clone()
    out.val_mask = torch.zeros_like(data.val_mask)
    out.held_mask = torch.zeros_like(data.val_mask)
    out.val_mask[nodes[: len(nodes) // 2]] = True
    out.held_mask[nodes[len(nodes) // 2 :]] = True
    return out


class HeldOutSpec(RunSpec):
    """A run that is stopped by one half of the validation nodes."""

    def split(self) -> Data:
        return halve_validation(super().split(), self.seed)


class HeldOutScores(Results):
    """Accuracy on the held-out validation nodes and on the test nodes, by configuration and seed."""

    def __init__(self) -> None:
        self.scores: dict[tuple[str, int], Scores] = {}

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if self._key(spec) not in self.scores]

    def pack(self, result: RunResult) -> Scores:
        data = result.data
        val = result.classifier.score(data, data.held_mask)
        test = result.classifier.score(data)
        return round(val, 5), round(test, 5), result.classifier.history_.epochs

    def store(self, spec: RunSpec, packed: Scores) -> str:
        self.scores[self._key(spec)] = packed
        return ""

    def find(self, spec: RunSpec) -> Scores:
        """Return the scores of a run; the worst possible ones if it diverged."""
        return self.scores.get(self._key(spec), (0.0, 0.0, 0))

    def _key(self, spec: RunSpec) -> tuple[str, int]:
        return json.dumps(spec.config.to_dict()), spec.seed


def held_out_scores(
    evaluator: Evaluator, configs: Sequence[RunConfig], seeds: range
) -> list[list[Scores]]:
    """Train every configuration on the seeds and score it by held-out validation nodes."""
    specs = [
        [HeldOutSpec(evaluator.graph, evaluator.protocol, seed, config) for seed in seeds]
        for config in configs
    ]
    results = HeldOutScores()
    failures = execute(
        [spec for of_config in specs for spec in of_config],
        results,
        InProcess(),
        evaluator.progress,
        evaluator.device,
        start_progress=False,
    )
    raise_first([failure for failure in failures if not failure.diverged])
    return [[results.find(spec) for spec in of_config] for of_config in specs]
