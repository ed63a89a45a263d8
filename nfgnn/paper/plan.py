"""What one call of ``nfgnn reproduce`` is to make: an item of the registry, narrowed by the user."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfgnn.data import canonical_name
from nfgnn.errors import UserError
from nfgnn.paper.items import ITEMS, Column, Item, Row
from nfgnn.training import RunConfig

FIRST_REPORT_SEED = 1000
"""Reported runs have split seeds from here on. Settings are chosen on smaller ones."""
SEARCH_SEEDS = range(10)
"""Those that a search takes unless it is told to take more."""

Cell = tuple[str, Column]
"""Label of the row, and column."""


@dataclass(frozen=True)
class Plan:
    """An item with its rows, columns and seeds."""

    name: str
    item: Item
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    seeds: range
    file: str
    """Name of the files it is written to, without ending. A narrowed table does not overwrite the whole one."""
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
    """Narrow an item.

    Args:
        name: an item of :data:`~nfgnn.paper.items.ITEMS`.
        datasets: its columns; a graph that is not among them joins under the protocol of the item's first column.
        models: its rows, by model or label.
        runs: number of seeds, from ``seed`` on; the item's own by default.
        preset: ``"best"`` or ``"paper"`` for rows that do not say which they are.
        settings: laid over every configuration.
    """
    if name not in ITEMS:
        raise UserError(
            f"there is nothing called '{name}' to reproduce: choose from {', '.join(ITEMS)}, figures, all"
        )
    if seed < FIRST_REPORT_SEED:
        raise UserError(
            f"seed {seed} is one that settings are chosen on: report on seeds from 1000 on"
        )
    item = ITEMS[name]
    columns, rows = _chosen_columns(item, datasets), _chosen_rows(name, item, models)
    configs = {}
    for row in rows:
        for column in columns:
            kind = row.preset or preset or item.preset
            values = {**row.settings, **(settings or {})}
            configs[row.label, column] = RunConfig.resolve(
                row.model, values, column.dataset, column.protocol, kind
            )
    seeds = range(seed, seed + (runs or item.runs))
    parts = [
        name,
        *(datasets or ()),
        *(models or ()),
        f"preset-{preset}" if preset else "",
        f"{runs}runs" if runs else "",
    ]
    parts.append(f"seed{seed}" if seed != FIRST_REPORT_SEED else "")
    return Plan(
        name, item, rows, columns, seeds, "-".join(_plain(part) for part in parts if part), configs
    )


def _chosen_columns(item: Item, datasets: Sequence[str] | None) -> tuple[Column, ...]:
    if datasets is None:
        return item.columns
    own: dict[str, list[Column]] = {}
    for column in item.columns:
        own.setdefault(column.dataset, []).append(column)
    for given in datasets:
        if canonical_name(given) is None and not Path(given).exists():
            raise UserError(
                f"{given!r} is neither a dataset nor a file or folder; `nfgnn datasets` lists the names"
            )
    names = dict.fromkeys(canonical_name(given) or given for given in datasets)
    chosen = (own.get(name, [Column(name, item.columns[0].protocol)]) for name in names)
    return tuple(column for columns in chosen for column in columns)


def _chosen_rows(name: str, item: Item, models: Sequence[str] | None) -> tuple[Row, ...]:
    rows = item.rows()
    if models is None:
        return tuple(rows)
    for model in models:
        if not any(_is(row, model) for row in rows):
            known = ", ".join(dict.fromkeys(row.model for row in rows))
            raise UserError(f"'{name}' has no model '{model}': choose from {known}")
    return tuple(row for row in rows if any(_is(row, model) for model in models))


def _is(row: Row, model: str) -> bool:
    return model.lower() in (row.model.lower(), row.label.lower())


def _plain(text: str) -> str:
    """Fit for a file name; of a path only its last part."""
    return re.sub(r"[^a-z0-9]+", "-", (Path(text).name or text).lower()).strip("-")
