"""``nfgnn tune``: search hyper-parameters."""

import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from nfgnn.cli import names, options, values
from nfgnn.cli._print import print_json
from nfgnn.errors import UserError, writing

app = typer.Typer()
_PRESETS = options.Choice("preset", ("best", "paper"))
_SHIPPED = "Presets of the package"


@app.command(
    epilog="Example:  nfgnn tune texas --root DATA --trials 40 --out texas.toml   ·   "
    "nfgnn train texas --root DATA --preset texas.toml   ·   nfgnn tune --presets --missing",
)
def tune(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="Registered name, or folder or file of your own graph. Not with --presets.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
        ),
    ] = None,
    protocol: options.Protocol = None,
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
            help="Search space: best has all forms of the model, paper the grid of the paper.",
            callback=_PRESETS.validate,
            autocompletion=_PRESETS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "best",
    metric: options.Metric = None,
    select: options.Select = None,
    class_weight: options.ClassWeight = None,
    set_: options.Settings = None,
    import_: options.Import = None,
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
            help="Preset file to write, for `nfgnn train --preset FILE.toml`. Default: standard "
            "output.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
    presets: Annotated[
        bool,
        typer.Option(
            "--presets",
            help="Search the presets that the package ships, instead of those of one graph.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="List the searches that are missing and exit.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    from_records: Annotated[
        bool,
        typer.Option(
            "--from-records",
            help="Train nothing; read the runs in --results.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write the best settings to the preset files.", rich_help_panel=_SHIPPED
        ),
    ] = False,
    rounds: Annotated[
        str | None,
        typer.Option(help="Only these rounds, separated by commas.", rich_help_panel=_SHIPPED),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(
            help="Only these graphs and protocols, such as texas:full,cora:semi.",
            rich_help_panel=_SHIPPED,
        ),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(help="Only these families of models.", rich_help_panel=_SHIPPED),
    ] = None,
    results: Annotated[
        Path,
        typer.Option(help="File of all configurations tried.", rich_help_panel=_SHIPPED),
    ] = Path("results/search.parquet"),
) -> None:
    """Select hyper-parameters by the metric on validation nodes, and write a preset file."""
    if presets:
        if dataset is not None:
            raise UserError("--presets searches all graphs: leave DATASET out, or choose --cells")
        report = _search_presets(
            results, missing, from_records, write, rounds, cells, families, root, device
        )
        if json_:
            print_json({"results": str(results), "report": report})
        else:
            print("\n".join(report) or "nothing is missing")
        return
    if dataset is None:
        raise UserError("DATASET is missing: name a graph, or search all with --presets")
    settings = values.settings(set_, metric=metric, select=select, class_weight=class_weight)
    columns = values.columns(column)
    chosen_seeds = values.numbers(seeds)
    if not chosen_seeds or max(chosen_seeds) >= names.FIRST_REPORT_SEED:
        raise UserError(
            f"--seeds {seeds} is not valid: settings are selected on seeds from 0 to 999; "
            "use those, because larger ones are for reported runs"
        )
    options.check_output_folder(storage.parent)
    if out is not None:
        options.check_output_folder(out.parent)

    from nfgnn.cli._print import resumable
    from nfgnn.data import default_protocol, load_dataset
    from nfgnn.paper import Search, check_preset_output, preset_table, run_search, write_preset
    from nfgnn.progress import Progress
    from nfgnn.training import Records, RunConfig, resolve_device

    start = time.perf_counter()
    resolve_device(device)
    RunConfig.resolve(model, settings, None, protocol, preset)
    data = load_dataset(dataset, root=root, **columns)
    protocol = protocol or default_protocol(data)
    command = values.command(
        "tune",
        dataset,
        model=model,
        protocol=protocol,
        trials=trials,
        seeds=seeds,
        preset=preset,
        metric=metric,
        select=select,
        class_weight=class_weight,
    )
    command += "".join(f" --set {item}" for item in set_ or [])
    command += "".join(f" --import {module}" for module in import_ or [])
    if out is not None:
        check_preset_output(out, command, overwrite)
    search = Search(data, model, protocol, preset, trials, chosen_seeds, settings, device)
    label = f"tune {model} on {data.get('name')}"
    with (
        resumable("run the same command again to continue"),
        writing(storage),
        Records(storage) as records,
        Progress(label) as progress,
    ):
        outcome = run_search(search, records, progress)
    table = preset_table(search, outcome, command)
    train = _train_command(dataset, protocol, root, column, import_, out)
    if out is not None:
        with writing(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            write_preset(out, table, overwrite)
    if json_:
        result = {
            "dataset": data.get("name"),
            "model": model,
            "protocol": protocol,
            "preset": preset,
            "seeds": chosen_seeds,
            "trials": len(outcome.trials) - 1,
            "settings": search.config(outcome.best.settings).settings(),
            "metric": outcome.metric.name,
            f"val_{outcome.metric.name}": outcome.best.val_metric,
            f"preset_val_{outcome.metric.name}": outcome.trials[0].val_metric,
            "val_accuracy": outcome.best.val_accuracy,
            "val_loss": outcome.best.val_loss,
            "preset_val_accuracy": outcome.trials[0].val_accuracy,
            "seconds": time.perf_counter() - start,
            "table": table,
            "out": None if out is None else str(out),
            "train": train,
        }
        print_json(result)
    elif out is None:
        print(table, end="")
    else:
        print(f"written: {out}\ntrain with it: {train}")


def _train_command(
    dataset: str,
    protocol: str,
    root: Path | None,
    columns: list[str] | None,
    modules: list[str] | None,
    out: Path | None,
) -> str:
    """Return the command that trains with the preset file."""
    words = ["nfgnn", "train", dataset, "--protocol", protocol, "--preset"]
    words.append("FILE.toml" if out is None else str(out))
    if root is not None:
        words += ["--root", str(root)]
    for column in columns or []:
        words += ["--column", column]
    for module in modules or []:
        words += ["--import", module]
    return shlex.join(words)


def _search_presets(
    results: Path,
    missing: bool,
    from_records: bool,
    write: bool,
    rounds: str | None,
    cells: str | None,
    families: str | None,
    root: Path | None,
    device: str,
) -> list[str]:
    """Search the presets that the package ships, and return what was done or is missing."""
    from nfgnn.cli._print import resumable
    from nfgnn.paper import SEARCH, run_preset_search
    from nfgnn.progress import Progress
    from nfgnn.training import resolve_device

    resolve_device(device)
    with (
        resumable("run the same command again to continue"),
        writing(results),
        Progress("presets") as progress,
    ):
        return run_preset_search(
            results,
            missing=missing,
            from_records=from_records,
            write=write,
            rounds=values.words(rounds) or SEARCH,
            cells=values.words(cells),
            families=values.words(families),
            root=root,
            device=device,
            progress=progress,
        )
