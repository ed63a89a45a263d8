"""The table of datasets, and the card of one graph: its statistics and what is wrong with it."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from nfgnn.analysis.homophily import homophily, label_informativeness
from nfgnn.data import BUILT_IN, REGISTRY, canonical_name, diagnose, is_available

_SIZES = {
    "karate": (34, 78, 34, 4),
    "mixed": (3000, None, 32, 4),
}  # edges of the generated graph follow its seed


def dataset_rows(root: Path | None = None) -> list[dict[str, Any]]:
    """One row per registered dataset, in the order of the table of names."""
    rows = [
        {
            "name": entry.name,
            "nodes": entry.nodes,
            "edges": entry.edges,
            "features": entry.features,
            "classes": entry.classes,
            "metric": entry.metric,
            "here": is_available(entry, root),
            "download_mb": entry.megabytes,
            "source": entry.source,
            "licence": entry.licence,
            "defect": entry.defect or None,
        }
        for entry in REGISTRY.values()
    ]
    built_in = {
        "metric": "accuracy",
        "here": True,
        "download_mb": 0,
        "source": "built in",
        "licence": "MIT",
        "defect": None,
    }
    return rows + [
        {
            "name": name,
            **dict(zip(("nodes", "edges", "features", "classes"), _SIZES[name])),
            **built_in,
        }
        for name in BUILT_IN
    ]


def describe_dataset(data: Data, root: Path | None = None) -> dict[str, Any]:
    """Statistics, homophily and findings of a loaded graph; what is undefined is ``None``."""
    entry = REGISTRY.get(canonical_name(data.name) or "")
    measures = homophily(data.edge_index, data.y)
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    return {
        "name": data.name,
        "nodes": data.num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "features": data.num_features,
        "classes": data.num_classes,
        "class_names": data.class_names,
        "class_sizes": torch.bincount(data.y[data.y >= 0], minlength=data.num_classes).tolist(),
        "isolated": int((degree == 0).sum()),
        "unlabelled": int((data.y < 0).sum()),
        "homophily": {key: _defined(value) for key, value in measures.items()},
        "label_informativeness": _defined(label_informativeness(data.edge_index, data.y)),
        "metric": data.metric,
        "source": entry.source if entry else None,
        "licence": entry.licence if entry else None,
        "findings": [asdict(finding) for finding in diagnose(data, root)],
        "notes": data.notes,
    }


def print_datasets(rows: list[dict[str, Any]]) -> None:
    caption = "* something is wrong with it: nfgnn datasets NAME"
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False, caption=caption)
    for column in ("name", "nodes", "edges", "features", "classes", "metric", "download"):
        table.add_column(
            column, justify="left" if column in ("name", "metric") else "right", no_wrap=True
        )
    for row in rows:
        sizes = (
            f"{row[key]:,}" if row[key] else "–"
            for key in ("nodes", "edges", "features", "classes")
        )
        name = row["name"] + (" *" if row["defect"] else "")
        metric = "ROC-AUC" if row["metric"] == "roc_auc" else row["metric"]
        table.add_row(
            name, *sizes, metric, "is here" if row["here"] else f"~{_size(row['download_mb'])}"
        )
    Console().print(table)


def print_dataset(card: dict[str, Any]) -> None:
    console = Console()
    table = Table(title=card["name"], show_header=False)
    for key in ("nodes", "edges", "features", "classes", "isolated", "unlabelled"):
        table.add_row(key, f"{card[key]:,}")
    for key, value in card["homophily"].items():
        table.add_row(f"{key.replace('_', '-')} homophily", _number(value))
    table.add_row("label informativeness", _number(card["label_informativeness"]))
    table.add_row("metric", card["metric"])
    for key in ("source", "licence"):
        if card[key]:
            table.add_row(key, card[key])
    console.print(table)
    for note in card["notes"]:
        console.print(f"note: {note}", highlight=False, markup=False)
    for finding in card["findings"]:
        console.print(f"found: {finding['text']}", highlight=False, markup=False)


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _size(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes:g} MB"
