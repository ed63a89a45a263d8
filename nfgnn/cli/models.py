"""``nfgnn models``: list the models, or describe one."""

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from nfgnn import plugins
from nfgnn.cli import options
from nfgnn.cli._print import console, message, print_json
from nfgnn.cli.docstring_text import arguments, summary
from nfgnn.errors import UserError

if TYPE_CHECKING:
    from nfgnn.nn.models import ModelEntry

app = typer.Typer()
_SIZE_OF_CORA = {"in_channels": 1433, "out_channels": 7, "num_nodes": 2708}


@app.command(
    epilog="Example:  nfgnn models   ·   nfgnn models NFGNN   ·   "
    "nfgnn models MyGNN --import my_models",
)
def models(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Model to describe, with its hyper-parameters.",
            callback=options.MODELS.validate,
            autocompletion=options.MODELS.complete,
        ),
    ] = None,
    import_: options.Import = None,
    json_: options.Json = False,
) -> None:
    """List all models, including those of installed plugins, or describe one model."""
    from nfgnn.nn.models import MODELS, find_model

    if name is not None:
        description = _describe(find_model(name))
        if json_:
            print_json(description)
        else:
            _print_model(description)
        return
    _load_plugins()
    by_year = sorted(MODELS.values(), key=lambda entry: (entry.year, entry.name))
    rows = [_row(entry) for entry in by_year]
    if json_:
        print_json({"models": rows})
    else:
        _print_models(rows)


def _load_plugins() -> None:
    """Register the models of other packages; report those that cannot be imported."""
    from nfgnn.nn.models import find_model

    for name in plugins.plugin_names(plugins.MODELS):
        try:
            find_model(name)
        except UserError as error:
            message(str(error))


def _row(entry: "ModelEntry") -> dict[str, Any]:
    """Return the row of a model; parameters are counted with default settings on Cora."""
    accepted = inspect.signature(entry.model).parameters
    size = {key: value for key, value in _SIZE_OF_CORA.items() if key in accepted}
    model = entry.model(**size)
    return {
        "name": entry.name,
        "title": entry.title,
        "year": entry.year,
        "complexity": entry.complexity,
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "mini_batch": entry.mini_batch,
        "many_seeds": entry.model.batchable,
    }


def _describe(entry: "ModelEntry") -> dict[str, Any]:
    """Return the row of a model, its description and its hyper-parameters.

    The sizes that follow from the graph, such as ``num_nodes``, are not hyper-parameters.
    """
    from nfgnn import nn
    from nfgnn.nn.models import MODELS

    settings = {}
    for parameter in inspect.signature(entry.model).parameters.values():
        has_default = parameter.default is not inspect.Parameter.empty
        if has_default and parameter.name not in _SIZE_OF_CORA:
            settings[parameter.name] = parameter.default
    classes = vars(nn) | {other.name: other.model for other in MODELS.values()}
    meanings = arguments(entry.model, classes)
    return {
        **_row(entry),
        "description": summary(entry.model),
        "settings": settings,
        "meanings": {key: meanings.get(key, "") for key in settings},
    }


def _print_models(rows: list[dict[str, Any]]) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("year", no_wrap=True)
    table.add_column("paper")
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("cost per pass")
    table.add_column("batches", no_wrap=True)
    table.add_column("seeds", no_wrap=True)
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
    output = console()
    output.print(table)
    output.print(
        "Parameters: number of weights with default settings on Cora. Cost: for n nodes, m edges, "
        "f features, h hidden channels, c classes, degree K, rank d and L layers. Batches: "
        "supports mini-batches of nodes. Seeds: trains several seeds in one batched computation.",
        highlight=False,
    )


def _print_model(description: dict[str, Any]) -> None:
    output = console()
    title = f"{description['title']} ({description['year']})"
    output.print(Text(description["name"], "bold"), f" {title}\n", highlight=False)
    output.print(Text(description["description"]))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("meaning")
    for key, value in description["settings"].items():
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        table.add_row(key, shown, description["meanings"][key])
    output.print(table, highlight=False)
    output.print(
        "To change a setting: nfgnn train DATASET "
        f"--model {description['name']} --set SETTING=VALUE",
        highlight=False,
    )
