"""The rows as one HTML file: arrays packed as base64, put into the template beside its style and script.

Whatever stems from the user's files travels as JSON in an element that is never executed, with every ``<`` written as
an escape; the script shows it as text, never as markup. The page's policy allows its own script by its hash, and no
other source of anything.
"""

import base64
import hashlib
import html
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.errors import UserError
from nfgnn.explain.explorer.rows import (
    PARTS,
    ExplorerRows,
    FilterColumns,
    homophily_bin,
    homophily_bins,
)
from nfgnn.explain.explorer.sample import Sample, take_sample
from nfgnn.files import atomic_write

MOST_NODES = 50_000
_SCRIPTS = ("decode.js", "colours.js", "map.js", "charts.js", "ego.js", "panels.js", "explorer.js")
_NOTHING = 65535


def write_page(rows: ExplorerRows, path: Path, most_nodes: int = MOST_NODES) -> Sample:
    """Write the explorer; of a graph of more than ``most_nodes`` nodes it carries a random sample."""
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist: make it, or name another file")
    sample = take_sample(rows.edge_index, len(rows.label), most_nodes)
    atomic_write(path, render(page_content(rows, sample)))
    return sample


def page_content(rows: ExplorerRows, sample: Sample) -> dict[str, Any]:
    """What the page's script reads. Means, bins and accuracies are those of all nodes, whatever the sample."""
    carried, shown = sample.nodes, sample.nodes[: sample.shown]
    return {
        "dataset": rows.dataset,
        "protocol": rows.protocol,
        "seed": rows.seed,
        "numNodes": len(rows.label),
        "numEdges": rows.edge_index.shape[1] // 2,
        "numWithoutHomophily": int(np.isnan(rows.homophily).sum()),
        "shown": sample.shown,
        "classNames": rows.class_names,
        "parts": PARTS,
        "ids": None if rows.ids is None else [rows.ids[i] for i in carried],
        "node": pack_codes(carried),
        "label": pack_codes(rows.label[carried] + 1),
        "part": pack_codes(rows.part[shown]),
        "degree": pack_codes(rows.degree[shown]),
        "homophily": pack_numbers(rows.homophily[shown]),
        "bin": pack_codes(homophily_bin(rows.homophily[shown]) + 1),
        "entropy": pack_numbers(rows.entropy[shown]),
        "starts": pack_codes(sample.starts),
        "neighbours": pack_codes(sample.neighbours),
        "layouts": [
            {"name": layout.name, "note": layout.note, "equalAxes": layout.equal_axes}
            | {"place": pack_numbers(layout.place[shown])}
            for layout in rows.layouts
        ],
        "runs": [
            {
                "name": run.name,
                "accuracy": _or_none(rows.accuracy(i)),
                "predicted": pack_codes(run.predicted[carried]),
                "confidence": pack_numbers(run.confidence[shown]),
                "filters": None if run.filters is None else _filters(run.filters, shown),
            }
            for i, run in enumerate(rows.runs)
        ],
        "bins": homophily_bins(rows),
    }


def render(content: dict[str, Any]) -> str:
    """The HTML file that shows this content."""
    script = "(() => {\n'use strict';\n" + "".join(_template(name) for name in _SCRIPTS) + "})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "TITLE": html.escape(
            f"{content['dataset']} · {' and '.join(run['name'] for run in content['runs'])}"
        ),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
        "STYLE": _template("style.css"),
        "DATA": json.dumps(content, allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": script,
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda mark: parts[mark[1]], _template("page.html"))


def pack_codes(values: np.ndarray) -> dict[str, Any]:
    """Whole numbers from 0 on, in as few bytes as the largest needs."""
    largest = int(values.max()) if len(values) else 0
    kind = "u1" if largest < 1 << 8 else "u2" if largest < 1 << 16 else "u4"
    return {"type": kind, "data": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode()}


def pack_numbers(values: np.ndarray) -> dict[str, Any]:
    """Numbers, NaN allowed, as 16 bits per value on the range of their column: exact to its 131,068th part."""
    table = values.reshape(len(values), -1).astype(np.float64)
    finite = np.isfinite(table)
    low = np.where(finite, table, np.inf).min(0, initial=np.inf)
    high = np.where(finite, table, -np.inf).max(0, initial=-np.inf)
    low = np.where(np.isfinite(low), low, 0.0)
    step = np.where(np.isfinite(high), np.maximum(high - low, 0.0), 0.0) / (_NOTHING - 1)
    codes = np.rint((np.where(finite, table, low) - low) / np.where(step > 0, step, 1.0))
    raw = np.where(finite, codes, _NOTHING).astype("<u2").tobytes()
    return {
        "type": "u2",
        "data": base64.b64encode(raw).decode(),
        "low": low.tolist(),
        "step": step.tolist(),
    }


def _filters(filters: FilterColumns, shown: np.ndarray) -> dict[str, Any]:
    psi = filters.psi[:1] if filters.one_for_all else filters.psi[shown]
    return {
        "basis": filters.basis,
        "oneForAll": filters.one_for_all,
        "frequencies": filters.frequencies.tolist(),
        "terms": filters.terms.tolist(),
        "mean": filters.mean.tolist(),
        "classMeans": [
            None if np.isnan(row).any() else row.tolist() for row in filters.class_means
        ],
        "psi": pack_numbers(psi),
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _template(name: str) -> str:
    return (resources.files(__package__) / "template" / name).read_text(encoding="utf-8")
