"""The tables and the figure of the evaluation of ``nfgnn auto``."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_foreign_file, starts_with
from nfgnn.explain import COLOURS, INK, MUTED, canvas, headline, panels, save, signed
from nfgnn.files import atomic_write
from nfgnn.nn import MODELS
from nfgnn.paper.studies.auto_plan import (
    AUTO,
    CLASSICAL_PROTOCOL,
    PRESET,
    SEEDS,
    TUNE,
    evaluation_columns,
)
from nfgnn.paper.studies.auto_records import TABLE, EvaluationRecord, records_table
from nfgnn.progress import duration

NAME = "auto"
FIGURE = "auto_budget"
FORMATS = ("svg", "png")
SINGLE = "auto --single"
"""The best single model of the searches of :data:`AUTO`."""
PRESET_POINTS = 1.0
DEFAULT_POINTS = 0.5
CLOSE_PRESETS = 9
"""Targets: the margins to the preset and to the best default, and the number of graphs."""
BUDGET_SHARE = 0.1
FIRST_SECONDS = 30.0
FIRST_NODES = 3000
"""Target: the time to the first answer, and the largest graph that it applies to."""
_TITLE = "# `nfgnn auto` on graphs that it does not know"


@dataclass(frozen=True)
class GraphScores:
    """Mean test scores of the methods on one graph, in percent."""

    graph: str
    protocol: str
    metric: str
    scores: dict[str, float]
    seeds: int
    """Number of seeds of ``auto``."""
    failed: tuple[str, ...]
    """Models whose defaults cannot be trained on this graph."""

    @property
    def best_default(self) -> str:
        defaults = [method for method in self.scores if method in MODELS]
        return max(defaults, key=lambda method: self.scores[method])

    def difference(self, other: str, method: str = AUTO) -> float:
        return self.scores[method] - self.scores[other]


@dataclass(frozen=True)
class Target:
    """A requirement, and whether it is met."""

    text: str
    is_met: bool
    found: str


def graph_scores(records: Sequence[EvaluationRecord], seconds: float) -> list[GraphScores]:
    """Return the scores of all graphs on which ``auto`` and a default have results.

    Args:
        records: all records.
        seconds: the budget of the searches.
    """
    found = []
    for column in evaluation_columns():
        of_graph = [
            record
            for record in records
            if record.graph == column.name and record.seconds_allowed in (None, seconds)
        ]
        values = {method: _values(of_graph, method) for method in (AUTO, TUNE, PRESET, *MODELS)}
        values[SINGLE] = [record.details["single"] for record in of_graph if record.method == AUTO]
        scores = {method: 100 * float(np.mean(v)) for method, v in values.items() if v}
        failed = {record.method for record in of_graph if record.problem} - set(scores)
        if AUTO in scores and any(method in MODELS for method in scores):
            found.append(
                GraphScores(
                    column.name,
                    column.protocol,
                    of_graph[0].metric,
                    scores,
                    len(values[AUTO]),
                    tuple(sorted(failed)),
                )
            )
    return found


def _values(records: Iterable[EvaluationRecord], method: str) -> list[float]:
    return [r.test for r in records if r.method == method and r.test is not None]


def average_ranks(graphs: Sequence[GraphScores], auto: str = AUTO) -> dict[str, float]:
    """Return the mean rank over graphs of ``auto``, ``tune`` and the defaults.

    Presets exist for some of the graphs only, so they are not ranked. Neither is ``tune`` unless it
    has searched all of them. A model without a result on a graph ranks last there.

    Args:
        graphs: scores of all graphs.
        auto: :data:`AUTO` or :data:`SINGLE`, which takes its place.
    """
    from scipy.stats import rankdata

    methods = [m for m in (auto, *MODELS) if any(m in graph.scores for graph in graphs)]
    if all(TUNE in graph.scores for graph in graphs):
        methods.append(TUNE)
    ranks = []
    for graph in graphs:
        scores = [graph.scores.get(method, -np.inf) for method in methods]
        ranks.append(rankdata([-score for score in scores]))
    means = np.mean(ranks, axis=0)
    by_rank = sorted(zip(methods, means), key=lambda pair: pair[1])
    return {method: float(rank) for method, rank in by_rank}


def find_targets(
    graphs: Sequence[GraphScores], records: Sequence[EvaluationRecord], seconds: float
) -> list[Target]:
    """Return what ``auto`` should reach, and what it reaches."""
    ranks = average_ranks(graphs)
    first, second = list(ranks)[:2]
    targets = [
        Target(
            "first by average rank",
            first == AUTO,
            f"{first} {ranks[first]:.2f}, {second} {ranks[second]:.2f}",
        )
    ]
    classical = [
        graph for graph in graphs if graph.protocol == CLASSICAL_PROTOCOL and PRESET in graph.scores
    ]
    far = [graph for graph in classical if graph.difference(PRESET) < -PRESET_POINTS]
    close = len(classical) - len(far)
    targets.append(
        Target(
            f"at most {PRESET_POINTS:g} point below the searched preset on at least "
            f"{CLOSE_PRESETS} of 10 classical graphs",
            close >= CLOSE_PRESETS,
            f"{close} of {len(classical)}{_below(far, lambda graph: PRESET)}",
        )
    )
    far = [g for g in graphs if g.difference(g.best_default) < -DEFAULT_POINTS]
    targets.append(
        Target(
            f"at most {DEFAULT_POINTS:g} points below the best default of any model on all graphs",
            not far,
            f"{len(graphs) - len(far)} of {len(graphs)}"
            f"{_below(far, lambda graph: graph.best_default)}",
        )
    )
    searches = [r for r in records if r.method == AUTO and r.seconds_allowed == seconds]
    longest = max(record.seconds for record in searches)
    targets.append(
        Target(
            f"budget of {duration(seconds)} kept within {100 * BUDGET_SHARE:.0f} %",
            longest <= (1 + BUDGET_SHARE) * seconds,
            f"the longest search takes {longest:.0f} s",
        )
    )
    small = [r for r in searches if 0 < r.details.get("nodes", 0) <= FIRST_NODES]
    if small:
        latest = max(record.details["seconds_to_first"] for record in small)
        targets.append(
            Target(
                f"first answer within {FIRST_SECONDS:.0f} s on graphs of up to {FIRST_NODES:,} "
                "nodes",
                latest <= FIRST_SECONDS,
                f"after {latest:.1f} s at most",
            )
        )
    return targets


def _below(graphs: Sequence[GraphScores], other: Callable[[GraphScores], str]) -> str:
    """Return the graphs that miss a target, with the differences."""
    if not graphs:
        return ""
    parts = [f"{graph.graph} {graph.difference(other(graph)):+.2f}" for graph in graphs]
    return f"; not on {', '.join(parts)}"


def write_auto_report(records: Sequence[EvaluationRecord], out: Path, seconds: float) -> list[Path]:
    """Write the tables as Markdown and CSV, and the figure of quality against budget.

    Args:
        records: all records of the evaluation.
        out: folder to write to.
        seconds: the budget that is compared with the other methods.

    Returns:
        The paths of the files.
    """
    graphs = graph_scores(records, seconds)
    if not graphs:
        raise UserError(
            f"no graph has results of auto with {duration(seconds)} and of a default, so nothing "
            "is written"
        )
    path = out / f"{NAME}.md"
    refuse_foreign_file(path, starts_with(_TITLE), "a report")
    targets = find_targets(graphs, records, seconds)
    atomic_write(path, markdown(graphs, records, targets, seconds))
    atomic_write(out / TABLE, records_table(records))
    paths = [path, out / TABLE]
    return paths + save(draw_budgets(records), out / "figures", FIGURE, FORMATS)


def markdown(
    graphs: Sequence[GraphScores],
    records: Sequence[EvaluationRecord],
    targets: Sequence[Target],
    seconds: float,
) -> str:
    """Return the report."""
    lines = [_HEAD.format(title=_TITLE, budget=duration(seconds)), "## Targets", ""]
    lines += ["| target | met | found |", "|---|---|---|"]
    for target in targets:
        lines.append(f"| {target.text} | {'yes' if target.is_met else 'no'} | {target.found} |")
    lines += ["", "## Test scores", "", _SCORES, *_score_table(graphs)]
    lines += ["", "## Average rank", "", _RANKS, *_rank_table(graphs)]
    budgets = _budgets(records)
    if len(budgets) > 1:
        usual = _usual_budgets(records)
        lines += ["", "## Quality against budget", "", _BUDGETS, *_budget_table(records, usual)]
        if usual != budgets:
            lines += ["", _ALL_BUDGETS, *_budget_table(records, budgets)]
    lines += ["", "## How it was made", "", *_how(graphs, records, seconds)]
    return "\n".join(lines) + "\n"


def _score_table(graphs: Sequence[GraphScores]) -> list[str]:
    heads = ["graph", AUTO, SINGLE, TUNE, PRESET, "best default", "− preset", "− best default"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for graph in graphs:
        best = graph.best_default
        cells = [_shown(graph.scores.get(method)) for method in (AUTO, SINGLE, TUNE, PRESET)]
        gain = "–" if PRESET not in graph.scores else f"{graph.difference(PRESET):+.2f}"
        cells += [f"{_shown(graph.scores[best])} ({best})", gain]
        cells.append(f"{graph.difference(best):+.2f}")
        lines.append(f"| {graph.graph} ({graph.metric}) | {' | '.join(cells)} |")
    return lines


def _rank_table(graphs: Sequence[GraphScores]) -> list[str]:
    lines = ["| method | average rank |", "|---|---:|"]
    for method, rank in average_ranks(graphs).items():
        lines.append(f"| {method} | {rank:.2f} |")
    single = average_ranks(graphs, SINGLE)[SINGLE]
    return [*lines, "", f"With `{SINGLE}` instead of `{AUTO}`, its average rank is {single:.2f}."]


def _budgets(records: Sequence[EvaluationRecord]) -> list[float]:
    """Return the budgets of ``auto`` in the records."""
    found = {r.seconds_allowed for r in records if r.method == AUTO}
    return sorted(seconds for seconds in found if seconds is not None)


def _usual_budgets(records: Sequence[EvaluationRecord]) -> list[float]:
    """Return the budgets with which most graphs were searched."""
    searched: dict[float, set[str]] = {}
    for record in records:
        if record.method == AUTO and record.seconds_allowed is not None:
            searched.setdefault(record.seconds_allowed, set()).add(record.graph)
    most = max(map(len, searched.values()), default=0)
    return sorted(seconds for seconds, graphs in searched.items() if len(graphs) == most)


def _gains(
    records: Sequence[EvaluationRecord], budgets: Sequence[float]
) -> dict[float, dict[str, dict[str, float]]]:
    """Return points above the best default by budget, method and graph.

    Only graphs and seeds that were searched with every one of the budgets count, so that these can
    be compared.
    """
    compared = []
    for column in evaluation_columns():
        of_graph = [record for record in records if record.graph == column.name]
        seeds = {record.seed for record in of_graph}
        for seconds in budgets:
            searches = [r for r in of_graph if r.task.seconds == seconds and r.method == AUTO]
            seeds &= {record.seed for record in searches}
        compared += [record for record in of_graph if record.seed in seeds]
    gains: dict[float, dict[str, dict[str, float]]] = {}
    for seconds in budgets:
        graphs = graph_scores(compared, seconds)
        gains[seconds] = {}
        for method in (AUTO, SINGLE):
            gains[seconds][method] = {
                graph.graph: graph.difference(graph.best_default, method) for graph in graphs
            }
    return gains


def _budget_table(records: Sequence[EvaluationRecord], budgets: Sequence[float]) -> list[str]:
    gains = _gains(records, budgets)
    names = list(next(iter(gains.values()))[AUTO])
    heads = ["budget", AUTO, SINGLE, *names]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for seconds, by_method in gains.items():
        means = [float(np.mean(list(by_method[method].values()))) for method in (AUTO, SINGLE)]
        values = [*means, *by_method[AUTO].values()]
        shown = " | ".join(f"{value:+.2f}" for value in values)
        lines.append(f"| {duration(seconds)} | {shown} |")
    return lines


def draw_budgets(records: Sequence[EvaluationRecord]) -> Any:
    """Return a figure of quality against budget, and of the time to the first answer."""
    budgets = _usual_budgets(records)
    gains = _gains(records, budgets)
    with canvas() as plt:
        figure, axes = panels(plt, 2, width=3.4, height=2.6)
        quality, first = axes[0]
        for name in next(iter(gains.values()))[AUTO]:
            values = [gains[seconds][AUTO][name] for seconds in budgets]
            quality.plot(budgets, values, color=MUTED, linewidth=0.6, zorder=1)
        for method, colour in zip((AUTO, SINGLE), COLOURS):
            means = [float(np.mean(list(gains[s][method].values()))) for s in budgets]
            quality.plot(budgets, means, "o-", color=colour, label=method)
        ticks = _budgets(records)
        if ticks != budgets:
            some = _gains(records, ticks)
            means = [float(np.mean(list(some[s][AUTO].values()))) for s in ticks]
            count = len(some[ticks[-1]][AUTO])
            label = f"auto, {count} of {len(gains[budgets[-1]][AUTO])} graphs"
            quality.plot(ticks, means, "s--", color=COLOURS[2], label=label)
        quality.axhline(0, color=INK, linewidth=0.8, linestyle=":")
        quality.set_xscale("log")
        quality.set_xticks(ticks, [duration(seconds) for seconds in ticks])
        quality.minorticks_off()
        quality.set(xlabel="budget", ylabel="points above the best default")
        mean = float(np.mean(list(gains[budgets[-1]][AUTO].values())))
        quality.set_title(f"{signed(mean)} points on average in {duration(budgets[-1])}")
        quality.legend()
        searches = [r for r in records if r.method == AUTO and r.details.get("nodes")]
        nodes = [record.details["nodes"] for record in searches]
        seconds = [record.details["seconds_to_first"] for record in searches]
        first.plot(nodes, seconds, "o", color=COLOURS[0], markersize=3)
        first.set(xscale="log", xlabel="nodes", ylabel="seconds to the first answer")
        first.set_ylim(bottom=0)
        if seconds:
            first.set_title(f"Median {np.median(seconds):.0f} s to the first answer")
        differences = list(gains[budgets[-1]][AUTO].values())
        better = sum(difference > 0 for difference in differences)
        finding = (
            f"auto beats the best default on {better} of {len(differences)} graphs "
            f"in {duration(budgets[-1])}"
        )
        headline(figure, finding)
    return figure


def _how(
    graphs: Sequence[GraphScores], records: Sequence[EvaluationRecord], seconds: float
) -> list[str]:
    lines = []
    for command in sorted({record.command for record in records}):
        of_command = [record for record in records if record.command == command]
        machines = sorted({f"{r.device} ({r.machine}, {r.cores} cores)" for r in of_command})
        lines.append(f"- `{command}`: {len(of_command)} results, on {'; '.join(machines)}")
    evaluated = {graph.graph for graph in graphs}
    for column in evaluation_columns():
        if column.name not in evaluated:
            lines.append(f"- Missing: {column.name} has no result of auto or of the defaults")
    for method in (TUNE, *MODELS):
        absent = [g.graph for g in graphs if method not in (*g.scores, *g.failed)]
        if absent:
            on = "any graph" if len(absent) == len(graphs) else ", ".join(absent)
            lines.append(f"- Missing: {method} has no result on {on}")
    for graph in graphs:
        if graph.seeds < len(SEEDS):
            lines.append(f"- Missing: {graph.graph} has {graph.seeds} of {len(SEEDS)} seeds")
        if graph.failed:
            lines.append(f"- {graph.graph} cannot be trained with {', '.join(graph.failed)}")
    return lines


def _shown(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


_HEAD = """{title}

`benchmarks/auto_evaluation.py` makes this file. `auto` searches every graph for {budget} with a
portfolio that was selected without this graph and without those that share nodes with it. Defaults
and `tune` do not know the preset of the graph either. Seeds choose split and weights. No setting
was selected with them, but an earlier version of `auto` was evaluated with the same seeds, and its
schedule was then changed because of the graphs on which it was weak.
"""
_SCORES = """The official metric on test nodes in percent, mean over the seeds. `tune` searches
NFGNN for as long as `auto`; `preset` is NFGNN with the settings that were searched on this graph.
The best default is the model with the highest mean on the test nodes, which no user could know.
"""
_RANKS = """Mean rank over the graphs. A model without a result on a graph ranks last there. `tune`
is ranked if it has searched all graphs.
"""
_BUDGETS = """Points above the best default: means over graphs, then every graph for `auto`. Only
seeds that were searched with every budget count.
"""
_ALL_BUDGETS = """The same for the graphs and seeds that were also searched with further budgets:
"""
