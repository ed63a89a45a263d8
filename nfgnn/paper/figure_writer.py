"""Write figures and their data. A figure that was made from the same inputs is left alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.explain import save
from nfgnn.files import atomic_write
from nfgnn.paper.figures import FIGURES, find_figure
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.progress import Progress

FORMATS = ("png", "pdf")
"""One format for reading and one for print."""


def write_figures(
    names: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    root: Path | None = None,
    out: Path = Path("results"),
    runs: int | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> list[Path]:
    """Write figures to ``out/figures`` as PNG and PDF, with their data as JSON.

    Args:
        names: figures to make; all by default.
        datasets: graphs to show; those of each figure by default. Graphs that would have to be
            downloaded are left out.
        root: folder of raw datasets.
        out: folder to write to. Scores that ``records.parquet`` there has are not computed again.
        runs: number of runs per model and dataset, with seeds from 1000 on. (default: 10)
        progress: the display; lines on standard error by default.
        overwrite: replace figures that were made from other inputs.
        settings: hyper-parameters of all runs, such as ``epochs``.

    Returns:
        The JSON files.
    """
    progress = progress or Progress("figures")
    models = TrainedModels(root, runs or 10, progress, out / "records.sqlite", **settings)
    written = []
    for name in names or FIGURES:
        wanted = datasets or find_figure(name).DATASETS
        chosen = models.available(wanted)
        if chosen:
            path = out / "figures" / f"{name.replace('-', '_')}.json"
            _write_figure(path, chosen, models, settings, progress, overwrite)
            written.append(path)
        else:
            progress.say(
                f"figure {name}: none of {', '.join(wanted)} is available; pass their folder "
                "with --root"
            )
    if not written:
        raise UserError(
            "no figure was drawn, because the raw files of the graphs are not available: pass "
            "their folder with --root"
        )
    return written


def _write_figure(
    path: Path,
    datasets: Sequence[str],
    models: TrainedModels,
    settings: dict[str, Any],
    progress: Progress,
    overwrite: bool,
) -> None:
    name = path.stem
    figure = find_figure(name)
    inputs = {
        "figure": name,
        "graphs": {dataset: models.source(dataset).fingerprint for dataset in datasets},
        "runs": models.runs,
        "first_seed": FIRST_REPORT_SEED,
        "settings": settings,
    }
    existing = _read(path)
    same_inputs = existing.get("inputs") == inputs
    if same_inputs and all(path.with_suffix(f".{ending}").is_file() for ending in FORMATS):
        progress.say(f"figure {name}: up to date")
        return
    files = [path, *(path.with_suffix(f".{ending}") for ending in FORMATS)]
    if any(file.exists() for file in files):
        ours = bool(existing)
        refuse_replacement(path, "a figure", ours=ours, same=same_inputs, overwrite=overwrite)
    if same_inputs:
        rows = existing["rows"]
    else:
        progress.say(f"figure {name}: {', '.join(datasets)}")
        rows = figure.rows(models, datasets)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"inputs": inputs, "rows": rows}, allow_nan=False)
        atomic_write(path, text + "\n")
    save(figure.draw(rows), path.parent, name, FORMATS)


def _read(path: Path) -> dict[str, Any]:
    """Return the inputs and rows of an existing figure, or nothing if they cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if isinstance(content, dict) and {"inputs", "rows"} <= content.keys():
        return content
    return {}
