"""``nfgnn tune``: search hyper-parameters."""

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nfgnn.cli import names, options, values
from nfgnn.cli._print import print_json
from nfgnn.errors import UserError, writing

if TYPE_CHECKING:
    from nfgnn.progress import Progress
    from nfgnn.training import Executor

app = typer.Typer()
_PRESETS = options.Choice("preset", ("best", "paper"))
_SHIPPED = "Built-in presets"


@app.command(
    epilog="Example:  nfgnn tune texas --root DATA --trials 40 --out texas.toml   ·   "
    "nfgnn train texas --root DATA --preset texas.toml   ·   nfgnn tune --presets --missing   ·   "
    "nfgnn tune my-graph/ --trials 100 --engine ray --ray-address head:6379 --out mine.toml",
)
def tune(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="Registered data set, or path to your own graph (file or folder). Not with "
            "--presets.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
        ),
    ] = None,
    protocol: options.Protocol = None,
    seeds: Annotated[
        str,
        typer.Option(
            help="Seeds of the splits used for selection, below 1000, such as 0-9 or 0,1,2.",
            rich_help_panel=options.DATA,
        ),
    ] = "0-9",
    root: options.Root = None,
    column: options.Column = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Model to tune; `nfgnn models` lists them.",
            callback=options.MODELS.validate,
            autocompletion=options.MODELS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "NFGNN",
    trials: Annotated[
        int,
        typer.Option(min=1, help="Number of configurations to try.", rich_help_panel=options.MODEL),
    ] = 50,
    preset: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            help="Search space: best covers all variants of the model, paper is the grid of the "
            "paper.",
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
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    storage: Annotated[
        Path,
        typer.Option(
            help="Database of finished runs, used to resume an interrupted search.",
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
            help="Search the built-in presets instead of a preset for one graph.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="List the missing searches and exit.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    from_records: Annotated[
        bool,
        typer.Option(
            "--from-records",
            help="Use only the runs in --results, without training.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="Write the best settings to the built-in preset files.",
            rich_help_panel=_SHIPPED,
        ),
    ] = False,
    rounds: Annotated[
        str | None,
        typer.Option(
            help="Restrict the search to these rounds, separated by commas.",
            rich_help_panel=_SHIPPED,
        ),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option(
            help="Restrict the search to these graphs and protocols, such as texas:full,cora:semi.",
            rich_help_panel=_SHIPPED,
        ),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            help="Restrict the search to these model families, separated by commas.",
            rich_help_panel=_SHIPPED,
        ),
    ] = None,
    results: Annotated[
        Path,
        typer.Option(help="Output file with all configurations tried.", rich_help_panel=_SHIPPED),
    ] = Path("results/search.parquet"),
) -> None:
    """Search hyper-parameters by validation score and write a preset file."""
    if presets:
        if dataset is not None:
            raise UserError(
                "--presets searches all graphs: omit DATASET, or select graphs with --cells"
            )
        report = _search_presets(
            results,
            missing,
            from_records,
            write,
            rounds,
            cells,
            families,
            root,
            device,
            engine,
            ray_address,
        )
        if json_:
            print_json({"results": str(results), "report": report})
        else:
            print("\n".join(report) or "nothing is missing")
        return
    if dataset is None:
        raise UserError(
            "DATASET is missing: pass a graph, or use --presets to search all built-in presets"
        )
    settings = values.settings(set_, metric=metric, select=select, class_weight=class_weight)
    columns = values.columns(column)
    chosen_seeds = values.numbers(seeds)
    if not chosen_seeds or max(chosen_seeds) >= names.FIRST_REPORT_SEED:
        raise UserError(
            f"--seeds {seeds} is not valid: use seeds from 0 to 999; larger seeds are reserved "
            "for reported runs"
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
        _executor(engine, ray_address, progress) as executor,
    ):
        outcome = run_search(search, records, progress, executor)
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
    engine: str,
    ray_address: str | None,
) -> list[str]:
    """Search the built-in presets, and return which searches were run or are missing."""
    from nfgnn.cli._print import resumable
    from nfgnn.paper import SEARCH, run_preset_search
    from nfgnn.progress import Progress
    from nfgnn.training import resolve_device

    resolve_device(device)
    with (
        resumable("run the same command again to continue"),
        writing(results),
        Progress("presets") as progress,
        _executor(engine, ray_address, progress) as executor,
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
            executor=executor,
        )


def _executor(engine: str, ray_address: str | None, progress: "Progress") -> "Executor":
    """Return where the runs of a search execute."""
    from nfgnn.training import InProcess, RayTasks

    if engine == "ray":
        return RayTasks(ray_address, progress.say)
    return InProcess()
