"""What one call of ``nfgnn reproduce`` is to make: a table, narrowed by the user's options."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfgnn.data import canonical_name
from nfgnn.errors import UserError
from nfgnn.nn import find_model
from nfgnn.paper.table_registry import TABLES, Column, Row, TableSpec
from nfgnn.training import RunConfig
from nfgnn.training.presets import is_preset_file, preset_model

FIRST_REPORT_SEED = 1000
"""Reported runs use split seeds from here on. Settings are chosen on smaller ones."""
SEARCH_SEEDS = range(10)
"""Split seeds on which settings are chosen by default."""

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


def make_plan(
    name: str,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    runs: int | None = None,
    seed: int = FIRST_REPORT_SEED,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """Narrow a table.

    Args:
        name: a table of :data:`~nfgnn.paper.table_registry.TABLES`.
        datasets: its columns. A graph that the table does not have is added under the protocol of
            its first column.
        models: its rows, by model or label. A model that the table does not have is added.
        runs: number of seeds, from ``seed`` on; that of the table by default.
        seed: the first seed.
        preset: ``"best"`` or ``"paper"`` for rows without a kind of their own; or a preset file,
            which adds a row with its configuration.
        settings: override settings of every configuration.
    """
    if name not in TABLES:
        choices = ", ".join(TABLES)
        raise UserError(f"there is no table '{name}': choose from {choices}, figures, all")
    if seed < FIRST_REPORT_SEED:
        raise UserError(
            f"settings are chosen on seeds below 1000, such as {seed}: report on seeds from 1000 on"
        )
    spec = TABLES[name]
    columns = _select_columns(spec, datasets)
    rows = _select_rows(spec, models)
    kind_of_table = spec.preset
    if preset is not None and is_preset_file(preset):
        rows += (_preset_row(preset),)
    elif preset is not None:
        kind_of_table = preset
    configs = {}
    for row in rows:
        kind = row.preset or kind_of_table
        values = {"select": spec.select, **row.settings, **(settings or {})}
        for column in columns:
            configs[row.label, column] = RunConfig.resolve(
                row.model, values, column.dataset, column.protocol, kind
            )
    parts = [name, *(datasets or ()), *(models or ())]
    if preset:
        parts.append(f"preset-{preset}")
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
    )


def _select_columns(spec: TableSpec, datasets: Sequence[str] | None) -> tuple[Column, ...]:
    if datasets is None:
        return spec.columns
    selected: list[Column] = []
    for given in datasets:
        name = canonical_name(given)
        if name is None and not Path(given).exists():
            raise UserError(
                f"{given!r} is neither a dataset nor a file or folder; `nfgnn datasets` lists the "
                "names"
            )
        name = name or given
        own = [column for column in spec.columns if column.dataset == name]
        selected += own or [Column(name, spec.columns[0].protocol)]
    return tuple(dict.fromkeys(selected))


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
