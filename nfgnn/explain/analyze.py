"""Section 3 of the paper for any graph: one object with all numbers, and the files made of it."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn.analysis import (
    feature_frequency,
    homophily,
    homophily_of_counts,
    homophily_spread,
    label_informativeness,
    nested_class_counts,
    spectrum,
    structure,
)
from nfgnn.analysis.propositions import preference_threshold, same_class_probability
from nfgnn.errors import UserError
from nfgnn.explain.analyze_page import page
from nfgnn.explain.analyze_text import words
from nfgnn.explain.figure_style import save
from nfgnn.files import atomic_write
from nfgnn.paper.figures import degrees, find_figure, homophily_histograms
from nfgnn.paper.figures import spectrum as spectrum_figure

Told = Callable[[str, int, int], None]
"""Told which part of the work is at which step of how many."""


def analyze_graph(data: Data, told: Told = lambda part, step, steps: None) -> dict[str, Any]:
    """All measures of a checked graph as plain data; what is undefined is ``None``.

    Without two classes among the labels, what needs labels is left out.
    """
    if data.get("edge_index") is None:
        raise UserError(
            f"{data.get('name')} holds rows of terms, not links: analyze the graph that it was made from"
        )
    n, labelled = int(data.num_nodes), data.y[data.y >= 0]
    card: dict[str, Any] = {
        "name": data.get("name") or "graph",
        "nodes": n,
        "edges": data.edge_index.size(1) // 2,
        "features": data.num_features,
        "classes": int(data.num_classes),
        "class_names": data.class_names,
        "class_sizes": torch.bincount(labelled, minlength=int(data.num_classes)).tolist(),
        "unlabelled": n - len(labelled),
        "notes": list(data.notes),
        **structure(data.edge_index, n),
        "figures": {"degrees": {"graphs": [degrees.row(data.name, data.edge_index, n)]}},
    }
    if len(labelled.unique()) > 1:
        card |= _labels(data, card["figures"], told)
    weight = data.get("edge_weight")
    card["feature_frequency"] = feature_frequency(data.x, data.edge_index, weight)
    found = spectrum(
        data.edge_index, n, weight, on_step=lambda step, steps: told("spectrum", step, steps)
    )
    card["figures"]["spectrum"] = {"graphs": [spectrum_figure.row(data.name, found)]}
    card = _defined(card)
    return {**card, "words": words(card)}


def _labels(data: Data, figures: dict[str, Any], told: Told) -> dict[str, Any]:
    y, edge_index = data.y, data.edge_index
    within = nested_class_counts(
        edge_index, y, 2, lambda row, rows: told("neighbourhoods", row, rows)
    )
    figures["homophily_histograms"] = {
        "graphs": [homophily_histograms.histograms(data.name, within, y)]
    }
    measures = homophily(edge_index, y)
    classes = int(data.num_classes)
    second = homophily_of_counts(within[1] - within[0], y)
    expected = (
        math.nan
        if math.isnan(measures["edge"])
        else same_class_probability(measures["edge"], classes)
    )
    return {
        "homophily": measures,
        "label_informativeness": label_informativeness(edge_index, y),
        "spread": homophily_spread(within[0], y, edge_index),
        "two_hops": {
            "same_class": float(second.nanmean()),
            "expected": expected,
            "preference_threshold": preference_threshold(classes),
        },
    }


def write_analysis(card: dict[str, Any], folder: Path) -> list[Path]:
    """Write ``index.html``, ``analysis.json`` and the figures as PNG, PDF and SVG; every file whole or not at all."""
    drawn = {name: find_figure(name).draw(rows) for name, rows in card["figures"].items()}
    text = json.dumps(card, indent=1, allow_nan=False) + "\n"
    try:
        make_folder(folder)
        files = [path for name, figure in drawn.items() for path in save(figure, folder, name)]
        atomic_write(folder / "analysis.json", text)
        atomic_write(folder / "index.html", page(card, drawn))
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written: {error.strerror}; name another place with --out"
        ) from None
    return [folder / "index.html", folder / "analysis.json", *files]


def make_folder(folder: Path) -> None:
    """The folder to write to, made before the long work, so that a mistake in its name costs nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be made: {error.strerror}; name another place with --out"
        ) from None


def _defined(value: Any) -> Any:
    """The same with ``None`` for every NaN: JSON has no such number."""
    if isinstance(value, dict):
        return {key: _defined(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_defined(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value
