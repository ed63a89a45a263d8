"""Run the study of node gates and write its files."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.explain import save
from nfgnn.files import atomic_write
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_figures import draw_gains, draw_intervals
from nfgnn.paper.studies.node_gate_outcomes import Outcomes, find_outcomes
from nfgnn.paper.studies.node_gate_runs import run_node_gate_study
from nfgnn.paper.studies.node_gate_tables import markdown, values_csv
from nfgnn.progress import Progress
from nfgnn.training import export_records, has_records, open_records

NAME = "node_gates"
FORMATS = ("png", "pdf")
_COMMAND = "nfgnn reproduce node-gates"
_WHAT = "a study"
_NO_RUN = (
    "no report run of the study is recorded, so nothing is written: run the same command without "
    "--from-records"
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
    database = out / f"{NAME}.sqlite"
    if from_records and not has_records(database):
        raise UserError(_NO_RUN)
    with open_records(database) as records:
        if not from_records:
            names = [graph.name for graph in graphs]
            run_node_gate_study(names, device, records, None, root, progress)
        outcomes = find_outcomes(graphs, records, root)
        if not outcomes.cells:
            raise UserError(_NO_RUN)
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


def _check_output(path: Path, command: str, overwrite: bool) -> None:
    """Refuse to replace a file of another program, or a study of other graphs."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    ours = _COMMAND in text
    same = f"`{command}`" in text or json.dumps(command) in text
    refuse_replacement(path, _WHAT, ours=ours, same=same, overwrite=overwrite)
