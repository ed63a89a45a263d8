"""``nfgnn train``: train a model over several seeds."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from nfgnn.cli import options, values
from nfgnn.cli._print import class_counts_line, console, message, print_json, resumable
from nfgnn.errors import writing

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from nfgnn.training import RunConfig

app = typer.Typer()
_SHOWN_PARTS = ("test", "observed", "unobserved", "val")


@app.command(
    epilog="Example:  nfgnn train texas --root DATA --runs 10 --set K=5 --set lr=0.05   ·   "
    "nfgnn train my-graph/ --preset tuned.toml",
)
def train(
    dataset: options.DatasetOrStore = "mixed",
    protocol: options.Protocol = None,
    root: options.Root = None,
    column: options.Column = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model to train; `nfgnn models` lists them. Default: NFGNN if it has a preset "
            "for the graph, ScalableNFGNN for a store, otherwise the first configuration that "
            "`nfgnn auto` tries.",
            callback=options.MODELS.validate,
            autocompletion=options.MODELS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=options.MAX_RUNS,
            help="Number of runs, with the seeds SEED, SEED+1, …",
            rich_help_panel=options.MODEL,
        ),
    ] = 3,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=options.MAX_SEED,
            help="First seed of the splits and models.",
            rich_help_panel=options.MODEL,
        ),
    ] = 0,
    preset: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            help="Hyper-parameters to start from: best, paper, none, or a file written by "
            "`nfgnn tune` or `nfgnn auto` (FILE.toml), which also sets the model.",
            callback=options.validate_preset,
            autocompletion=options.PRESETS.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "best",
    metric: options.Metric = None,
    select: options.Select = None,
    class_weight: options.ClassWeight = None,
    set_: options.Settings = None,
    import_: options.Import = None,
    device: options.Device = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Resume an interrupted run.", rich_help_panel=options.EXECUTION
        ),
    ] = False,
    engine: options.Engine = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of worker processes on the CPU (default: chosen automatically), or of "
            "Ray workers with --engine ray (default: 2).",
            rich_help_panel=options.EXECUTION,
        ),
    ] = None,
    ray_address: options.RayAddress = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder. Default: a new folder in runs/.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Train a model over several seeds and report the mean with a 95 % confidence interval."""
    settings = values.settings(set_, metric=metric, select=select, class_weight=class_weight)
    values.columns(column)
    options.check_published_folder(out)

    from nfgnn.cli.graphs import load_graph, source_record
    from nfgnn.data import default_protocol
    from nfgnn.explain import write_report_figure, write_run_figure
    from nfgnn.progress import Progress
    from nfgnn.store import is_store
    from nfgnn.training import (
        Experiment,
        Graph,
        ProcessPool,
        process_group,
        read_report,
        resolve_config,
        run_experiment,
        train_on_ray,
    )
    from nfgnn.training.presets import has_preset, preset_model

    model = model or preset_model(preset)
    is_default = model is None and preset == "best" and not is_store(dataset)
    model = model or ("ScalableNFGNN" if is_store(dataset) else "NFGNN")
    _check_settings(model, settings, dataset, protocol, preset, device)
    data = load_graph(dataset, root, column)
    protocol = protocol or default_protocol(data)
    config = resolve_config(data, model, settings, protocol, preset)
    if is_default and not has_preset(model, data.get("registered_name"), protocol):
        graph_arguments = [dataset]
        for entry in column or []:
            graph_arguments += ["--column", entry]
        if root is not None:
            graph_arguments += ["--root", str(root)]
        config = _without_preset(config, data, settings, graph_arguments)
    seeds = list(range(seed, seed + runs))
    with process_group(device) as own_device:
        source = source_record(dataset, root, column)
        experiment = Experiment(Graph.of(data), protocol, seeds, config, own_device, source)
        folder = out or experiment.default_folder()
        summary: dict[str, Any] | None
        with (
            resumable("run the same command with --resume to continue"),
            writing(folder),
            Progress(f"{config.model} on {experiment.graph.name}") as progress,
        ):
            if engine == "ray":
                summary = train_on_ray(
                    experiment, folder, workers or 2, ray_address, resume, progress.say, overwrite
                )
            else:
                summary = run_experiment(
                    experiment, folder, ProcessPool(workers), progress, resume, overwrite
                )
    if summary is None:  # a process of torchrun that does not write results
        return
    files = {"run folder": folder}
    with writing(folder / "run.png"):
        files["figure"] = write_run_figure(folder, data)
    with writing(folder / "report.png"):
        report_figure = write_report_figure(folder)
    if report_figure is not None:
        files["report"] = folder / "report.md"
    if json_:
        print_json(summary)
    else:
        _print_summary(summary, read_report(folder), files)


def _without_preset(
    config: "RunConfig", data: "Data", settings: dict[str, Any], graph_arguments: list[str]
) -> "RunConfig":
    """Return the first configuration of the portfolio, and print how to compare others.

    Settings that its model does not have are those of the given configuration, which then stays.

    Args:
        config: the configuration without a preset.
        data: the graph.
        settings: given by the user.
        graph_arguments: the arguments that select the graph.
    """
    from nfgnn.auto import first_configuration

    first = first_configuration(settings)
    if first is not None:
        config = first.for_graph(data)
    message(
        f"{data.name} has no preset: training {config.model} with settings that work well on "
        f"other graphs; run `nfgnn auto {shlex.join(graph_arguments)}` to compare models and "
        "settings on this graph"
    )
    return config


def _check_settings(
    model: str,
    settings: dict[str, Any],
    dataset: str,
    protocol: str | None,
    preset: str,
    device: str,
) -> None:
    """Refuse settings that the model does not have, before a large graph is read."""
    from nfgnn.data import registered_name
    from nfgnn.training import RunConfig, resolve_device

    resolve_device(device)
    config = RunConfig.resolve(model, settings, registered_name(dataset), protocol, preset)
    config.build(2, 2, 2)


def _print_summary(
    summary: dict[str, Any], report: dict[str, Any] | None, files: dict[str, Path]
) -> None:
    """Print a table of all runs with their mean, notes on its reliability, and the output paths.

    Args:
        summary: of the run folder.
        report: the report per class of the run folder.
        files: output files by description.
    """
    from nfgnn.training import find_metric, never_predicted_warning

    table = Table(
        title=f"{summary['model']} on {summary['dataset']}, protocol {summary['protocol']}"
    )
    columns = _score_columns(summary)
    metrics = [find_metric(name) for _, name in columns]
    table.add_column("seed", justify="right")
    for (part, _), metric in zip(columns, metrics):
        unit = " %" if metric.greater_is_better else ""
        table.add_column(f"{part} {metric.title}{unit}", justify="right")
    table.add_column("epochs", justify="right")
    keys = [f"{part}_{name}" for part, name in columns]
    for i, seed in enumerate(summary["seeds"]):
        values = [summary[key]["values"][i] for key in keys]
        cells = [m.shown(value).removesuffix(" %") for m, value in zip(metrics, values)]
        mark = "†" if seed in summary.get("dead_seeds", []) else ""
        table.add_row(f"{seed}{mark}", *cells, str(summary["epochs"][i]))
    table.add_section()
    means = [m.shown_interval(summary[key]).removesuffix(" %") for m, key in zip(metrics, keys)]
    table.add_row("mean", *(Text(mean, "bold") for mean in means), "")
    majority = summary.get("majority")
    if majority:
        cells = [m.shown(majority[key]).removesuffix(" %") for m, key in zip(metrics, keys)]
        table.add_row("majority", *cells, "", style="dim")
    output = console()
    output.print(table)
    output.print(
        f"± is the 95 % confidence interval of the mean. {summary['epoch_ms']:.1f} ms per epoch."
    )
    if summary.get("dead_seeds"):
        output.print(_dead_runs_line(summary, columns), highlight=False)
    if "class_counts" in summary:
        for line in _split_lines(summary):
            output.print(line, highlight=False)
    if report is not None:
        metric = find_metric(summary["metric"])
        warning = never_predicted_warning(report, summary["class_counts"], metric)
        if warning is not None:
            output.print(f"warning: {warning}", highlight=False)
    if "features" in summary:
        output.print(f"Features: {summary['features']}.", highlight=False)
    width = max(len(what) for what in files) + 2
    for what, path in files.items():
        output.print(f"{what:{width}}{path}", highlight=False)


def _score_columns(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return part and metric of the scores in the table, those of test nodes first."""
    metric = summary.get("metric", "accuracy")  # earlier versions have none
    columns = [(part, metric) for part in _SHOWN_PARTS if f"{part}_{metric}" in summary]
    if metric != "accuracy":
        columns.insert(1, (columns[0][0], "accuracy"))
    return columns


def _dead_runs_line(summary: dict[str, Any], columns: list[tuple[str, str]]) -> str:
    """Return the number and the seeds of the dead runs, and the means without them."""
    from nfgnn.training import find_metric

    dead = summary["dead_seeds"]
    seeds = ", ".join(map(str, dead))
    noun = "seed" if len(dead) == 1 else "seeds"
    text = f"{len(dead)} of {len(summary['seeds'])} runs never rose above chance ({noun} {seeds})"
    others = summary.get("without_dead")
    if others is None:
        return f"{text}."
    means = []
    for part, name in columns:
        metric = find_metric(name)
        means.append(f"{part} {metric.title} {metric.shown_interval(others[f'{part}_{name}'])}")
    return f"{text}; mean of the other runs: {', '.join(means)}."


def _split_lines(summary: dict[str, Any]) -> list[str]:
    """Return the class counts of the first split, and what limits the scores."""
    from nfgnn.data import few

    lines = [class_counts_line(summary["class_counts"], summary["classes"])]
    parts: dict[str, list[str]] = {}
    for part, missing in summary["missing_classes"].items():
        parts.setdefault(few(missing), []).append(part)
    for missing, where in parts.items():
        lines.append(f"warning: no {' or '.join(where)} node of class {missing}")
    constant = summary["constant_predictions"]
    if constant:
        seeds = "seed" if len(constant) == 1 else "seeds"
        classes = few(sorted(set(constant.values())))
        lines.append(
            f"warning: every test node is predicted as {classes} ({seeds} {few(list(constant))})"
        )
    return lines
