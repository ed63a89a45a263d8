"""``nfgnn datasets``: list the data sets, or describe a graph."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from nfgnn.cli import options, values
from nfgnn.cli._print import console, print_json
from nfgnn.errors import printable, writing

if TYPE_CHECKING:
    from torch_geometric.data import Data

app = typer.Typer()

# Nodes, edges, features and classes. The edges of the generated graph depend on its seed.
_BUILT_IN_SIZES = {"karate": (34, 78, 34, 4), "mixed": (3000, None, 32, 4)}
_SIZES = ("nodes", "edges", "features", "classes")


@app.command(
    epilog="Example:  nfgnn datasets cornell --root DATA   ·   nfgnn datasets --template my-graph",
)
def datasets(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Data set, or path to your own graph, to describe.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
        ),
    ] = None,
    root: options.Root = None,
    column: options.Column = None,
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write an example graph in CSV format to this folder and exit.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    json_: options.Json = False,
) -> None:
    """List the data sets, or print the statistics and known issues of one graph."""
    columns = values.columns(column)
    if template is not None:
        _write_template(template, json_)
        return
    if name is None:
        rows = _rows(root)
        if json_:
            print_json({"datasets": rows})
        else:
            _print_table(rows)
        return
    from nfgnn.data import load_dataset

    data = load_dataset(name, root=root, need_labels=False, **columns)
    card = _describe(data, root)
    if json_:
        print_json(card)
    else:
        _print_card(card)


def _write_template(folder: Path, json_: bool) -> None:
    from nfgnn.data import write_template

    with writing(folder):
        written = [str(path) for path in sorted(write_template(folder).iterdir())]
    if json_:
        print_json({"written": written})
    else:
        print(printable(f"written: {' '.join(written)}"))


def _rows(root: Path | None) -> list[dict[str, Any]]:
    """Return a row for every registered data set, in the order of the registry."""
    from nfgnn.data import BUILT_IN, REGISTRY, is_available

    rows = []
    for entry in REGISTRY.values():
        rows.append(
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
        )
    for name in BUILT_IN:
        rows.append(
            {
                "name": name,
                **dict(zip(_SIZES, _BUILT_IN_SIZES[name])),
                "metric": "accuracy",
                "here": True,
                "download_mb": 0,
                "source": "built in",
                "licence": "MIT",
                "defect": None,
            }
        )
    return rows


def _describe(data: "Data", root: Path | None) -> dict[str, Any]:
    """Return statistics, homophily and findings of a graph; undefined values are ``None``."""
    import torch

    from nfgnn.analysis import homophily, label_informativeness
    from nfgnn.data import REGISTRY, diagnose
    from nfgnn.training import resolve_metric

    entry = REGISTRY.get(data.get("registered_name") or "")
    measures = homophily(data.edge_index, data.y)
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    labelled = data.y[data.y >= 0]
    return {
        "name": data.name,
        "nodes": data.num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "features": data.num_features,
        "classes": data.num_classes,
        "class_names": data.class_names,
        "class_sizes": torch.bincount(labelled, minlength=data.num_classes).tolist(),
        "isolated": int((degree == 0).sum()),
        "unlabelled": int((data.y < 0).sum()),
        "homophily": {key: _defined(value) for key, value in measures.items()},
        "label_informativeness": _defined(label_informativeness(data.edge_index, data.y)),
        "metric": resolve_metric("auto", data).name,
        "source": entry.source if entry else None,
        "licence": entry.licence if entry else None,
        "findings": [asdict(finding) for finding in diagnose(data, root)],
        "notes": data.notes,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from nfgnn.training import find_metric

    table = Table(
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
        show_edge=False,
        caption="* has a known data issue; see nfgnn datasets NAME",
    )
    for column in ("name", *_SIZES, "metric", "download"):
        justify: Any = "left" if column in ("name", "metric") else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    for row in rows:
        name = row["name"] + (" *" if row["defect"] else "")
        sizes = [f"{row[key]:,}" if row[key] else "–" for key in _SIZES]
        metric = find_metric(row["metric"]).title
        download = "available" if row["here"] else f"~{_megabytes(row['download_mb'])}"
        table.add_row(name, *sizes, metric, download)
    console().print(table)


def _print_card(card: dict[str, Any]) -> None:
    from nfgnn.training import find_metric

    output = console()
    table = Table(title=card["name"], show_header=False)
    for key in _SIZES:
        table.add_row(key, f"{card[key]:,}")
    for key in ("isolated", "unlabelled"):
        table.add_row(f"{key} nodes", f"{card[key]:,}")
    for key, value in card["homophily"].items():
        table.add_row(f"{key.replace('_', '-')} homophily", _number(value))
    table.add_row("label informativeness", _number(card["label_informativeness"]))
    table.add_row("metric", find_metric(card["metric"]).title)
    for key in ("source", "licence"):
        if card[key]:
            table.add_row(key, card[key])
    output.print(table)
    for note in card["notes"]:
        output.print(f"note: {note}", highlight=False)
    if not card["classes"]:
        output.print("found: no labels; --column label=NAME names their column", highlight=False)
    for finding in card["findings"]:
        # The table and the notes have these counts already.
        if finding["kind"] in ("isolated", "unlabelled"):
            continue
        output.print(f"found: {finding['text']}", highlight=False)


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _megabytes(size: float) -> str:
    return f"{size / 1000:.1f} GB" if size >= 1000 else f"{size:g} MB"
