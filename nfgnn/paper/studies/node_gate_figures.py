"""The figures of the study of node gates."""

from collections.abc import Sequence
from typing import Any

from nfgnn.explain import COLOURS, MUTED, canvas, headline, panels
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE
from nfgnn.paper.studies.node_gate_outcomes import SIGNIFICANT, CellOutcome, GateComparison
from nfgnn.paper.studies.node_gate_runs import INTERVALS
from nfgnn.paper.studies.node_gate_tables import cell_title, marked, shown_networks


def draw_gains(cells: Sequence[CellOutcome]) -> Any:
    """Draw the gain of every gate with its 95 % confidence interval, one line per graph."""
    gates = [network for network in shown_networks(cells) if network in plan.gates()]
    with canvas() as plt:
        height = 0.9 + 0.26 * len(cells)
        figure, axes = panels(plt, len(gates), width=3.4, height=height, sharex=True, sharey=True)
        for ax, gate in zip(axes[0], gates):
            for place, cell in enumerate(cells):
                for test in cell.comparisons:
                    if test.gate == gate:
                        _draw_gain(ax, place, test)
            ax.axvline(0, color=MUTED, lw=0.8)
            ax.set(title=f"gate: {marked(gate)}", xlabel="gain in points")
        axes[0, 0].set_yticks(range(len(cells)), [cell_title(cell) for cell in cells])
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
    ax.set(title=cell_title(cell), xlabel="local homophily", xlim=(0, 1))
