"""The command line. Heavy imports stand inside the commands, so that ``--help`` answers at once."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from nfgnn.cli import values as typed
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
    typer.Argument(
        metavar="DATASET",
        help="A registered name, a folder or file with a graph of your own, or a store.",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder with raw datasets; else $NFGNN_DATA, else the user's cache folder."),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Another name for a column of your own graph: id, label, split, source, target, weight; "
        "drop=NAME leaves a column out of the features. Repeatable.",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")
]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from nfgnn import __version__

        print(f"nfgnn {__version__}")
        raise typer.Exit


@app.command(
    epilog="Example:  nfgnn train texas --root DATA --protocol full --runs 10 --set K=5 --set lr=0.05"
)
def train(
    dataset: Dataset = "mixed",
    model: Annotated[
        str | None,
        typer.Option(help="See `nfgnn models`. Default: NFGNN; ScalableNFGNN on a store."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="full, semi, stratified, random, geom-gcn, inductive or public: how nodes are split."
        ),
    ] = "full",
    runs: Annotated[int, typer.Option(min=1, help="Number of runs: seeds SEED, SEED+1, …")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="First seed, of split and model.")] = 0,
    preset: Annotated[
        str, typer.Option(help="best, paper or none: where hyper-parameters come from.")
    ] = "best",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override one hyper-parameter; repeatable."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to write. Default: one below runs/.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a killed command stopped.")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="local, or ray: workers of a cluster, for a store.")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs side by side on a CPU (default: what pays), or workers of --engine ray (2).",
        ),
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster; else $RAY_ADDRESS, else one is started here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Train a model on a graph, several times, and tell the mean with its confidence interval."""
    from nfgnn.cli.print_training import print_summary, write_figure
    from nfgnn.training import Experiment
    from nfgnn.training.distributed import process_group
    from nfgnn.training.distributed_runs import run_in_processes
    from nfgnn.training.ray_train import train_on_ray
    from nfgnn.training.row_data import resolve_config

    data = _load(dataset, root, column)
    model = model or ("NFGNN" if data.get("rows") is None else "ScalableNFGNN")
    config = resolve_config(data, model, typed.settings(set_ or []), protocol, preset)
    with process_group(device) as own_device:
        seeds = list(range(seed, seed + runs))
        experiment = Experiment(data, protocol, seeds, config, own_device, _source(dataset, column))
        folder = out or experiment.default_folder()
        try:
            if engine == "ray":
                say = Console(stderr=True, highlight=False).print
                summary: Any = train_on_ray(
                    experiment, folder, workers or 2, ray_address, resume, say
                )
            elif engine == "local":
                summary = run_in_processes(experiment, folder, resume, workers)
            else:
                raise UserError(f"--engine {engine} is not known: choose local or ray")
        except KeyboardInterrupt:
            print(
                "nfgnn: stopped; the same command with --resume goes on where it was",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
    if summary is None:  # a process that only trained along
        return
    figure = write_figure(folder, data)
    if json_:
        print(json.dumps(summary))
    else:
        print_summary(summary, figure)


@app.command()
def models(
    name: Annotated[
        str | None, typer.Argument(help="One model: its hyper-parameters and their defaults.")
    ] = None,
    json_: Json = False,
) -> None:
    """List the models, or the hyper-parameters of one."""
    from nfgnn.cli.print_models import describe_model, model_rows, print_model, print_models

    if name is None:
        rows = model_rows()
        print(json.dumps({"models": rows})) if json_ else print_models(rows)
    else:
        description = describe_model(name)
        print(json.dumps(description)) if json_ else print_model(description)


@app.command(
    epilog="Example:  nfgnn predict runs/texas-NFGNN-full-1a2b3c4d my-graph/ -o predictions.csv"
)
def predict(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder that `nfgnn train` has written.")
    ],
    dataset: Dataset,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write: .csv or .parquet.")
    ],
    extends: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH",
            help="DATASET holds new nodes only: the graph or store that they belong to.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Which of the run's seeds; default: the one of best validation accuracy."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
) -> None:
    """Apply a trained model to a graph, also to one that it has never seen, or to new nodes of a known one."""
    from nfgnn.training import load_run, prediction_table, write_table

    classifier = load_run(run, seed, device)
    if extends is None:
        table = prediction_table(classifier, _load(dataset, root, column, need_labels=False))
    else:
        from nfgnn.data import load_new_nodes

        graph = _load(_graph_of(extends), root, column, need_labels=False)
        table = prediction_table(
            classifier, load_new_nodes(dataset, graph, **typed.columns(column)), graph
        )
    write_table(table, output)
    Console(stderr=True).print(f"{table.num_rows} predictions written to {output}", highlight=False)


@app.command(
    epilog="Example:  nfgnn explore runs/mixed-NFGNN --with runs/mixed-PolyGNN -o explorer.html"
)
def explore(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder that `nfgnn train` has written.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The HTML file to write.")] = Path(
        "explorer.html"
    ),
    other: Annotated[
        Path | None,
        typer.Option(
            "--with", metavar="RUN2", help="A second run on the same graph and split, to compare."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Which of the run's seeds; default: the one of best validation accuracy."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET", help="The graph of the run, if it is no longer where it was."
        ),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            min=1, help="Most nodes on the page; of a larger graph it shows a random sample."
        ),
    ] = 50_000,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
) -> None:
    """Look at the nodes of a run and their filters, in one HTML file that needs no network."""
    from nfgnn.explain.explorer.command import explore_run

    explore_run(
        run,
        output,
        other,
        seed,
        nodes,
        device,
        lambda source: _load_again(source, dataset, root, column),
    )


@app.command(
    epilog="Example:  nfgnn analyze texas --root DATA   ·   nfgnn analyze my-graph/ --out report"
)
def analyze(
    dataset: Dataset,
    root: Root = None,
    column: Column = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to. Default: analysis/NAME.")
    ] = None,
    json_: Json = False,
) -> None:
    """Tell what kind of graph this is, and whether its nodes may need filters of their own: a page with figures."""
    from nfgnn.cli.print_analysis import StepDisplay, print_analysis
    from nfgnn.explain import analyze_graph, make_folder, write_analysis

    data = _load(dataset, root, column, need_labels=False)
    folder = out or Path("analysis") / (data.get("name") or "graph")
    make_folder(folder)
    with StepDisplay() as display:
        card = analyze_graph(data, display.told)
    files = write_analysis(card, folder)
    if json_:
        print(json.dumps({**card, "files": [str(file) for file in files]}, allow_nan=False))
    else:
        print_analysis(card, files[0])


@app.command(
    epilog="Example:  nfgnn datasets cornell --root DATA   ·   nfgnn datasets --template my-graph"
)
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A dataset or your own graph: its statistics.")
    ] = None,
    root: Root = None,
    column: Column = None,
    template: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write an example of a graph of your own, and stop."),
    ] = None,
    json_: Json = False,
) -> None:
    """List the datasets, or tell the statistics of one and what is wrong with it."""
    from nfgnn.cli.print_datasets import (
        dataset_rows,
        describe_dataset,
        print_dataset,
        print_datasets,
    )

    if template is not None:
        from nfgnn.data import write_template

        folder = write_template(template)
        written = [str(path) for path in sorted(folder.iterdir())]
        print(json.dumps({"written": written})) if json_ else print("written:", *written)
    elif name is None:
        rows = dataset_rows(root)
        print(json.dumps({"datasets": rows})) if json_ else print_datasets(rows)
    else:
        from nfgnn.data import load_dataset

        card = describe_dataset(
            load_dataset(name, root=root, need_labels=False, **typed.columns(column)), root
        )
        print(json.dumps(card)) if json_ else print_dataset(card)


@app.command(epilog="Example:  nfgnn tune texas --root DATA --trials 40 --out texas.toml")
def tune(
    dataset: Dataset,
    model: Annotated[str, typer.Option(help="Name of the model: see `nfgnn models`.")] = "NFGNN",
    protocol: Annotated[str, typer.Option(help="How nodes are split.")] = "full",
    trials: Annotated[int, typer.Option(min=1, help="How many settings are tried.")] = 50,
    seeds: Annotated[
        str, typer.Option(help="Split seeds to choose on, below 1000: 0-9, or 0,1,2.")
    ] = "0-9",
    preset: Annotated[
        str,
        typer.Option(
            help="best searches all forms of the model, paper the grid of the paper's form."
        ),
    ] = "best",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Fix one hyper-parameter; repeatable."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    root: Root = None,
    column: Column = None,
    storage: Annotated[
        Path, typer.Option(help="Database of the runs, which a killed search goes on from.")
    ] = Path("runs/tune.sqlite"),
    out: Annotated[
        Path | None, typer.Option(help="File for the table of settings; else standard output.")
    ] = None,
) -> None:
    """Choose hyper-parameters by validation accuracy, and write them as a table of a preset."""
    from nfgnn.data import load_dataset
    from nfgnn.files import atomic_write
    from nfgnn.paper.tune import Search, preset_table, run_search
    from nfgnn.training.records.database import Records
    from nfgnn.work_progress import WorkDisplay

    data = load_dataset(dataset, root=root, **typed.columns(column))
    search = Search(
        data,
        model,
        protocol,
        preset,
        trials,
        typed.numbers(seeds),
        typed.settings(set_ or []),
        device,
    )
    try:
        with (
            Records(storage) as records,
            WorkDisplay(f"tune {model} on {data.get('name')}") as display,
        ):
            outcome = run_search(search, records, display)
    except KeyboardInterrupt:
        print("nfgnn: stopped; the same command goes on from the finished runs", file=sys.stderr)
        raise typer.Exit(130) from None
    command = typed.command(
        "tune", dataset, model=model, protocol=protocol, trials=trials, seeds=seeds, preset=preset
    )
    command += "".join(f" --set {item}" for item in set_ or [])
    table = preset_table(search, outcome, command)
    if out is None:
        print(table, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out, table)


@app.command(epilog="Example:  nfgnn reproduce full --datasets texas,cornell --runs 10 --root DATA")
def reproduce(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEM…",
            help="semi full large inductive ablation orientation k-rank time figures all",
        ),
    ],
    datasets: Annotated[
        str | None, typer.Option(help="Only these graphs, with commas; also graphs of your own.")
    ] = None,
    models: Annotated[str | None, typer.Option(help="Only these models, with commas.")] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of every cell. Default: as many as the paper's.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed, of split and model.")] = 1000,
    preset: Annotated[
        str | None, typer.Option(help="best or paper, for rows that do not say which they are.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    workers: Annotated[
        int, typer.Option(min=1, help="Processes on a CPU, each with one thread.")
    ] = 1,
    engine: Annotated[
        str, typer.Option(help="local, or ray: runs are tasks of a cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster; else $RAY_ADDRESS, else one is started here.")
    ] = None,
    root: Root = None,
    out: Annotated[Path, typer.Option(help="Folder of tables and records.")] = Path("results"),
    from_records: Annotated[
        bool,
        typer.Option(
            "--from-records", help="Run nothing: write the tables from the runs that are there."
        ),
    ] = False,
) -> None:
    """Make the paper's tables: run what is missing, then write Markdown, CSV and LaTeX, the paper's values beside."""
    from nfgnn.paper.items import ITEMS
    from nfgnn.paper.plan import make_plan
    from nfgnn.paper.reproduce import collect, run_missing
    from nfgnn.paper.table_text import markdown, write_tables
    from nfgnn.paper.tables import make_tables
    from nfgnn.training.jobs import Place
    from nfgnn.training.records.export import export, open_records
    from nfgnn.work_progress import WorkDisplay

    wanted = list(dict.fromkeys([*ITEMS, "figures"] if "all" in items else items))
    columns, rows = typed.words(datasets), typed.words(models)
    plans = [
        make_plan(item, columns, rows, runs, seed, preset) for item in wanted if item != "figures"
    ]
    place = Place(out / "records.sqlite", root, device)
    try:
        if plans:
            with open_records(place.database) as records:
                with WorkDisplay("reproduce") as display:
                    where = (workers, engine, ray_address)
                    notes = [] if from_records else run_missing(plans, place, display, *where)
                for plan in plans:
                    options = {
                        "datasets": datasets,
                        "models": models,
                        "runs": runs,
                        "preset": preset,
                    }
                    command = typed.command(
                        "reproduce", plan.name, **options, seed=seed if seed != 1000 else None
                    )
                    tables = make_tables(plan, collect(plan, root, records), command, notes)
                    written = write_tables(tables, out, plan.file)
                    print(markdown(tables))
                    display.say(f"written: {' '.join(map(str, written))}")
                export(records, out / "records.parquet")
        if "figures" in wanted:
            from nfgnn.paper.figures.write import write_figures

            write_figures(None, columns, root, out, runs)
    except KeyboardInterrupt:
        print("nfgnn: stopped; the same command goes on from the finished runs", file=sys.stderr)
        raise typer.Exit(130) from None


def _graph_of(place: str) -> str:
    """A graph as it is named; of a store the one that it was made from."""
    from nfgnn.store import Store, is_store

    return Store.open(place).manifest.source if is_store(place) else place


def _load(
    dataset: str, root: Path | None, column: list[str] | None, need_labels: bool = True
) -> Any:
    """A graph, or the rows of a store."""
    from nfgnn.data import load_dataset
    from nfgnn.store import Store, is_store

    if is_store(dataset):
        return Store.open(dataset).labels()
    data = load_dataset(dataset, root=root, need_labels=need_labels, **typed.columns(column))
    _say_notes(data)
    return data


@app.command(epilog="Example:  nfgnn precompute my-graph/ --out my-store --K 10 --memory 4GB")
def precompute(
    dataset: Dataset,
    out: Annotated[Path, typer.Option(help="Folder of the store to write.")],
    basis: Annotated[
        str, typer.Option(help="Polynomial basis, such as chebyshev or 'jacobi(0.5, 1)'.")
    ] = "chebyshev",
    K: Annotated[
        int, typer.Option("--K", min=0, help="Degree: K + 1 terms are stored for every row.")
    ] = 10,
    memory: Annotated[str, typer.Option(help="Memory that may be used, such as 4GB.")] = "4GB",
    rows: Annotated[
        str, typer.Option(help="labelled or all: the nodes whose terms are stored.")
    ] = "labelled",
    dtype: Annotated[
        str, typer.Option(help="float32, bfloat16 or float16: precision on disk.")
    ] = "float32",
    features: Annotated[
        str, typer.Option(help="auto, row, standard or raw: scaling of the features.")
    ] = "auto",
    self_loops: Annotated[
        bool, typer.Option("--self-loops", help="Add a loop to every node.")
    ] = False,
    lambda_max: Annotated[
        float, typer.Option(help="Largest eigenvalue of the Laplacian that is assumed.")
    ] = 2.0,
    engine: Annotated[
        str, typer.Option(help="local or ray: who computes the blocks of columns.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="A Ray cluster; else $RAY_ADDRESS, else one is started here.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    root: Root = None,
    column: Column = None,
    json_: Json = False,
) -> None:
    """Compute the terms of a graph once, also of one that does not fit into memory, and store them for training."""
    import time

    from nfgnn.cli.print_precompute import PrecomputeDisplay, print_plan, store_summary
    from nfgnn.store.plan import Settings, parse_memory
    from nfgnn.store.precompute import plan
    from nfgnn.store.precompute import precompute as compute

    start, limit = time.perf_counter(), parse_memory(memory)
    settings = Settings(basis, K, limit, rows, dtype, features, self_loops, lambda_max, device)
    source = _blockwise(dataset, root, limit, rows != "all", typed.columns(column))
    chosen = plan(source, out, settings, engine)
    print_plan(chosen, limit)
    if dry_run:
        print(json.dumps({"plan": chosen.summary()})) if json_ else None
        return
    with PrecomputeDisplay() as show:
        try:
            store = compute(
                source, out, settings, engine=engine, address=ray_address, chosen=chosen, report=show.report,
                say=show.say,
            )  # fmt: skip
        except KeyboardInterrupt:
            print(
                "nfgnn: stopped; the same command goes on from the finished blocks", file=sys.stderr
            )
            raise typer.Exit(130) from None
    summary = store_summary(store, chosen, time.perf_counter() - start, show.stages)
    print(json.dumps(summary)) if json_ else print(
        f"{store.manifest.num_rows:,} rows written to {store.path}"
    )


def _blockwise(
    dataset: str, root: Path | None, memory: int, need_labels: bool, columns: dict[str, Any]
) -> Any:
    """The graph to precompute: in memory where it is small beside the budget, else in blocks."""
    from nfgnn.data import load_dataset, loaded_bytes, open_large
    from nfgnn.store.memory import resident_bytes, return_freed_memory
    from nfgnn.store.source import MemorySource

    return_freed_memory()
    small = loaded_bytes(dataset, root) <= max(0, memory - resident_bytes()) // 4
    large = None if small else open_large(dataset, root, **columns)
    if large is not None:
        return large
    data = load_dataset(dataset, root=root, need_labels=need_labels, **columns)
    _say_notes(data)
    return MemorySource(data, str(Path(dataset).resolve()) if Path(dataset).exists() else dataset)


def _source(dataset: str, columns: list[str] | None) -> dict[str, Any]:
    """Where a graph lies, as a run folder keeps it: a registered name, or a path that holds from anywhere."""
    from nfgnn.data import registered_name

    place = registered_name(dataset) or str(Path(dataset).expanduser().resolve())
    return {"dataset": place, "columns": columns or []}


def _load_again(
    source: dict[str, Any] | None, dataset: str | None, root: Path | None, column: list[str] | None
) -> Any:
    """The graph of a run: from where it was, or from where the user says it is."""
    from nfgnn.data import load_dataset
    from nfgnn.store import is_store

    if dataset is None and source is None:
        raise UserError("the run does not say where its graph came from: name it with --dataset")
    said = source or {}
    place = dataset or said["dataset"]
    if is_store(place):
        raise UserError(
            f"{place} is a store, which holds terms and no links: explore a run on the graph itself"
        )
    return load_dataset(place, root=root, **typed.columns(column or said.get("columns")))


def _say_notes(data: Any) -> None:
    console = Console(stderr=True)
    for note in data.get("notes") or []:
        console.print(f"note: {note}", highlight=False)


def main() -> None:
    """Entry point: a mistake of the user's is one message and status 2, never a traceback."""
    try:
        app()
    except UserError as error:
        if os.environ.get("RANK", "0") == "0":  # of several processes one is enough to say it
            print(f"nfgnn: {error}", file=sys.stderr)
        sys.exit(2)
