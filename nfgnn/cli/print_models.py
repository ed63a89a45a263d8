"""The table of models, and the card of one."""

import inspect
import re
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from nfgnn.nn.models import MODELS, ModelEntry, find_model


def model_rows() -> list[dict[str, Any]]:
    """One row per model, by year."""
    return [
        _row(entry) for entry in sorted(MODELS.values(), key=lambda entry: (entry.year, entry.name))
    ]


def describe_model(name: str) -> dict[str, Any]:
    """A model's row, its description and its hyper-parameters with their defaults."""
    entry = find_model(name)
    parameters = inspect.signature(entry.model).parameters.values()
    hyper = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    return {
        **_row(entry),
        "description": _plain(inspect.getdoc(entry.model) or ""),
        "settings": hyper,
    }


def print_models(rows: list[dict[str, Any]]) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("model", "year", "paper", "parameters", "cost of a pass", "batches", "seeds"):
        wraps = column in ("paper", "cost of a pass")
        table.add_column(
            column, justify="right" if column == "parameters" else "left", no_wrap=not wraps
        )
    for row in rows:
        table.add_row(
            row["name"],
            str(row["year"]),
            row["title"],
            f"{row['parameters']:,}",
            row["complexity"],
            "yes" if row["mini_batch"] else "no",
            "yes" if row["many_seeds"] else "no",
        )
    console = Console()
    console.print(table)
    console.print(
        "Parameters: with the default settings on Cora. Cost: n nodes, m edges, f features, h hidden, c classes,\n"
        "K degree, d rank. Batches: can be trained on mini-batches of rows. Seeds: many runs may share a computation.",
        highlight=False,
    )


def print_model(description: dict[str, Any]) -> None:
    console = Console()
    console.print(
        f"[bold]{description['name']}[/bold]  {description['title']} ({description['year']})\n"
    )
    console.print(description["description"], markup=False, highlight=False)
    table = Table(title="Settings: nfgnn train … --set KEY=VALUE")
    table.add_column("key")
    table.add_column("default")
    for key, value in description["settings"].items():
        table.add_row(key, str(value))
    console.print(table)


def _plain(docstring: str) -> str:
    """A docstring without its markup, for a terminal."""
    text = re.sub(r"^\.\. math::\s*", "    ", docstring, flags=re.MULTILINE)
    text = re.sub(r"`([^`<]+?)\s*<[^>]*>`_", r"\1", text)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", text)
    return text.replace("``", "")


def _row(entry: ModelEntry) -> dict[str, Any]:
    cora = {"in_channels": 1433, "out_channels": 7, "num_nodes": 2708}
    accepted = inspect.signature(entry.model).parameters
    model = entry.model(**{key: value for key, value in cora.items() if key in accepted})
    return {
        "name": entry.name,
        "title": entry.title,
        "year": entry.year,
        "complexity": entry.complexity,
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "mini_batch": entry.mini_batch,
        "many_seeds": entry.model.batchable,
    }
