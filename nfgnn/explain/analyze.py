"""``nfgnn analyze``: the measures of Section 3 of the paper for any graph, and a report."""

import json
import math
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn.analysis import (
    cross_validate_baselines,
    feature_frequency,
    homophily,
    homophily_by_chance,
    homophily_of_counts,
    homophily_spread,
    label_informativeness,
    nested_class_counts,
    preference_threshold,
    same_class_probability,
    spectrum,
    structure,
)
from nfgnn.auto import has_computed_features
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.explain import figures
from nfgnn.explain.analyze_page import analysis_page
from nfgnn.explain.analyze_text import describe_analysis
from nfgnn.explain.figure_style import FORMATS, save
from nfgnn.files import atomic_folder, refuse_foreign_files
from nfgnn.training import METRICS, resolve_metric

OnProgress = Callable[[str, int, int], None]
"""Called with the name of a stage, the number of steps done and their total."""
_WHAT = "an analysis"
_PAGE = "index.html"
_NUMBERS = "analysis.json"
_FIGURES = {f"{name}.{ending}" for name in figures.DRAW for ending in FORMATS}
_MARKER = {"kind": "nfgnn analysis", "format": 1}
"""Fields of ``analysis.json``. Older files are known by the findings in ``words``."""


def _ignore_progress(stage: str, step: int, steps: int) -> None:
    pass


def analyze_graph(
    data: Data,
    on_progress: OnProgress = _ignore_progress,
    models: bool = True,
    source: Sequence[str] = (),
) -> dict[str, Any]:
    """Return all measures of a validated graph as plain data; undefined values are ``None``.

    Measures that need labels are left out unless the labels have at least two classes.

    Args:
        data: from :func:`~nfgnn.load_dataset`.
        on_progress: called after every step of the long stages.
        models: also cross-validate a model on the features and one on the edges.
        source: command-line arguments that select the graph, for the commands to run next; by
            default its name.
    """
    if data.get("edge_index") is None:
        raise UserError(
            f"{data.get('name')} is a store of precomputed terms without edges: "
            "analyze the graph that it was computed from"
        )
    num_nodes = int(data.num_nodes)
    labels = data.y[data.y >= 0]
    degrees = figures.degrees.row(data.name, data.edge_index, num_nodes)
    analysis: dict[str, Any] = {
        "name": data.get("name") or "graph",
        "nodes": num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "features": data.num_features,
        "classes": int(data.num_classes),
        "class_names": data.class_names,
        "class_sizes": torch.bincount(labels, minlength=int(data.num_classes)).tolist(),
        "unlabelled": num_nodes - len(labels),
        "notes": list(data.notes),
        **structure(data.edge_index, num_nodes),
        "figures": {"degrees": {"graphs": [degrees]}},
    }
    if len(labels.unique()) > 1:
        measures, histograms = _label_measures(data, on_progress)
        analysis |= measures
        analysis["figures"]["homophily_histograms"] = {"graphs": [histograms]}
        if models:
            analysis["baselines"] = _baselines(data, on_progress)
    weight = data.get("edge_weight")
    analysis["feature_frequency"] = feature_frequency(data.x, data.edge_index, weight)
    eigenvalues = spectrum(
        data.edge_index,
        num_nodes,
        weight,
        on_step=lambda step, steps: on_progress("spectrum", step, steps),
    )
    # A figure takes a list of graphs; the figures of the paper show several.
    row = figures.spectrum.row(data.name, eigenvalues)
    analysis["figures"]["spectrum"] = {"graphs": [row]}
    analysis = _nan_to_none(analysis)
    words = describe_analysis(analysis)
    commands = _commands(source or [analysis["name"]], words["room"])
    return {**analysis, "words": words, "commands": commands}


def _baselines(data: Data, on_progress: OnProgress) -> dict[str, Any] | None:
    """Return the cross-validated scores of features and of edges by the metric of the graph."""
    classes = int(data.num_classes)
    metric = resolve_metric("auto", data)
    if metric.needs_every_class and classes > 2:
        # A fold may lack one of many classes.
        metric = METRICS["accuracy"]
    baselines = cross_validate_baselines(
        None if has_computed_features(data) else data.x,
        data.edge_index,
        data.y,
        lambda probabilities, y: metric.compute(probabilities, y, classes),
        on_fold=lambda fold, folds: on_progress("models", fold, folds),
    )
    if baselines is None:
        return None
    return {"metric": metric.name, **asdict(baselines)}


def _commands(source: Sequence[str], room: str) -> list[dict[str, str]]:
    """Return the commands to run next, each with its purpose."""
    graph = shlex.join(source)
    if room == "unknown":
        purpose = "Then repeat the analysis:"
        return [{"purpose": purpose, "command": f"nfgnn analyze {graph} --overwrite"}]
    commands = [
        {
            "purpose": "Find the best model for this graph in five minutes:",
            "command": f"nfgnn auto {graph} --time 5m",
        }
    ]
    if room != "little":
        commands.append(
            {
                "purpose": "Compare one filter per node with a single filter for all nodes:",
                "command": f"nfgnn train {graph} --model NFGNN --runs 10\n"
                f"nfgnn train {graph} --model PolyGNN --runs 10",
            }
        )
    return commands


def _label_measures(data: Data, on_progress: OnProgress) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the measures that need labels, and the data of their histograms."""
    classes = int(data.num_classes)
    counts = nested_class_counts(
        data.edge_index,
        data.y,
        hops=2,
        on_rows=lambda row, rows: on_progress("neighbourhoods", row, rows),
    )
    measures = homophily(data.edge_index, data.y)
    expected = math.nan
    if not math.isnan(measures["edge"]):
        expected = same_class_probability(measures["edge"], classes)
    at_two_hops = homophily_of_counts(counts[1] - counts[0], data.y)
    return {
        "homophily": measures,
        "homophily_by_chance": homophily_by_chance(data.edge_index, data.y),
        "label_informativeness": label_informativeness(data.edge_index, data.y),
        "spread": homophily_spread(counts[0], data.y, data.edge_index),
        "two_hops": {
            "same_class": float(at_two_hops.nanmean()),
            "expected": expected,
            "preference_threshold": preference_threshold(classes),
        },
    }, figures.homophily_histograms.row(data.name, counts, data.y)


def write_analysis(analysis: dict[str, Any], folder: Path, overwrite: bool = False) -> list[Path]:
    """Write ``index.html``, ``analysis.json`` and all figures; the folder appears as a whole.

    Args:
        analysis: from :func:`analyze_graph`.
        folder: the folder to write.
        overwrite: replace an existing analysis with other content.
    """
    text = json.dumps({**_MARKER, **analysis}, indent=1, allow_nan=False) + "\n"
    names = [_PAGE, _NUMBERS]
    names += [f"{name}.{ending}" for name in analysis["figures"] for ending in FORMATS]
    found = check_analysis_output(folder)
    if found is not None:
        same = {**_MARKER, **found} == json.loads(text)
        refuse_replacement(folder, _WHAT, ours=True, same=same, overwrite=overwrite)
        if same and all((folder / name).is_file() for name in names):
            return [folder / name for name in names]
    drawn = {}
    for name, rows in analysis["figures"].items():
        drawn[name] = figures.DRAW[name](rows)
    try:
        with atomic_folder(folder) as partial:
            for name, figure in drawn.items():
                save(figure, partial, name)
            (partial / _PAGE).write_text(analysis_page(analysis, drawn), encoding="utf-8")
            (partial / _NUMBERS).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror}; choose another folder with --out"
        ) from None
    return [folder / name for name in names]


def check_analysis_output(folder: Path) -> dict[str, Any] | None:
    """Refuse a folder that holds anything but an analysis; call it before long work.

    Returns:
        The numbers of the analysis that is there, ``None`` if there is none.
    """
    names = {_PAGE, _NUMBERS, *_FIGURES}
    refuse_foreign_files(folder, names.__contains__, _WHAT)
    if not folder.exists() or not any(folder.iterdir()):
        return None
    try:
        content = json.loads((folder / _NUMBERS).read_text(encoding="utf-8"))
        ours = content.get("kind") == _MARKER["kind"] or "words" in content
    except (OSError, ValueError, AttributeError):
        ours = False
    refuse_replacement(folder, _WHAT, ours=ours, overwrite=True)
    numbers: dict[str, Any] = content
    return numbers


def _nan_to_none(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by ``None`` in nested containers."""
    if isinstance(value, dict):
        return {key: _nan_to_none(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_nan_to_none(entry) for entry in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
