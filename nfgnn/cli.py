"""The command line. Heavy imports stand inside the commands, so that ``--help`` answers at once."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nfgnn.errors import UserError

app = typer.Typer(
    name="nfgnn",
    help="Node-oriented spectral filtering for graph neural networks: every node learns its own filter.",
    epilog="First try:  nfgnn train   ·   then:  nfgnn train texas --root DATA --runs 5",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Dataset = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="A registered name, or a folder or file with a graph of your own."),
]
Root = Annotated[
    Path | None, typer.Option(help="Folder with raw datasets; else $NFGNN_DATA, else the user's cache folder.")
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Another name for a column of your own graph: id, label, split, source, target, weight; "
        "drop=NAME leaves a column out of the features. Repeatable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from nfgnn import __version__

        print(f"nfgnn {__version__}")
        raise typer.Exit


@app.command(epilog="Example:  nfgnn train texas --root DATA --protocol full --runs 10 --set K=5 --set lr=0.05")
def train(
    dataset: Dataset = "mixed",
    model: Annotated[str, typer.Option(help="Name of the model: see `nfgnn models`.")] = "NFGNN",
    protocol: Annotated[
        str, typer.Option(help="full, semi, stratified, random, geom-gcn or public: how nodes are split.")
    ] = "full",
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds SEED, SEED+1, …")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="First seed, of split and model.")] = 0,
    preset: Annotated[str, typer.Option(help="best, paper or none: where hyper-parameters come from.")] = "best",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one hyper-parameter; repeatable.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to write. Default: one below runs/.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a killed command stopped.")] = False,
    json_: Json = False,
) -> None:
    """Train a model on a graph, several times, and tell the mean with its confidence interval."""
    from nfgnn.datasets import load_dataset
    from nfgnn.report.training import print_summary, write_figure
    from nfgnn.training import Experiment, RunConfig, run_experiment
    from nfgnn.training.progress import RunDisplay

    data = load_dataset(dataset, root=root, **_columns(column))
    _say_notes(data)
    config = RunConfig.resolve(model, _settings(set_ or []), data.get("name"), protocol, preset)
    experiment = Experiment(data, protocol, list(range(seed, seed + runs)), config, device, _source(dataset, column))
    folder = out or experiment.default_folder()
    try:
        with RunDisplay(f"{config.model} on {data.get('name') or 'graph'}") as display:
            summary = run_experiment(experiment, folder, display, resume)
    except KeyboardInterrupt:
        print("nfgnn: stopped; the same command with --resume goes on from the finished runs", file=sys.stderr)
        raise typer.Exit(130) from None
    figure = write_figure(folder, data)
    if json_:
        print(json.dumps(summary))
    else:
        print_summary(summary, figure)


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(help="One model: its hyper-parameters and their defaults.")] = None,
    json_: Json = False,
) -> None:
    """List the models, or the hyper-parameters of one."""
    from nfgnn.report.models import describe_model, model_rows, print_model, print_models

    if name is None:
        rows = model_rows()
        print(json.dumps({"models": rows})) if json_ else print_models(rows)
    else:
        description = describe_model(name)
        print(json.dumps(description)) if json_ else print_model(description)


@app.command(epilog="Example:  nfgnn predict runs/texas-NFGNN-full-1a2b3c4d my-graph/ -o predictions.csv")
def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that `nfgnn train` has written.")],
    dataset: Dataset,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .csv or .parquet.")],
    seed: Annotated[
        int | None, typer.Option(help="Which of the run's seeds; default: the one of best validation accuracy.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
) -> None:
    """Apply a trained model to a graph, also to one that it has never seen."""
    from nfgnn.datasets import load_dataset
    from nfgnn.report.predictions import prediction_table, write_table
    from nfgnn.training import load_run

    classifier = load_run(run, seed, device)
    data = load_dataset(dataset, root=root, need_labels=False, **_columns(column))
    _say_notes(data)
    table = prediction_table(classifier, data)
    write_table(table, output)
    Console(stderr=True).print(f"{table.num_rows} predictions written to {output}", highlight=False)


@app.command(epilog="Example:  nfgnn datasets cornell --root DATA   ·   nfgnn datasets --template my-graph")
def datasets(
    name: Annotated[str | None, typer.Argument(help="A dataset or your own graph: its statistics.")] = None,
    root: Root = None,
    column: Column = None,
    template: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write an example of a graph of your own, and stop.")
    ] = None,
    json_: Json = False,
) -> None:
    """List the datasets, or tell the statistics of one and what is wrong with it."""
    from nfgnn.report.datasets import dataset_rows, describe_dataset, print_dataset, print_datasets

    if template is not None:
        from nfgnn.datasets.template import write_template

        folder = write_template(template)
        written = [str(path) for path in sorted(folder.iterdir())]
        print(json.dumps({"written": written})) if json_ else print("written:", *written)
    elif name is None:
        rows = dataset_rows(root)
        print(json.dumps({"datasets": rows})) if json_ else print_datasets(rows)
    else:
        from nfgnn.datasets import load_dataset

        card = describe_dataset(load_dataset(name, root=root, need_labels=False, **_columns(column)), root)
        print(json.dumps(card)) if json_ else print_dataset(card)


def _columns(items: list[str] | None) -> dict[str, Any]:
    """``["label=class", "drop=name"]`` as options of ``load_dataset``."""
    options: dict[str, Any] = {}
    for item in items or []:
        role, equals, name = item.partition("=")
        roles = ("id", "label", "split", "source", "target", "weight", "drop")
        if not equals or not name or role not in roles:
            raise UserError(f"--column {item} is not understood: write ROLE=NAME, for example label=class")
        if role == "drop":
            options["drop_columns"] = (*options.get("drop_columns", ()), name)
        else:
            options[f"{role}_column"] = name
    return options


def _source(dataset: str, columns: list[str] | None) -> dict[str, Any]:
    """Where a graph lies, as a run folder keeps it: a registered name, or a path that holds from anywhere."""
    from nfgnn.datasets.load import registered_name

    place = registered_name(dataset) or str(Path(dataset).expanduser().resolve())
    return {"dataset": place, "columns": columns or []}


def _settings(items: list[str]) -> dict[str, Any]:
    """``["K=5", "basis=bernstein"]`` as a dictionary; values as TOML writes them, bare words are strings."""
    import tomllib

    settings: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {item} is not understood: write --set KEY=VALUE, for example --set K=5")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = text.strip()
    return settings


def _say_notes(data: Any) -> None:
    console = Console(stderr=True)
    for note in data.get("notes") or []:
        console.print(f"note: {note}", highlight=False)


def main() -> None:
    """Entry point: a mistake of the user's is one message and status 2, never a traceback."""
    try:
        app()
    except UserError as error:
        print(f"nfgnn: {error}", file=sys.stderr)
        sys.exit(2)
