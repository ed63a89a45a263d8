"""``nfgnn predict``: apply a trained model to a graph."""

from pathlib import Path
from typing import Annotated

import typer

from nfgnn.cli import options, values
from nfgnn.cli._print import print_json
from nfgnn.errors import writing

app = typer.Typer()


@app.command(
    epilog="Example:  nfgnn predict runs/texas-NFGNN-full-1a2b3c4d my-graph/ -o predictions.csv",
)
def predict(
    run: options.RunFolder,
    dataset: options.Dataset,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="File to write: .csv or .parquet.",
            rich_help_panel=options.OUTPUT,
        ),
    ],
    extends: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH",
            help="Graph or store that the nodes of DATASET are added to; DATASET then holds only "
            "new nodes.",
            callback=options.validate_dataset,
            autocompletion=options.DATASETS.complete,
            rich_help_panel=options.DATA,
        ),
    ] = None,
    root: options.Root = None,
    column: options.Column = None,
    seed: options.RunSeed = None,
    import_: options.Import = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Predict the class of every node of a graph, or of nodes added to the training graph."""
    columns = values.columns(column)
    options.check_output_file(output, ".csv", ".parquet")

    from nfgnn.cli._print import message, print_notes
    from nfgnn.cli.graphs import load_graph
    from nfgnn.data import load_new_nodes
    from nfgnn.training import check_table_output, load_run, prediction_table, write_table

    check_table_output(output)
    classifier = load_run(run, seed, device)
    if extends is None:
        data = load_graph(dataset, root, column, False, classifier.feature_encoding_)
        table = prediction_table(classifier, data)
    else:
        source = _source_graph(extends)
        graph = load_graph(source, root, column, False, classifier.feature_encoding_)
        new_nodes = load_new_nodes(dataset, graph, **columns)
        print_notes(new_nodes)
        table = prediction_table(classifier, new_nodes, graph)
    with writing(output):
        write_table(table, output, overwrite)
    if json_:
        result = {
            "run": str(run),
            "dataset": dataset,
            "extends": extends,
            "model": classifier.model,
            "seed": classifier.seed,
            "predictions": table.num_rows,
            "output": str(output),
        }
        print_json(result)
    else:
        message(f"{table.num_rows} predictions written to {output}")


def _source_graph(dataset: str) -> str:
    """Return the graph that a store was computed from; any other graph as it is."""
    from nfgnn.store import Store, is_store

    return Store.open(dataset).manifest.source if is_store(dataset) else dataset
