"""What one call of ``nfgnn reproduce`` is to make: a table, narrowed by the user's options."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nfgnn.data import (
    BUILT_IN,
    REGISTRY,
    graph_paths,
    registered_name,
    representative_protocol,
)
from nfgnn.errors import UserError
from nfgnn.files import expand_user
from nfgnn.nn import find_model
from nfgnn.object_store import is_remote
from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.table_registry import TABLES, Column, Row, TableSpec
from nfgnn.training import Metric, RunConfig, find_metric, resolve_config, resolve_metric
from nfgnn.training.metrics import AUTO
from nfgnn.training.presets import MODERN, is_preset_file, modern_tables, preset_model

FIRST_REPORT_SEED = 1000
"""Reported runs use split seeds from here on. Settings are chosen on smaller ones."""
SEARCH_SEEDS = range(10)
"""Split seeds on which settings are chosen by default."""

_PARTS = ("test", "observed", "unobserved")
"""Parts of a split whose scores tables show."""
Cell = tuple[str, Column]
"""Label of the row, and column."""


@dataclass(frozen=True)
class Plan:
    """A table with its rows, columns and seeds."""

    name: str
    spec: TableSpec
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    seeds: range
    file: str
    """Name of its files without extension. A narrowed table does not overwrite the whole one."""
    configs: Mapping[Cell, RunConfig]
    metrics: Mapping[Column, tuple[str, ...]]
    """What is shown of every column. Graphs that the table does not have are shown by their own
    metric."""
    graph_notes: tuple[str, ...] = ()
    """A line about every graph of the user, and about all graphs of the table ``own``."""


def make_plan(
    name: str,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    runs: int | None = None,
    seed: int = FIRST_REPORT_SEED,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> Plan:
    """Narrow a table, or add graphs and models to it.

    Args:
        name: a table of :data:`~nfgnn.paper.table_registry.TABLES`.
        datasets: its columns: registered names, paths of graphs, and folders, which stand for
            every graph in them. A graph that the table does not have is added under the protocol
            of its first column; in the table ``own`` under the split that the graph comes with,
            else ``stratified``.
        models: its rows, by model or label. A model that the table does not have is added.
        runs: number of seeds, from ``seed`` on; that of the table by default.
        seed: the first seed.
        preset: ``"best"`` or ``"paper"`` for rows without a kind of their own; or a preset file,
            which adds a row with its configuration.
        settings: override settings of every configuration.
        root: folder with raw datasets.
    """
    if name not in TABLES:
        choices = ", ".join(TABLES)
        raise UserError(f"unknown table '{name}': choose from {choices}, figures, all")
    if seed < FIRST_REPORT_SEED:
        raise UserError(
            f"seeds below 1000, such as {seed}, are reserved for tuning: use seeds from 1000 on"
        )
    spec = TABLES[name]
    columns = _select_columns(name, spec, datasets, root)
    rows = _select_rows(spec, models)
    kind_of_table = spec.preset
    if preset is not None and is_preset_file(preset):
        rows += (_preset_row(preset),)
    elif preset is not None:
        kind_of_table = preset
    configs = {}
    for row in rows:
        kind = row.preset or kind_of_table
        values = {**row.settings, **(settings or {})}
        if not is_preset_file(kind):
            values = {"select": spec.select, **values}
        for column in columns:
            if kind == MODERN and _lacks_search(row.model, column):
                continue
            # The graphs of the paper's tables need not be available for a table from records.
            if spec.columns and is_registered(column.dataset):
                config = RunConfig.resolve(row.model, values, column.dataset, column.protocol, kind)
                if config.training.select == AUTO:
                    config = config.for_graph(find_graph(column.dataset, root).data)
            else:
                data = find_graph(column.dataset, root).data
                config = resolve_config(data, row.model, values, column.protocol, kind)
            configs[row.label, column] = config
    metric = (settings or {}).get("metric", AUTO)
    parts = [name, *(models or ())]
    if spec.columns:
        parts[1:1] = datasets or ()
    if preset:
        parts.append(f"preset-{preset}")
    named = ("metric", "select", "class_weight")
    parts += [f"{key}-{settings[key]}" for key in named if settings and key in settings]
    if runs:
        parts.append(f"{runs}runs")
    if seed != FIRST_REPORT_SEED:
        parts.append(f"seed{seed}")
    return Plan(
        name=name,
        spec=spec,
        rows=rows,
        columns=columns,
        seeds=range(seed, seed + (runs or spec.runs)),
        file="-".join(_file_name(part) for part in parts),
        configs=configs,
        metrics={column: _shown_metrics(spec, column, root, metric) for column in columns},
        graph_notes=tuple(
            _graph_note(column, root)
            for column in columns
            if not spec.columns or not is_registered(column.dataset)
        ),
    )


def is_registered(dataset: str) -> bool:
    """Whether the graph of a column is a registered one, not a path."""
    return dataset in REGISTRY or dataset in BUILT_IN


def graph_name(dataset: str) -> str:
    """Return the registered name of a graph, or the name of its file."""
    return dataset if is_registered(dataset) else Path(dataset).stem


def _shown_metrics(
    spec: TableSpec, column: Column, root: Path | None, chosen: str
) -> tuple[str, ...]:
    """Return the metrics of the table, those of predictions by the metric of an added graph.

    A table without metrics shows every graph by its own.

    A metric that the user has ``chosen`` takes their place in every column.
    """
    if column in spec.columns and spec.metrics and chosen == AUTO:
        return spec.metrics
    metric = chosen if chosen != AUTO else _metric(column.dataset, root).name
    shown = []
    for name in spec.metrics or ("test_accuracy",):
        part = name.partition("_")[0]
        shown.append(f"{part}_{metric}" if part in _PARTS else name)
    return tuple(dict.fromkeys(shown))


def _metric(dataset: str, root: Path | None) -> Metric:
    if dataset in REGISTRY:
        return find_metric(REGISTRY[dataset].metric)
    return resolve_metric("auto", find_graph(dataset, root).data)


def _graph_note(column: Column, root: Path | None) -> str:
    """Return what a reader must know to judge the scores on a graph."""
    data = find_graph(column.dataset, root).data
    counts = torch.bincount(data.y[data.y >= 0], minlength=data.num_classes).tolist()
    largest = f"{100 * max(counts) / sum(counts):.1f} % accuracy"
    if _metric(column.dataset, root).name == "roc_auc":
        largest += " and 50 % ROC-AUC"
    text = (
        f"{graph_name(column.dataset)}: {data.num_nodes:,} nodes, "
        f"{data.edge_index.size(1) // 2:,} edges, {len(counts)} classes with {min(counts):,} to "
        f"{max(counts):,} labelled nodes; always predicting the largest class has {largest}; "
        f"protocol {column.protocol}"
    )
    train_mask = data.get("train_mask")
    if column.protocol == "public" and train_mask is not None and train_mask.dim() == 1:
        text += ", one split, so that a seed changes only the weights"
    return text


def _select_columns(
    name: str, spec: TableSpec, datasets: Sequence[str] | None, root: Path | None
) -> tuple[Column, ...]:
    if datasets is None:
        if not spec.columns:
            raise UserError(
                f"'{name}' is a table of your own graphs: pass them or their folder with --datasets"
            )
        return spec.columns
    selected: list[Column] = []
    for given in datasets:
        registered = registered_name(given)
        if registered is None and not is_remote(given) and not expand_user(given).exists():
            raise UserError(
                f"{given!r} is neither a dataset nor a file or folder; `nfgnn datasets` lists the "
                "names"
            )
        graphs = [registered or given]
        if registered is None and not is_remote(given):
            graphs = list(map(str, graph_paths(given)))
        for graph in graphs:
            own = [column for column in spec.columns if column.dataset == graph]
            selected += own or [Column(graph, _protocol(spec, graph, root))]
    return tuple(dict.fromkeys(selected))


def _protocol(spec: TableSpec, dataset: str, root: Path | None) -> str:
    """Return the protocol of a graph that the table does not have."""
    if spec.columns:
        return spec.columns[0].protocol
    return representative_protocol(find_graph(dataset, root).data)


def _select_rows(spec: TableSpec, models: Sequence[str] | None) -> tuple[Row, ...]:
    if models is None:
        return spec.rows
    selected = [row for row in spec.rows if any(_matches(row, model) for model in models)]
    for model in models:
        if not any(_matches(row, model) for row in spec.rows):
            # A model that the table does not have, such as one of another package, joins it.
            entry = find_model(model)
            selected.append(Row(entry.name, entry.name))
    return tuple(selected)


def _lacks_search(model: str, column: Column) -> bool:
    """Whether no search has chosen the settings of a cell.

    It stays empty: settings of another origin would not have had the same search effort. A graph of
    the user has no search, and is trained with the defaults of the models.
    """
    if not is_registered(column.dataset):
        return False
    by_dataset = modern_tables().get(model, {}).get(column.protocol, {})
    return column.dataset not in by_dataset


def _preset_row(path: str) -> Row:
    """Return the row of a preset file."""
    model = preset_model(path)
    if model is None:
        raise UserError(
            f'{path} does not name its model: add a line such as model = "NFGNN" at its top'
        )
    return Row(f"{model} ({Path(path).name})", model, path)


def _matches(row: Row, model: str) -> bool:
    return model.lower() in (row.model.lower(), row.label.lower())


def _file_name(text: str) -> str:
    """Return a text fit for a file name; of a path only the last part."""
    return re.sub(r"[^a-z0-9]+", "-", (Path(text).name or text).lower()).strip("-")
