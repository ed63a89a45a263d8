"""Make figures and the data beside them; what is there and made of the same inputs is left alone."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from nfgnn.errors import UserError
from nfgnn.explain import FORMATS, save
from nfgnn.files import atomic_write
from nfgnn.paper.figures import figures, find_figure
from nfgnn.paper.lab import FIRST_SEED, Lab
from nfgnn.training import fingerprint

Say = Callable[[str], None]


def write_figures(
    names: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    root: Path | None = None,
    out: Path = Path("results"),
    runs: int | None = None,
    say: Say | None = None,
    **settings: Any,
) -> list[Path]:
    """Write every figure to ``out/figures`` as PNG, PDF and SVG with its rows as JSON, and return the JSON files.

    Args:
        names: figures to make; all where none is named.
        datasets: graphs to show; each figure's own where none is named. Those that would have to be downloaded are
            left out.
        root: folder of raw datasets.
        out: folder to write to.
        runs: trainings per model and dataset, on seeds from 1000 on. (default: 5)
        say: told what is being done, by default lines on standard error.
        settings: hyper-parameters for all trainings, such as ``epochs``.
    """
    say = say or partial(Console(stderr=True).print, highlight=False, markup=False)
    lab = Lab(root, runs or 5, say, **settings)
    written = []
    for name in names or figures():
        module = find_figure(name)
        wanted = datasets or module.DATASETS
        chosen = lab.here(wanted)
        if chosen:
            written.append(_write_one(module, chosen, lab, out / "figures", settings, say))
        else:
            say(
                f"figure {name}: none of {', '.join(wanted)} is here; name their folder with --root"
            )
    if not written:
        raise UserError(
            "no figure could be made: the raw files of the graphs are not here; name their folder (--root)"
        )
    return written


def _write_one(
    module: Any, chosen: list[str], lab: Lab, out: Path, settings: dict[str, Any], say: Say
) -> Path:
    key = module.__name__.rpartition(".")[2]
    path = out / f"{key}.json"
    inputs = {
        "figure": key,
        "graphs": {name: fingerprint(lab.graph(name)) for name in chosen},
        "runs": lab.runs,
        "first_seed": FIRST_SEED,
        "settings": settings,
    }
    there = _read(path)
    rows = there["rows"] if there.get("inputs") == inputs else None
    if rows is not None and all((out / f"{key}.{ending}").is_file() for ending in FORMATS):
        say(f"figure {key}: is there")
        return path
    if rows is None:
        say(f"figure {key}: {', '.join(chosen)}")
        rows = module.rows(lab, chosen)
        out.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps({"inputs": inputs, "rows": rows}, allow_nan=False) + "\n")
    save(module.draw(rows), out, key)
    return path


def _read(path: Path) -> dict[str, Any]:
    """Inputs and rows of a figure made before; nothing where there is none, or none that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and {"inputs", "rows"} <= content.keys() else {}
