"""The files of the study of node gates: tables, values and figures."""

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.explain import COLOURS, MUTED, canvas, headline, panels, save
from nfgnn.files import atomic_write
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE
from nfgnn.paper.studies.node_gate_outcomes import (
    LEAST_NODES,
    SIGNIFICANT,
    CellOutcome,
    GateComparison,
    NetworkOutcome,
    Outcomes,
    Verdict,
    find_outcomes,
)
from nfgnn.paper.studies.node_gate_runs import INTERVALS, run_node_gate_study
from nfgnn.progress import Progress
from nfgnn.training import export_records, open_records

NAME = "node_gates"
FORMATS = ("png", "pdf")
_COMMAND = "nfgnn reproduce node-gates"
_WHAT = "a study"
_TESTS = ("p", "p (Holm)", "p (ranks)", "p (overlap)")
_COLUMNS = (
    "group",
    "graph",
    "protocol",
    "metric",
    "network",
    "mean",
    "ci95",
    "runs",
    "dead",
    "worst_interval",
    "difference",
    "difference_ci95",
    "p",
    "p_holm",
    "p_signed_rank",
    "p_overlapping",
    "same_settings",
    "oracle_share",
)


def write_node_gates(
    out: Path = Path("results"),
    datasets: Sequence[str] | None = None,
    root: Path | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    from_records: bool = False,
    overwrite: bool = False,
) -> list[Path]:
    """Make the missing runs of the study and write its tables and figures.

    Args:
        out: folder to write to. The records are in ``node_gates.sqlite`` there, and are exported to
            ``node_gates.parquet``.
        datasets: names of graphs of the study; all of them by default.
        root: folder of raw datasets.
        device: where to train.
        progress: the display.
        from_records: train nothing.
        overwrite: replace the files of a study of other graphs.

    Returns:
        The paths of the Markdown, CSV and JSON files, then those of the figures.
    """
    graphs = plan.find_graphs(datasets)
    command = _COMMAND if datasets is None else f"{_COMMAND} --datasets {','.join(datasets)}"
    for ending in ("md", "json"):
        _check_output(out / f"{NAME}.{ending}", command, overwrite)
    with open_records(out / f"{NAME}.sqlite") as records:
        if not from_records:
            names = [graph.name for graph in graphs]
            run_node_gate_study(names, device, records, None, root, progress)
        outcomes = find_outcomes(graphs, records, root)
        if not outcomes.cells:
            raise UserError(
                "no report run of the study is recorded, so nothing is written: run the same "
                "command without --from-records"
            )
        export_records(records, out / f"{NAME}.parquet")
    texts = {
        "md": markdown(outcomes, command),
        "csv": values_csv(outcomes.cells),
        "json": json.dumps(_content(outcomes, command), indent=1) + "\n",
    }
    paths = []
    for ending, text in texts.items():
        paths.append(out / f"{NAME}.{ending}")
        atomic_write(paths[-1], text)
    paths += save(draw_gains(outcomes.cells), out / "figures", f"{NAME}_gain", FORMATS)
    with_reference = [cell for cell in outcomes.cells if plan.MLP in cell.networks]
    if with_reference:
        figure = draw_intervals(with_reference)
        paths += save(figure, out / "figures", f"{NAME}_homophily", FORMATS)
    return paths


def markdown(outcomes: Outcomes, command: str) -> str:
    """Return the tables of all outcomes, the verdict first."""
    cells = outcomes.cells
    primary = [cell for cell in cells if cell.is_primary]
    generated = [cell for cell in cells if cell.graph.is_generated]
    shifts = [cell for cell in cells if cell.is_shift]
    lines = ["# Does a filter per node pay inside a strong network?", "", *_verdict(outcomes)]
    if primary:
        lines += ["", "## Real graphs", "", *_score_table(primary)]
        lines += ["", "## All tests on real graphs", "", *_test_table(primary)]
    if generated:
        lines += ["", "## Generated graphs", "", *_generated_table(generated)]
    if shifts:
        lines += ["", "## Shift of local homophily", "", *_score_table(shifts)]
    with_reference = [cell for cell in cells if plan.MLP in cell.networks]
    if with_reference:
        lines += ["", "## Accuracy by local homophily", "", *_interval_table(with_reference)]
    seeds = plan.REPORT_SEEDS
    lines += ["", "## How it was made", "", f"- Command: `{command}`"]
    lines.append("- Plan: docs/studies/node-gates.md")
    lines.append(f"- Report seeds: {seeds[0]} to {seeds[-1]}, of split and model")
    lines += [f"- {machine}" for machine in outcomes.machines]
    dead = sum(network.dead for cell in cells for network in cell.networks.values())
    lines.append(f"- Runs that diverged or never rose above chance: {dead}")
    lines += [f"- Missing: {line}" for line in outcomes.missing]
    return "\n".join(lines) + "\n"


def _verdict(outcomes: Outcomes) -> list[str]:
    verdict = outcomes.verdict
    if verdict.pays:
        lines = ["**Verdict: a filter per node pays** by the rule of the plan."]
    else:
        lines = ["**Verdict: no gain was shown** by the rule of the plan."]
    if not _is_decided(outcomes):
        lines[0] += " It is preliminary, because runs on real graphs are missing."
    elif outcomes.missing:
        lines[0] += " All runs that decide it are made. Others are missing: see the end."
    return [*lines, *_significant(verdict)]


def _is_decided(outcomes: Outcomes) -> bool:
    """Whether all real graphs have all runs of the primary tests."""
    tested = set()
    for cell in outcomes.cells:
        for comparison in cell.comparisons:
            if cell.is_primary and comparison.runs == len(plan.REPORT_SEEDS):
                tested.add((cell.graph.name, comparison.gate))
    real = [graph.name for graph in plan.GRAPHS.values() if not graph.is_generated]
    return all((name, gate) in tested for name in real for gate in plan.CONFIRMATORY)


def _significant(verdict: Verdict) -> list[str]:
    lines = [""]
    for gate, gains in verdict.gains.items():
        losses = verdict.losses[gate]
        lines.append(
            f"- `{gate}`: significant gains on {_listed(gains)}, significant losses on "
            f"{_listed(losses)}."
        )
    return lines


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no graph"


def _score_table(cells: Sequence[CellOutcome]) -> list[str]:
    """Return one row per cell: scores of all networks, and the gain of every gate."""
    networks = _in_any(cells)
    gates = [network for network in networks if network in plan.gates()]
    heads = [*networks, *(f"{_marked(gate)} − none" for gate in gates)]
    lines = [
        *_paragraph(
            "The official metric on test nodes in %: mean ± 95 % confidence interval over the "
            "report seeds."
        ),
        "",
        _row(["graph", *heads]),
        _row(["---", *["---:"] * len(heads)]),
    ]
    for cell in cells:
        scores = {name: _interval(network.summary) for name, network in cell.networks.items()}
        gains = {comparison.gate: _gain(comparison) for comparison in cell.comparisons}
        entries = [scores.get(network, "–") for network in networks]
        entries += [gains.get(gate, "–") for gate in gates]
        lines.append(_row([_title(cell), *entries]))
    return lines


def _in_any(cells: Sequence[CellOutcome]) -> list[str]:
    """Return the networks that at least one cell has, in the order of the plan."""
    order = [*plan.networks(), ORACLE]
    return [network for network in order if any(network in cell.networks for cell in cells)]


def _test_table(cells: Sequence[CellOutcome]) -> list[str]:
    lines = [
        *_paragraph(
            "P values of the paired t-test, with Holm's correction, of Wilcoxon's signed-rank test "
            "and of the t-test for overlapping training sets. *Same settings* is the gain on "
            "validation nodes over the paired draws, in points. A gain in bold has p (Holm) < 0.05."
        ),
        "",
        _row(["graph", "gate", "gain", *_TESTS, "same settings"]),
        _row(["---", "---", *["---:"] * (len(_TESTS) + 2)]),
    ]
    for cell in cells:
        for test in cell.comparisons:
            values = [test.p, test.p_holm, test.p_signed_rank, test.p_overlapping]
            same = _interval(test.same_settings, signed=True)
            entries = [_title(cell), _marked(test.gate), _gain(test), *map(_p_value, values), same]
            lines.append(_row(entries))
    return lines


def _generated_table(cells: Sequence[CellOutcome]) -> list[str]:
    lines = _score_table(cells)
    shares = []
    for cell in cells:
        for comparison in cell.comparisons:
            share = comparison.oracle_share
            text = "–" if share is None else f"{100 * share:.0f} %"
            shares.append(_row([_title(cell), _marked(comparison.gate), text]))
    header = [_row(["graph", "gate", "share of the oracle's gap"]), _row(["---", "---", "---:"])]
    return [*lines, "", *header, *shares]


def _interval_table(cells: Sequence[CellOutcome]) -> list[str]:
    limits = [f"{i / INTERVALS:.1f}–{(i + 1) / INTERVALS:.1f}" for i in range(INTERVALS)]
    lines = [
        *_paragraph(
            "Accuracy in intervals of local homophily minus that of the MLP on the same nodes, in "
            "points; in the rows of the MLP its accuracy in %. The last column is the lowest "
            f"accuracy over the intervals, in %. Intervals with fewer than {LEAST_NODES} test "
            "nodes over all seeds are left out."
        ),
        "",
        _row(["graph", "network", *limits, "worst interval"]),
        _row(["---", "---", *["---:"] * (INTERVALS + 1)]),
    ]
    for cell in cells:
        for name, network in cell.networks.items():
            if name == plan.MLP:
                entries = [_accuracy(network.interval_accuracy(i)) for i in range(INTERVALS)]
            else:
                entries = _relative(network, cell.networks[plan.MLP])
            worst = _accuracy(network.worst_interval)
            lines.append(_row([_title(cell), _marked(name), *entries, worst]))
    return lines


def _accuracy(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _relative(network: NetworkOutcome, reference: NetworkOutcome) -> list[str]:
    found = [network.relative_to(reference, interval) for interval in range(INTERVALS)]
    return ["–" if value is None else f"{100 * value['mean']:+.1f}" for value in found]


def _title(cell: CellOutcome) -> str:
    return f"{cell.graph.title}, {cell.protocol}" if cell.is_shift else cell.graph.title


def _marked(network: str) -> str:
    """Return the name of a network, with a note if it is an exploratory gate."""
    known = (plan.NONE, plan.MLP, ORACLE, *plan.CONFIRMATORY)
    return network if network in known else f"{network} (exploratory)"


def _gain(comparison: GateComparison) -> str:
    text = _interval({"mean": comparison.difference, "ci95": comparison.ci95}, signed=True)
    significant = comparison.p_holm is not None and comparison.p_holm < SIGNIFICANT
    return f"**{text}**" if significant else text


def _interval(summary: dict[str, Any], signed: bool = False) -> str:
    mean = f"{100 * summary['mean']:+.2f}" if signed else f"{100 * summary['mean']:.2f}"
    return mean if summary["ci95"] is None else f"{mean} ± {100 * summary['ci95']:.2f}"


def _p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 100)


def _row(entries: Iterable[str]) -> str:
    return f"| {' | '.join(entries)} |"


def values_csv(cells: Sequence[CellOutcome]) -> str:
    """Return one row per graph, protocol and network."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        tests = {comparison.gate: comparison for comparison in cell.comparisons}
        for name, network in cell.networks.items():
            row = {
                "group": cell.graph.group,
                "graph": cell.graph.name,
                "protocol": cell.protocol,
                "metric": cell.graph.metric,
                "network": name,
                "mean": network.summary["mean"],
                "ci95": network.summary["ci95"],
                "runs": len(network.scores),
                "dead": network.dead,
                "worst_interval": network.worst_interval,
            }
            if name in tests:
                row |= _test_values(tests[name])
            writer.writerow({key: _rounded(value) for key, value in row.items()})
    return text.getvalue()


def _test_values(test: GateComparison) -> dict[str, Any]:
    return {
        "difference": test.difference,
        "difference_ci95": test.ci95,
        "p": test.p,
        "p_holm": test.p_holm,
        "p_signed_rank": test.p_signed_rank,
        "p_overlapping": test.p_overlapping,
        "same_settings": test.same_settings["mean"],
        "oracle_share": test.oracle_share,
    }


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _content(outcomes: Outcomes, command: str) -> dict[str, Any]:
    """Return all values, for the JSON file."""
    cells = []
    for cell in outcomes.cells:
        networks = {name: asdict(network) for name, network in cell.networks.items()}
        cells.append(
            {
                "graph": cell.graph.name,
                "group": cell.graph.group,
                "protocol": cell.protocol,
                "metric": cell.graph.metric,
                "networks": networks,
                "comparisons": [asdict(comparison) for comparison in cell.comparisons],
            }
        )
    return {
        "command": command,
        "machines": outcomes.machines,
        "verdict": asdict(outcomes.verdict),
        "missing": outcomes.missing,
        "cells": cells,
    }


def draw_gains(cells: Sequence[CellOutcome]) -> Any:
    """Draw the gain of every gate with its 95 % confidence interval, one line per graph."""
    gates = [network for network in _in_any(cells) if network in plan.gates()]
    with canvas() as plt:
        height = 0.9 + 0.26 * len(cells)
        figure, axes = panels(plt, len(gates), width=3.4, height=height, sharex=True, sharey=True)
        for ax, gate in zip(axes[0], gates):
            for place, cell in enumerate(cells):
                for test in cell.comparisons:
                    if test.gate == gate:
                        _draw_gain(ax, place, test)
            ax.axvline(0, color=MUTED, lw=0.8)
            ax.set(title=f"gate: {_marked(gate)}", xlabel="gain in points")
        axes[0, 0].set_yticks(range(len(cells)), [_title(cell) for cell in cells])
        axes[0, 0].invert_yaxis()
        headline(figure, _gain_finding(cells))
    return figure


def _gain_finding(cells: Sequence[CellOutcome]) -> str:
    """Return how many corrected tests show a gain or a loss."""
    tests = [test for cell in cells for test in cell.comparisons if test.p_holm is not None]
    significant = [test for test in tests if (test.p_holm or 0.0) < SIGNIFICANT]
    gains = sum(test.difference > 0 for test in significant)
    losses = len(significant) - gains
    return (
        f"{gains} of {len(tests)} tests on real graphs show a significant gain of a gate, "
        f"and {losses} a loss (Holm's correction)"
    )


def _draw_gain(ax: Any, place: int, test: GateComparison) -> None:
    half = 100 * (test.ci95 or 0.0)
    colour = COLOURS[0]
    ax.errorbar(
        100 * test.difference, place, xerr=half, fmt="o", markersize=3.5, capsize=2, color=colour
    )


def draw_intervals(cells: Sequence[CellOutcome]) -> Any:
    """Draw the accuracy of every network minus that of the MLP, by local homophily."""
    columns = 4
    rows = -(-len(cells) // columns)
    with canvas() as plt:
        figure, axes = panels(plt, min(columns, len(cells)), rows)
        for ax, cell in zip(axes.flat, cells):
            _draw_intervals_of(ax, cell)
        for ax in axes.flat[len(cells) :]:
            ax.set_axis_off()
        for ax in axes[:, 0]:
            ax.set_ylabel("points over the MLP")
        found: dict[str, Any] = {}
        for ax in axes.flat:
            handles, labels = ax.get_legend_handles_labels()
            found |= dict(zip(labels, handles))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=len(found))
        headline(figure, _interval_finding(cells))
    return figure


def _interval_finding(cells: Sequence[CellOutcome]) -> str:
    """Return on how many graphs every network is below the MLP in some interval of homophily."""
    below = 0
    for cell in cells:
        reference = cell.networks[plan.MLP]
        networks = [cell.networks[name] for name in plan.networks() if name in cell.networks]
        for interval in range(INTERVALS):
            found = [
                network.relative_to(reference, interval)
                for network in networks
                if network is not reference
            ]
            gains = [summary["mean"] + (summary["ci95"] or 0) for summary in found if summary]
            if gains and max(gains) < 0:
                below += 1
                break
    return (
        f"On {below} of {len(cells)} graphs, every network is worse than an MLP on the nodes of "
        "some interval of local homophily"
    )


def _draw_intervals_of(ax: Any, cell: CellOutcome) -> None:
    reference = cell.networks[plan.MLP]
    order = [network for network in (*plan.networks(), ORACLE) if network != plan.MLP]
    for number, name in enumerate(order):
        if name not in cell.networks:
            continue
        network = cell.networks[name]
        # Side by side, so that the error bars do not hide each other.
        shift = 0.02 * (number - (len(order) - 1) / 2)
        colour = COLOURS[number % len(COLOURS)]
        centres = []
        means = []
        half = []
        for interval in range(INTERVALS):
            found = network.relative_to(reference, interval)
            if found is not None:
                centres.append((interval + 0.5) / INTERVALS + shift)
                means.append(100 * found["mean"])
                half.append(100 * (found["ci95"] or 0.0))
        ax.errorbar(
            centres, means, half, fmt="o", markersize=3, lw=1, capsize=2, color=colour, label=name
        )
    ax.axhline(0, color=MUTED, lw=0.8)
    ax.set(title=_title(cell), xlabel="local homophily", xlim=(0, 1))


def _check_output(path: Path, command: str, overwrite: bool) -> None:
    """Refuse to replace a file of another program, or a study of other graphs."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    ours = _COMMAND in text
    same = f"`{command}`" in text or json.dumps(command) in text
    refuse_replacement(path, _WHAT, ours=ours, same=same, overwrite=overwrite)
