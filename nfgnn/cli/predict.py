"""``nfgnn predict``: apply a trained model to a graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nfgnn.cli import options, values
from nfgnn.cli._print import print_json
from nfgnn.errors import UserError, writing

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from nfgnn.auto import EnsembleClassifier
    from nfgnn.serving import StorePredictor
    from nfgnn.training import NodeClassifier

app = typer.Typer()


@app.command(
    epilog="Example:  nfgnn predict runs/mine   ·   nfgnn predict runs/mine new-graph/ -o new.csv",
)
def predict(
    run: options.RunFolder,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="Graph to predict on: registered data set, or path or URL of a file, folder or "
            "store. Default: the graph of the run.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Output file, .csv or .parquet. Default: RUN-predictions.csv.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Also write the probability of every class.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    extends: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH",
            help="Graph or store to which the nodes of DATASET are added. DATASET then contains "
            "only new nodes.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
            rich_help_panel=options.DATA,
        ),
    ] = None,
    root: options.Root = None,
    column: options.Column = None,
    seed: options.RunSeed = None,
    single: Annotated[
        bool,
        typer.Option(
            "--single",
            help="Use the best single model of a run of `nfgnn auto` instead of its ensemble.",
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    import_: options.Import = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Predict the classes of all nodes of a graph, or of new nodes added to the training graph.

    --column and --root default to those of the run.
    """
    values.columns(column)
    if output is None:
        output = Path(f"{run.resolve().name}-predictions.csv")
    options.check_output_file(output, ".csv", ".parquet")

    from nfgnn.auto import EnsembleClassifier, load_predictor
    from nfgnn.cli._print import message, print_notes
    from nfgnn.cli.graphs import load_graph, source_of_run
    from nfgnn.data import load_new_nodes
    from nfgnn.training import (
        check_table_output,
        prediction_table,
        read_summary,
        split_of_run,
        write_table,
    )

    check_table_output(output)
    classifier = load_predictor(run, seed, device, single)
    encoding = classifier.feature_encoding_
    summary = read_summary(run)
    if extends is None:
        source = source_of_run(summary, dataset, root, column)
        data = load_graph(source.dataset, source.root, source.columns, False, encoding)
        data.path = source.dataset  # error messages name the path
        data = split_of_run(run, classifier.seed, data)
        if isinstance(classifier, EnsembleClassifier):
            _print_left_out(classifier, data)
        table = prediction_table(classifier, data, probabilities=probabilities)
    else:
        if dataset is None:
            raise UserError("--extends requires DATASET, the folder with the new nodes")
        source = source_of_run(summary, dataset, root, column)
        options_of_columns = values.columns(source.columns)
        predictor = _store_predictor(extends, classifier)
        if predictor is not None:
            new_nodes = load_new_nodes(dataset, predictor.existing, **options_of_columns)
            graph = None
            shares = predictor.predict_proba(new_nodes)
        else:
            shares = None
            place = source_of_run(summary, _source_graph(extends), root, column)
            graph = load_graph(place.dataset, place.root, place.columns, False, encoding)
            new_nodes = load_new_nodes(dataset, graph, **options_of_columns)
        print_notes(new_nodes)
        table = prediction_table(classifier, new_nodes, graph, probabilities, shares)
    with writing(output):
        write_table(table, output, overwrite)
    if json_:
        result = {
            "run": str(run),
            "dataset": dataset or source.dataset,
            "extends": extends,
            "model": classifier.model,
            "seed": classifier.seed,
            "predictions": table.num_rows,
            "output": str(output),
        }
        print_json(result)
    else:
        message(f"wrote {table.num_rows} predictions to {output}")


def _print_left_out(ensemble: "EnsembleClassifier", data: "Data") -> None:
    """Print which members of an ensemble cannot predict on another graph."""
    from nfgnn.cli._print import message

    used = ensemble.members_for(data)
    left_out = [member.name for member in ensemble.members if member not in used]
    if left_out:
        message(
            f"note: {', '.join(left_out)} cannot predict on another graph, because every node of "
            "the training graph has its own weights; using the other members of the ensemble"
        )


def _store_predictor(
    extends: str, classifier: "NodeClassifier | EnsembleClassifier"
) -> "StorePredictor | None":
    """Return a predictor that needs only the store, or ``None`` if the source graph is needed."""
    from nfgnn.cli._print import message
    from nfgnn.serving import StorePredictor, serves
    from nfgnn.store import Store, is_store
    from nfgnn.training import NodeClassifier

    if not is_store(extends) or not isinstance(classifier, NodeClassifier):
        return None
    store = Store.open(extends, verify="graph")
    if serves(classifier, store):
        return StorePredictor(classifier, store)
    if not store.manifest.has_graph:
        message(
            f"note: {extends} does not contain the graph, so reading {store.manifest.source}; "
            "create the store with `nfgnn precompute --serve` to avoid this"
        )
    return None


def _source_graph(dataset: str) -> str:
    """Return the graph that a store was computed from; other graphs are returned unchanged."""
    from nfgnn.store import Store, is_store

    return Store.open(dataset).manifest.source if is_store(dataset) else dataset
