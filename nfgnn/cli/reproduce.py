"""``nfgnn reproduce``: make the tables and figures of the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nfgnn.cli import names, options, values
from nfgnn.cli._print import message, print_json
from nfgnn.errors import UserError, writing

if TYPE_CHECKING:
    from nfgnn.paper.table_plan import Plan

app = typer.Typer()
_STUDIES = ("mixed-patterns", "node-gates", "portfolio")
_ITEMS = options.Choice("item", (*names.ITEMS, *_STUDIES, "figures", "all"))
_PRESETS = options.Choice("preset", ("best", "paper"))
_USED = {
    "mixed-patterns": {"runs", "seed"},
    "node-gates": {"datasets", "from_records"},
    "portfolio": {"from_records"},
    "figures": {"datasets", "runs"},
}
"""Options that items other than tables use, beside those of files and devices."""


def _validate_items(given: list[str]) -> list[str]:
    return [item for item in map(_ITEMS.validate, given) if item]


def _validate_preset(given: str | None) -> str | None:
    if given is not None and Path(given).suffix:
        return options.validate_preset(given)
    return _PRESETS.validate(given)


def _refuse_unused(items: Sequence[str], given: dict[str, bool]) -> None:
    """Refuse options that one of the items does not use.

    Args:
        items: what is made.
        given: whether each option of tables was given, by its name.
    """
    if given["from_records"] and "mixed-patterns" in items:
        raise UserError("mixed-patterns keeps no records: omit --from-records")
    for item in items:
        if item not in _USED:
            continue  # Tables use all of them.
        unused = [name for name, is_given in given.items() if is_given and name not in _USED[item]]
        if unused:
            listed = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
            alone = "omit it" if len(items) == 1 else f"make {item} with a command of its own"
            raise UserError(f"{item} has no option {listed}: {alone}")


def _nothing_measured(plan: "Plan", notes: list[str]) -> str:
    reason = notes[0] if notes else "no graph was found"
    if not plan.configs:
        reason = "no search has selected settings for these models on these graphs"
    return f"no run of '{plan.name}' could be trained, so no table was written: {reason}"


def _report_item(name: str, files: Sequence[Path], text: str | None) -> dict[str, Any]:
    """Print the table of an item and its files, and return its entry in the JSON.

    Args:
        name: of the item.
        files: the written files.
        text: the table; ``None`` prints none.
    """
    written = [str(file) for file in files]
    if text is not None:
        print(text)
    message(f"written: {' '.join(written)}")
    return {"item": name, "files": written}


@app.command(
    epilog="Example:  nfgnn reproduce full --datasets texas,cornell --runs 10 --root DATA   ·   "
    "nfgnn reproduce own --datasets my-graphs/ --runs 10",
)
def reproduce(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEM…",
            help=" ".join(_ITEMS.by_lower),
            callback=_validate_items,
            autocompletion=_ITEMS.complete,
        ),
    ],
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Restrict the table to these graphs, separated by commas. Paths to your own "
            "graphs (a file, a folder, or a folder of graphs) are added to it.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    root: options.Root = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Restrict the table to these models, separated by commas.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=options.MAX_RUNS,
            help="Number of runs per cell. Default: as in the paper.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=options.MAX_SEED,
            help="First seed of the splits and models.",
            rich_help_panel=options.MODEL,
        ),
    ] = names.FIRST_REPORT_SEED,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET",
            help="Preset of the rows that do not name one: best or paper. A file written by "
            "`nfgnn tune` (FILE.toml) adds a row instead.",
            callback=_validate_preset,
            autocompletion=_PRESETS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    import_: options.Import = None,
    metric: options.Metric = None,
    select: options.Select = None,
    class_weight: options.ClassWeight = None,
    device: options.Device = "auto",
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of single-threaded worker processes on the CPU.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = 1,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    out: Annotated[
        Path,
        typer.Option(help="Output folder for tables and records.", rich_help_panel=options.OUTPUT),
    ] = Path("results"),
    from_records: Annotated[
        bool,
        typer.Option(
            "--from-records",
            help="Write the tables from the recorded runs without training.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = False,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Reproduce the tables of the paper: train missing runs and write Markdown, CSV and LaTeX."""
    options.check_output_folder(out)
    columns = values.words(datasets)
    if datasets is not None and not columns:
        raise UserError("--datasets is empty: name a graph, or omit the option")
    for dataset in columns or []:
        options.validate_dataset(dataset)

    from nfgnn.cli._print import resumable
    from nfgnn.paper import (
        check_table_files,
        collect,
        make_plan,
        make_tables,
        markdown,
        run_missing,
        write_figures,
        write_tables,
    )
    from nfgnn.paper.search import write_portfolio_report
    from nfgnn.paper.studies.mixed_patterns import write_mixed_patterns
    from nfgnn.paper.studies.node_gate_report import write_node_gates
    from nfgnn.progress import Progress
    from nfgnn.training import (
        Executor,
        ProcessPool,
        RayTasks,
        export_records,
        has_records,
        open_records,
        resolve_device,
    )

    resolve_device(device)
    wanted = list(dict.fromkeys(items))
    if "all" in items:
        # The table of own graphs has no graphs unless the user names them.
        wanted = [item for item in names.ITEMS if item != "own" or columns]
        if from_records:
            message("the figures are left out, because they need training")
        else:
            wanted.append("figures")
    _refuse_unused(
        [] if "all" in items else wanted,
        {
            "datasets": datasets is not None,
            "models": models is not None,
            "runs": runs is not None,
            "seed": seed != names.FIRST_REPORT_SEED,
            "preset": preset is not None,
            "metric": metric is not None,
            "select": select is not None,
            "class_weight": class_weight is not None,
            "engine": engine != "local",
            "from_records": from_records,
        },
    )
    rows = values.words(models)
    tables = [item for item in wanted if item in names.ITEMS]
    settings = values.settings(None, metric=metric, select=select, class_weight=class_weight)
    plans = [make_plan(item, columns, rows, runs, seed, preset, settings, root) for item in tables]
    commands = {}
    for plan in plans:
        commands[plan.name] = values.command(
            "reproduce",
            plan.name,
            datasets=datasets,
            models=models,
            runs=runs,
            preset=preset,
            metric=metric,
            select=select,
            class_weight=class_weight,
            seed=None if seed == names.FIRST_REPORT_SEED else seed,
        )
        check_table_files(out, plan.file, commands[plan.name], overwrite)
    result: dict[str, Any] = {"out": str(out), "items": [], "figures": [], "notes": []}
    with resumable("run the same command again to continue"), writing(out):
        if plans:
            database = out / "records.sqlite"
            if from_records and not has_records(database):
                raise UserError(
                    f"no run is recorded in {out}, so no table is written: run the same command "
                    "without --from-records, or name the folder of the runs with --out"
                )
            with open_records(database) as records:
                if not from_records:
                    with Progress("reproduce") as progress:
                        executor: Executor = ProcessPool(workers, single_thread=True)
                        if engine == "ray":
                            executor = RayTasks(ray_address, progress.say)
                        with executor:
                            result["notes"] = run_missing(
                                plans, records, root, executor, progress, device
                            )
                for plan in plans:
                    found = collect(plan, root, records)
                    if not from_records and not any(found.values()):
                        raise UserError(_nothing_measured(plan, result["notes"]))
                    made = make_tables(plan, found, commands[plan.name], result["notes"])
                    files = write_tables(made, out, plan.file)
                    text = None if json_ else markdown(made)
                    result["items"].append(_report_item(plan.name, files, text))
                export_records(records, out / "records.parquet")
        if "mixed-patterns" in wanted:
            with Progress("mixed-patterns") as progress:
                study = write_mixed_patterns(out, runs, seed, progress, overwrite)
            text = None if json_ else study[1].read_text(encoding="utf-8")
            result["items"].append(_report_item("mixed-patterns", study, text))
        if "node-gates" in wanted:
            with Progress("node-gates") as progress:
                study = write_node_gates(
                    out, columns, root, device, progress, from_records, overwrite
                )
            text = None if json_ else study[0].read_text(encoding="utf-8")
            result["items"].append(_report_item("node-gates", study, text))
        if "portfolio" in wanted:
            with Progress("portfolio") as progress:
                study = write_portfolio_report(out, root, device, progress, from_records)
            text = None if json_ else study[0].read_text(encoding="utf-8")
            result["items"].append(_report_item("portfolio", study, text))
        if "figures" in wanted:
            with Progress("figures") as progress:
                figures = write_figures(
                    None, columns, root, out, runs, progress, overwrite=overwrite
                )
            result["figures"] = [str(file) for file in figures]
    if json_:
        print_json(result)
