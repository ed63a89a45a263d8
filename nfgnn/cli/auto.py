"""``nfgnn auto``: find the best model for a graph."""

import shlex
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nfgnn.cli import options, values
from nfgnn.cli._print import class_counts_line, console, print_json, resumable
from nfgnn.errors import UserError, writing
from nfgnn.files import safe_name
from nfgnn.progress import duration, parse_duration

if TYPE_CHECKING:
    from nfgnn.auto import AutoResult

app = typer.Typer()
_DEFAULT_TIME = "5m"
_MOST_ENTRIES = 10


@app.command(
    epilog="Example:  nfgnn auto my-graph/ --time 2m --out runs/mine   ·   "
    "nfgnn predict runs/mine -o predictions.csv   ·   "
    "nfgnn auto texas --root DATA --max-runs 40   ·   "
    "nfgnn auto my-graph/ --time 30m --engine ray --ray-address head:6379",
)
def auto(
    dataset: options.Dataset,
    protocol: options.Protocol = None,
    root: options.Root = None,
    column: options.Column = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="Time limit for the whole command, such as 30s, 5m or 1h. Default: "
            f"{_DEFAULT_TIME}.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=options.MAX_RUNS,
            help="Number of training runs, instead of --time. The result is reproducible on the "
            "same hardware.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    metric: options.Metric = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=options.MAX_SEED,
            help="Seed of the split, the search and the models.",
            rich_help_panel=options.MODEL,
        ),
    ] = 0,
    single: Annotated[
        bool,
        typer.Option(
            "--single",
            help="Keep only the best single model instead of an ensemble.",
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    portfolio: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with the configurations to train first. Default: the built-in "
            "portfolio.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    import_: options.Import = None,
    device: options.Device = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of worker processes on the CPU, or of runs at the same time on Ray. "
            "Default: chosen automatically.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = None,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Resume an interrupted search.", rich_help_panel=options.EXECUTION
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder. Default: runs/NAME-auto-PROTOCOL-SEED.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Find the best model for a graph within a time limit, and report whether its edges help."""
    started = monotonic()
    values.columns(column)
    options.check_published_folder(out)
    if time is not None and max_runs is not None:
        raise UserError("--time and --max-runs are mutually exclusive: pass only one of them")
    seconds = None if max_runs is not None else parse_duration(time or _DEFAULT_TIME)

    from nfgnn.auto import run_auto, write_page
    from nfgnn.cli.graphs import load_graph, source_record
    from nfgnn.data import default_protocol
    from nfgnn.explain import search_page, write_run_figure
    from nfgnn.progress import Progress
    from nfgnn.training import Graph, read_summary, resolve_device

    resolve_device(device)
    data = load_graph(dataset, root, column)
    protocol = protocol or default_protocol(data)
    name = data.get("name") or "graph"
    folder = out or Path("runs") / f"{safe_name(name)}-auto-{protocol}-{seed}"
    with (
        resumable("run the same command with --resume to continue"),
        writing(folder),
        Progress("auto", compact=True) as progress,
    ):
        result = run_auto(
            Graph.of(data),
            protocol,
            seed,
            time=seconds,
            max_runs=max_runs,
            metric=metric,
            device=device,
            workers=workers,
            folder=folder,
            source=source_record(dataset, root, column),
            portfolio=portfolio,
            single=single,
            resume=resume,
            overwrite=overwrite,
            progress=progress,
            started=started,
            engine=engine,
            ray_address=ray_address,
        )
    with writing(folder):
        page = write_page(folder, search_page(result))
    with writing(folder / "run.png"):
        write_run_figure(folder, data)
    if json_:
        print_json(_json_result(result, read_summary(folder), page))
    else:
        _print_result(result, page)


def _json_result(result: "AutoResult", summary: dict[str, Any], page: Path) -> dict[str, Any]:
    """Return the summary of the best single model, as of ``nfgnn train``, and the search."""
    found = result.to_dict()
    parts = ("leaderboard", "ensemble", "test", "ensemble_test", "value", "command", "warnings")
    search = ("runs", "seconds", "seconds_to_first", "time_limit", "validation_splits", "notes")
    return {
        **summary,
        **{key: found[key] for key in parts},
        "search": {key: found[key] for key in search},
        "page": str(page),
    }


def _print_result(result: "AutoResult", page: Path) -> None:
    """Print the leaderboard, what features and edges contribute, and the next commands."""
    from nfgnn.explain import describe_auto

    text = describe_auto(result)
    output = console()
    output.print(_leaderboard_table(result))
    for sentence in text.summary:
        output.print(sentence, highlight=False)
    for warning in text.warnings:
        output.print(f"warning: {warning}", highlight=False)
    for finding in text.findings:
        output.print(f"· {finding}", highlight=False)
    output.print(text.remark, style="dim", highlight=False)
    output.print(class_counts_line(result.class_counts, result.classes), highlight=False)
    for note in text.notes:
        output.print(f"note: {note}", highlight=False)
    output.print(text.cost, highlight=False)
    lines = {
        "best model": text.model,
        "predict": f"nfgnn predict {shlex.quote(str(page.parent))} -o predictions.csv",
        "train again": result.command,
        "run folder": str(page.parent),
        "figure": str(page.parent / "run.png"),
        "page": str(page),
    }
    for label, line in lines.items():
        output.print(f"{label:13}{line}", highlight=False, soft_wrap=True)


def _leaderboard_table(result: "AutoResult") -> Table:
    from nfgnn.explain import USES, shown_limits
    from nfgnn.training import find_metric

    metric = find_metric(result.metric)
    unit = " %" if metric.greater_is_better else ""
    shown = result.leaderboard[:_MOST_ENTRIES]
    total = len(result.leaderboard)
    count = f"{len(shown)} of {total} configurations" if total > len(shown) else "leaderboard"
    table = Table(title=f"{result.dataset}, protocol {result.protocol}: {count}")
    table.add_column("", justify="right")
    table.add_column("model")
    table.add_column("uses")
    table.add_column(f"validation {metric.title}{unit}", justify="right")
    table.add_column("95 % interval", justify="right")
    table.add_column("time", justify="right")
    table.add_column("from")
    for rank, entry in enumerate(shown, start=1):
        table.add_row(
            str(rank),
            entry.name,
            USES[entry.family],
            metric.shown(entry.validation.value).removesuffix(" %"),
            shown_limits(entry.validation, metric),
            duration(entry.seconds),
            entry.origin,
        )
    table.add_section()
    if result.ensemble is not None and len(result.ensemble.members) > 1:
        score = result.ensemble.validation
        table.add_row(
            "",
            f"ensemble of {len(result.ensemble.members)}",
            "",
            metric.shown(score.value).removesuffix(" %"),
            shown_limits(score, metric),
            "",
            "",
        )
    constant = result.majority.get(f"val_{metric.name}")
    if constant is not None:
        majority = metric.shown(constant).removesuffix(" %")
        table.add_row("", "majority", "", majority, "", "", "", style="dim")
    return table
