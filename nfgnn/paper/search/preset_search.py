"""Search the presets that the package ships: ``nfgnn tune --presets``.

For a round, a cell (graph and protocol) and a family (a model with its structural choices), random
numbers are drawn, always the same ones, and trained on a few search seeds. The best by mean
validation accuracy become finalists, which are trained on more seeds. Every configuration is a row
of ``results/search.parquet``, and a finished one is not trained again, so an interrupted search
resumes where it stopped.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.errors import UserError, unknown_name
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
    Executor,
    Graph,
    InMemory,
    InProcess,
    Metric,
    Record,
    Records,
    RunConfig,
    RunResult,
    RunSpec,
    resolve_metric,
)

Scores = tuple[float, float, int]
"""The metric on validation and on test nodes of a run, and its number of epochs."""


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
    executor: Executor | None = None,
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
        executor: where runs execute; by default one after the other in this process.

    Returns:
        Lines to print: what is missing, what was trained, or what was written.
    """
    progress = progress or Progress("presets", quiet=True)
    executor = executor or InProcess()
    found = SearchResults(results)
    tasks = _tasks(found, rounds, cells, families)
    lines: list[str] = []
    if missing:
        for task in tasks:
            drawn, finalists = task.count_missing()
            if drawn:  # the finalists are not known before all draws are trained
                lines.append(f"{task}: {drawn} draws")
            elif finalists:
                lines.append(f"{task}: {finalists} finalists")
        return lines
    if not from_records:
        with Records(storage) as records:
            for task in tasks:
                if any(task.count_missing()):
                    graph = find_graph(task.cell.dataset, root)
                    protocol = task.cell.protocol
                    evaluator = Evaluator(
                        graph, protocol, records, progress, device, True, executor
                    )
                    best = task.run(evaluator)
                    lines.append(f"{task}: validation accuracy {best:.2f} %")
    if write:
        lines += write_presets(found.rows, presets, results.with_suffix(".md"))
    return lines


class Task:
    """One round of the search in one cell, for one family.

    Args:
        round: one of :data:`~nfgnn.paper.search.rounds.ROUNDS`.
        cell: graph and protocol.
        family: one of :data:`~nfgnn.paper.search.rounds.FAMILIES`.
        results: all results so far, to which new ones are added.
    """

    def __init__(self, round: str, cell: Cell, family: str, results: SearchResults) -> None:
        self.round = round
        self.cell = cell
        self.family = family
        self.results = results
        self.last_stage = 3 if round == "held" else 2

    def __str__(self) -> str:
        return f"{self.round} {self.cell} {self.family}"

    def seeds(self) -> tuple[range, range]:
        """Return the seeds of the draws and of the finalists."""
        few, many = seeds_of(self.cell, self.round)
        if self.round == "contained":
            # As many as the other finalists have.
            finalists = self.results.finalists(self.cell, self.family)
            many = range(max((result.num_seeds for result in finalists), default=0))
        return few, many

    def finalists(self) -> list[Config]:
        """Return the configurations for the last stage.

        They are the best of this round's draws, and the shipped preset from the third round on.
        """
        known = self.results.finalists(self.cell, self.family)
        if self.round == "final":
            return [result.config for result in known[:4]]
        if self.round == "held":
            return _best_of_every_structure(known)[:8]
        preset = shipped(self.cell, self.family)
        if self.round == "contained":
            others: list[Config] = []
            for model in CONTAINED:
                best = self.results.finalists(self.cell, model)[:3]
                others += [_with_filter(self.family, result.config) for result in best]
            return [*others, preset]
        few, _ = self.seeds()
        drawn = [config for configs in self._draws() for config in configs]
        drawn.sort(key=lambda config: -self._mean(config, len(few)))
        count = 3 if self.cell.is_large or self.round == "raw" else 5
        if self.round in ("wide", "narrow"):
            return drawn[:count]
        return [*drawn[:count], preset]

    def _draws(self) -> list[list[Config]]:
        return draws(self.cell, self.family, self.round)

    def _find(self, stage: int, config: Config) -> Result | None:
        return self.results.find(self.cell, self.family, stage, config)

    def _mean(self, config: Config, seeds: int) -> float:
        """Return the mean of a draw. Means that only differ by rounding are equal."""
        result = self._find(1, config)
        assert result is not None, "finalists are chosen when all draws are trained"
        return round(result.val_mean(seeds), 6)

    def count_missing(self) -> tuple[int, int]:
        """Return how many draws, and how many finalists among those trained, lack results."""
        few, many = self.seeds()
        drawn = sum(len(self._missing(1, configs, few)) for configs in self._draws())
        if drawn:
            return drawn, 0
        # The shipped preset changes with every search, so it does not count.
        preset = shipped(self.cell, self.family)
        finalists = [config for config in self.finalists() if config != preset]
        return 0, len(self._missing(self.last_stage, finalists, many))

    def _missing(self, stage: int, configs: Sequence[Config], seeds: range) -> list[Config]:
        """Return the configurations that were not trained on all of the seeds."""
        return [config for config in configs if self._seeds_done(stage, config) < len(seeds)]

    def _seeds_done(self, stage: int, config: Config) -> int:
        """Return on how many seeds a configuration was trained; 0 if only a mean was kept."""
        result = self._find(stage, config)
        if result is None or result.seeds is not None:
            return 0
        return len(result.val)

    def run(self, evaluator: Evaluator) -> float:
        """Train what is missing and return the best mean validation accuracy of the last stage."""
        few, many = self.seeds()
        for configs in self._draws():
            self._train(1, configs, few, evaluator)
        finalists = self.finalists()
        if not many:
            raise UserError(
                f"{self}: there are no finalists yet; train the rounds before it, or restore the "
                "file with the results"
            )
        for configs in group_by_structure(finalists):
            self._train(self.last_stage, configs, many, evaluator)
        found = [self._find(self.last_stage, config) for config in finalists]
        return max(result.val_mean(len(many)) for result in found if result is not None)

    def _train(
        self, stage: int, configs: Sequence[Config], seeds: range, evaluator: Evaluator
    ) -> None:
        """Train configurations of one structure on the seeds that they lack."""
        missing = self._missing(stage, configs, seeds)
        for start in sorted({self._seeds_done(stage, config) for config in missing}):
            part = [config for config in missing if self._seeds_done(stage, config) == start]
            new = range(start, len(seeds))
            resolved = [_resolved(config, evaluator.graph) for config in part]
            runs = len(part) * len(new)
            evaluator.progress.start(runs, runs)
            if stage == 3:
                scores = held_out_scores(evaluator, resolved, new)
            else:
                found = evaluator.evaluate(resolved, new)
                metric = resolve_metric("auto", evaluator.graph.data)
                scores = [[_scores(run, metric) for run in of_config] for of_config in found]
            rows = [self._result(stage, *row) for row in zip(part, scores)]
            self.results.add(rows)

    def _result(self, stage: int, config: Config, scores: Sequence[Scores]) -> Result:
        """Join new scores with those of the first seeds, if there are any."""
        known = self._find(stage, config)
        if known is not None and known.seeds is None:
            scores = [*zip(known.val, known.test, known.epochs or ()), *scores]
        val, test, epochs = (list(values) for values in zip(*scores))
        return Result(*self.cell, self.family, stage, config, val, test, epochs)


def _tasks(
    results: SearchResults,
    rounds: Sequence[str],
    cells: Sequence[str] | None,
    families: Sequence[str] | None,
) -> list[Task]:
    """Return what was asked for, round by round."""
    all_cells = [str(cell) for cell in cells_of("wide")]
    _refuse_unknown("round", rounds, ROUNDS)
    _refuse_unknown("cell", cells or (), all_cells)
    _refuse_unknown("family", families or (), list(FAMILIES))
    tasks = []
    for round in rounds:
        for cell in cells_of(round):
            for family in families_of(round):
                wanted = cells is None or str(cell) in cells
                if wanted and (families is None or family in families):
                    tasks.append(Task(round, cell, family, results))
    return tasks


def _refuse_unknown(kind: str, given: Sequence[str], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise unknown_name(f"{kind} of the preset search", name, names)


def _best_of_every_structure(finalists: Sequence[Result]) -> list[Config]:
    """Return the best configuration of every structure, then the others.

    Those with more seeds come first.
    """
    by_mean = sorted(finalists, key=lambda result: -round(result.val_mean(100), 6))
    by_seeds = sorted(by_mean, key=lambda result: -len(result.val))
    distinct: list[Config] = []
    for result in by_seeds:
        config = RunConfig.from_dict(result.config).to_dict()
        if config not in distinct:
            distinct.append(config)
    first = [group[0] for group in group_by_structure(distinct)]
    others = [config for config in distinct if config not in first]
    return [*first, *others]


def _with_filter(family: str, config: Config) -> Config:
    """Replace the filter of a model that is a global filter by the one of a family."""
    values = RunConfig.from_dict(config).to_dict()
    return {**values, **CONTAINED[config["model"]], **FAMILIES[family]}


def _resolved(config: Config, graph: Graph) -> RunConfig:
    """Return a configuration whose epochs are selected by the rule for the graph's metric."""
    return RunConfig.from_dict({"select": "auto", **config}).for_graph(graph.data)


def _scores(run: Record, metric: Metric) -> Scores:
    val = round(run.metrics[f"val_{metric.name}"], 5)
    test = round(run.metrics[f"test_{metric.name}"], 5)
    return val, test, int(run.metrics["epochs"])


class HeldOutSpec(RunSpec):
    """A run that is stopped by one half of the validation nodes."""

    def split(self) -> Data:
        return halve_validation(super().split(), self.seed)


def halve_validation(data: Data, seed: int) -> Data:
    """Return a split whose validation nodes are divided at random.

    One half stays in ``val_mask`` and the other is in ``held_mask``.
    """
    nodes = data.val_mask.nonzero().flatten()
    generator = torch.Generator().manual_seed(seed)
    nodes = nodes[torch.randperm(len(nodes), generator=generator)]
    half = len(nodes) // 2
    out = data.clone()
    out.val_mask = torch.zeros_like(data.val_mask)
    out.held_mask = torch.zeros_like(data.val_mask)
    out.val_mask[nodes[:half]] = True
    out.held_mask[nodes[half:]] = True
    return out


def held_out_scores(
    evaluator: Evaluator, configs: Sequence[RunConfig], seeds: range
) -> list[list[Scores]]:
    """Train every configuration on the seeds and score it by held-out validation nodes."""
    results = InMemory(_score_held_out)
    scores = []
    for config in configs:
        specs = [HeldOutSpec(evaluator.graph, evaluator.protocol, s, config) for s in seeds]
        evaluator.run(specs, results)
        # A run that diverged has no result and gets the worst possible scores.
        scores.append([results.find(spec) or (0.0, 0.0, 0) for spec in specs])
    return scores


def _score_held_out(result: RunResult) -> Scores:
    classifier = result.classifier
    val = classifier.score(result.data, result.data.held_mask)
    test = classifier.score(result.data)
    return round(val, 5), round(test, 5), classifier.history_.epochs
