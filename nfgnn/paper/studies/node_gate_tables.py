"""The tables of the study of node gates, as Markdown and as CSV."""

import csv
import io
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from nfgnn.paper.statistics import p_value_text
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
)
from nfgnn.paper.studies.node_gate_runs import INTERVALS

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
    lines += [
        f"- {graph.title}: only the report seeds {graph.report_seeds[0]} to "
        f"{graph.report_seeds[-1]} are planned"
        for graph in {cell.graph.name: cell.graph for cell in generated}.values()
        if graph.report_seeds != seeds
    ]
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
        lines[0] += (
            " The runs that decide it are complete. The last section lists other missing runs."
        )
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
    networks = shown_networks(cells)
    gates = [network for network in networks if network in plan.gates()]
    heads = [*networks, *(f"{marked(gate)} − none" for gate in gates)]
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
        lines.append(_row([cell_title(cell), *entries]))
    return lines


def shown_networks(cells: Sequence[CellOutcome]) -> list[str]:
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
            entries = [
                cell_title(cell),
                marked(test.gate),
                _gain(test),
                *map(p_value_text, values),
                same,
            ]
            lines.append(_row(entries))
    return lines


def _generated_table(cells: Sequence[CellOutcome]) -> list[str]:
    gates = [gate for gate in shown_networks(cells) if gate in plan.gates()]
    lines = [
        *_score_table(cells),
        "",
        *_paragraph(
            "The distance of the oracle to the network without a gate, in points, and the share of "
            "it that a gate recovers, where the interval of the distance is above 0."
        ),
        "",
        _row(["graph", "oracle − none", *map(marked, gates)]),
        _row(["---", *["---:"] * (1 + len(gates))]),
    ]
    for cell in cells:
        gap = cell.oracle_gap
        shares = {comparison.gate: comparison.oracle_share for comparison in cell.comparisons}
        entries = ["–" if gap is None else _interval(gap, signed=True)]
        entries += [_percent(shares.get(gate)) for gate in gates]
        lines.append(_row([cell_title(cell), *entries]))
    return lines


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{round(100 * share)} %"


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
            lines.append(_row([cell_title(cell), marked(name), *entries, worst]))
    return lines


def _accuracy(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _relative(network: NetworkOutcome, reference: NetworkOutcome) -> list[str]:
    found = [network.relative_to(reference, interval) for interval in range(INTERVALS)]
    return ["–" if value is None else f"{100 * value['mean']:+.1f}" for value in found]


def cell_title(cell: CellOutcome) -> str:
    """Return the graph, with its protocol and number of seeds where they are not the usual ones."""
    title = f"{cell.graph.title}, {cell.protocol}" if cell.is_shift else cell.graph.title
    seeds = len(cell.networks[plan.NONE].seeds)
    planned = len(cell.graph.report_seeds)
    if seeds < len(plan.REPORT_SEEDS):
        title += f" ({seeds} of {planned} seeds)" if seeds < planned else f" ({seeds} seeds)"
    return title


def marked(network: str) -> str:
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
