"""The node table as one HTML file: arrays packed as base64 in the template with style and scripts.

Everything from the user's files is stored as JSON in an element that is never executed, with every
``<`` escaped, and the scripts show it as text, never as markup. The content security policy of the
page allows its own script, by its hash, and no other source.
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
from nfgnn.existing_output import refuse_foreign_file, starts_with, write_output
from nfgnn.explain.explorer.node_table import (
    PARTS,
    FilterColumns,
    NodeTable,
    class_rows,
    homophily_bins,
)
from nfgnn.explain.explorer.sample import Sample, sample_nodes
from nfgnn.explain.explorer.surprise import (
    filter_summary,
    response_distance,
    surprising_nodes,
)

MAX_NODES = 50_000
_WHAT = "a page of the explorer"
# Older pages have no generator; the content security policy identifies them.
_is_page = starts_with(
    '<meta name="generator" content="nfgnn explorer',
    """; img-src data:; script-src 'sha256-""",
)
_SCRIPTS = (
    "decode.js",
    "colours.js",
    "map.js",
    "charts.js",
    "ego.js",
    "panels.js",
    "surprise.js",
    "explorer.js",
)
_NAN_CODE = 65535


def write_explorer(
    table: NodeTable, path: Path, max_nodes: int = MAX_NODES, overwrite: bool = False
) -> Sample:
    """Write the page; of a graph with more than ``max_nodes`` nodes it holds a sample.

    The sample consists of the surprising nodes and of others chosen at random.

    Args:
        table: what the page shows.
        path: the HTML file.
        max_nodes: maximum number of nodes on the page.
        overwrite: replace an existing page with other content.
    """
    if not path.parent.is_dir():
        raise UserError(
            f"the folder {path.parent} does not exist: create it or choose another file"
        )
    always = [found.nodes for found in surprising_nodes(table)]
    sample = sample_nodes(
        table.edge_index,
        len(table.label),
        max_nodes,
        always=np.concatenate(always) if always else None,
    )
    page = render(page_content(table, sample))
    write_output(path, page, _is_page, _WHAT, overwrite)
    return sample


def check_page_output(path: Path) -> None:
    """Refuse a file that exists and is no page of the explorer; call it before long work."""
    refuse_foreign_file(path, _is_page, _WHAT)


def page_content(table: NodeTable, sample: Sample) -> dict[str, Any]:
    """Return the data of the page. Means, bins and accuracies are those of all nodes."""
    nodes = sample.nodes
    shown = nodes[: sample.shown]
    summaries = [filter_summary(run) for run in table.runs]
    layouts = []
    for layout in table.layouts:
        layouts.append(
            {
                "name": layout.name,
                "note": layout.note,
                "equalAxes": layout.equal_axes,
                "place": pack_numbers(layout.place[shown]),
            }
        )
    runs = []
    for i, run in enumerate(table.runs):
        accuracy = table.accuracy(i)
        runs.append(
            {
                "name": run.name,
                "accuracy": None if math.isnan(accuracy) else accuracy,
                "predicted": pack_codes(run.predicted[nodes]),
                "confidence": pack_numbers(run.confidence[shown]),
                "filters": None if run.filters is None else _filter_content(run.filters, shown),
            }
        )
    return {
        "dataset": table.dataset,
        "protocol": table.protocol,
        "seed": table.seed,
        "numNodes": len(table.label),
        "numEdges": table.edge_index.shape[1] // 2,
        "numWithoutHomophily": int(np.isnan(table.homophily).sum()),
        "shown": sample.shown,
        "classNames": table.class_names,
        "parts": PARTS,
        "ids": None if table.ids is None else [table.ids[i] for i in nodes],
        "node": pack_codes(nodes),
        "label": pack_codes(table.label[nodes] + 1),
        "part": pack_codes(table.part[shown]),
        "degree": pack_codes(table.degree[shown]),
        "homophily": pack_numbers(table.homophily[shown]),
        "bin": pack_codes(table.homophily_bin()[shown] + 1),
        "entropy": pack_numbers(table.entropy[shown]),
        "starts": pack_codes(sample.starts),
        "neighbours": pack_codes(sample.neighbours),
        "layouts": layouts,
        "startLayout": table.start_layout,
        "filterSummary": " ".join(text for text in summaries if text),
        "surprising": _surprising_content(table, shown),
        "disagreements": _disagreements(table),
        "runs": runs,
        "bins": homophily_bins(table),
        "classes": class_rows(table),
    }


def render(content: dict[str, Any]) -> str:
    """Return the HTML file that shows this content."""
    scripts = "".join(_template(name) for name in _SCRIPTS)
    script = f"(() => {{\n'use strict';\n{scripts}}})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    names = " and ".join(run["name"] for run in content["runs"])
    parts = {
        "TITLE": html.escape(f"{content['dataset']} · {names}"),
        "POLICY": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'",
        "STYLE": _template("style.css"),
        "DATA": json.dumps(content, allow_nan=False).replace("<", "\\u003c"),
        "SCRIPT": script,
    }
    # One pass, so that marks like {{SCRIPT}} in the user's data are left alone.
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda mark: parts[mark[1]], _template("page.html"))


def pack_codes(values: np.ndarray) -> dict[str, Any]:
    """Pack non-negative integers into as few bytes as the largest one needs."""
    largest = int(values.max(initial=0))
    kind = "u4"
    if largest < 1 << 8:
        kind = "u1"
    elif largest < 1 << 16:
        kind = "u2"
    return {"type": kind, "data": _base64(values.astype(f"<{kind}"))}


def pack_numbers(values: np.ndarray) -> dict[str, Any]:
    """Pack numbers and NaN into 16 bits each, exact to 1/131,068 of the range of their column."""
    table = values.reshape(len(values), -1).astype(np.float64)
    finite = np.isfinite(table)
    low = np.where(finite, table, np.inf).min(0, initial=np.inf)
    high = np.where(finite, table, -np.inf).max(0, initial=-np.inf)
    # A column without finite values gets the range [0, 0].
    low = np.where(np.isfinite(low), low, 0.0)
    high = np.where(np.isfinite(high), high, low)
    step = np.maximum(high - low, 0.0) / (_NAN_CODE - 1)
    offset = np.where(finite, table, low) - low
    codes = np.rint(offset / np.where(step > 0, step, 1.0))
    codes = np.where(finite, codes, _NAN_CODE)
    return {
        "type": "u2",
        "data": _base64(codes.astype("<u2")),
        "low": low.tolist(),
        "step": step.tolist(),
    }


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _surprising_content(table: NodeTable, shown: np.ndarray) -> list[dict[str, Any]]:
    """Return the surprising nodes that are on the page, by their positions on it."""
    lists = []
    for found in surprising_nodes(table):
        inside = np.isin(found.nodes, shown)
        position = np.searchsorted(shown, found.nodes[inside])
        reasons = [reason for reason, kept in zip(found.reasons, inside) if kept]
        if len(position):
            lists.append({"title": found.title, "nodes": position.tolist(), "reasons": reasons})
    return lists


def _disagreements(table: NodeTable) -> int | None:
    """Return the number of nodes of the graph for which two runs predict different classes."""
    if len(table.runs) < 2:
        return None
    first, second = (run.predicted for run in table.runs)
    return int((first != second).sum())


def _filter_content(filters: FilterColumns, shown: np.ndarray) -> dict[str, Any]:
    # One row is enough if all nodes have the same filter.
    psi = filters.psi[:1] if filters.shared else filters.psi[shown]
    means = [None if np.isnan(mean).any() else mean.tolist() for mean in filters.class_means]
    return {
        "basis": filters.basis,
        "oneForAll": filters.shared,
        "frequencies": filters.frequencies.tolist(),
        "terms": filters.terms.tolist(),
        "mean": filters.mean.tolist(),
        "classMeans": means,
        "psi": pack_numbers(psi),
        "distance": pack_numbers(response_distance(filters, filters.mean)[shown]),
    }


def _template(name: str) -> str:
    return (resources.files(__package__) / "template" / name).read_text(encoding="utf-8")
