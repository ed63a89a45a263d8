"""``nfgnn tune``: search hyper-parameters."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from nfgnn.cli import options, values

app = typer.Typer()
_PRESETS = options.Choice("preset", ("best", "paper"))


@app.command(epilog="Example:  nfgnn tune texas --root DATA --trials 40 --out texas.toml")
def tune(
    dataset: options.Dataset,
    protocol: options.Protocol = "full",
    seeds: Annotated[
        str,
        typer.Option(
            help="Split seeds that settings are selected on, below 1000: 0-9, or 0,1,2.",
            rich_help_panel=options.DATA,
        ),
    ] = "0-9",
    root: options.Root = None,
    column: options.Column = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Name of the model, see `nfgnn models`.",
            callback=options.MODELS.validate,
            autocompletion=options.MODELS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "NFGNN",
    trials: Annotated[
        int,
        typer.Option(min=1, help="Number of settings to try.", rich_help_panel=options.MODEL),
    ] = 50,
    preset: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            help="best searches all forms of the model, paper the grid of the paper's form.",
            callback=_PRESETS.validate,
            autocompletion=_PRESETS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "best",
    set_: options.Settings = None,
    device: options.Device = "auto",
    storage: Annotated[
        Path,
        typer.Option(
            help="Database of finished runs, from which an interrupted search resumes.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = Path("runs/tune.sqlite"),
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the table of settings. Default: standard output.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    json_: options.Json = False,
) -> None:
    """Select hyper-parameters by validation accuracy, and write them as a table of a preset."""
    settings = values.settings(set_)
    columns = values.columns(column)
    chosen_seeds = values.numbers(seeds)
    options.check_output_folder(storage.parent)
    if out is not None:
        options.check_output_folder(out.parent)

    from nfgnn.cli._print import resumable
    from nfgnn.data import load_dataset
    from nfgnn.files import atomic_write
    from nfgnn.paper.search import Search, preset_table, run_search
    from nfgnn.progress import Progress
    from nfgnn.training import RunConfig
    from nfgnn.training.device import resolve_device
    from nfgnn.training.records.database import Records

    start = time.perf_counter()
    resolve_device(device)
    RunConfig.resolve(model, settings, None, protocol, preset)
    data = load_dataset(dataset, root=root, **columns)
    search = Search(data, model, protocol, preset, trials, chosen_seeds, settings, device)
    label = f"tune {model} on {data.get('name')}"
    with (
        resumable("run the same command again to continue"),
        Records(storage) as records,
        Progress(label) as progress,
    ):
        outcome = run_search(search, records, progress)
    command = values.command(
        "tune", dataset, model=model, protocol=protocol, trials=trials, seeds=seeds, preset=preset
    )
    command += "".join(f" --set {item}" for item in set_ or [])
    table = preset_table(search, outcome, command)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out, table)
    if json_:
        result = {
            "dataset": data.get("name"),
            "model": model,
            "protocol": protocol,
            "preset": preset,
            "seeds": chosen_seeds,
            "trials": len(outcome.trials) - 1,
            "settings": {**outcome.best.settings, **settings},
            "val_accuracy": outcome.best.val_accuracy,
            "val_loss": outcome.best.val_loss,
            "preset_val_accuracy": outcome.trials[0].val_accuracy,
            "seconds": time.perf_counter() - start,
            "table": table,
            "out": None if out is None else str(out),
        }
        print(json.dumps(result))
    elif out is None:
        print(table, end="")
