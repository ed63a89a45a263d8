"""``nfgnn explore``: write an interactive page about the nodes of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nfgnn.cli import options, values
from nfgnn.cli._print import print_json
from nfgnn.errors import UserError, writing

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from nfgnn.cli.graphs import GraphSource

app = typer.Typer()


@app.command(
    epilog="Example:  nfgnn explore runs/mixed-NFGNN --with runs/mixed-PolyGNN -o explorer.html",
)
def explore(
    run: options.RunFolder,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="RUN2",
            help="Second run on the same graph and split, for comparison.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET",
            help="Graph of the run. Required if its files have moved.",
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
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="HTML file to write.", rich_help_panel=options.OUTPUT),
    ] = Path("explorer.html"),
    nodes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Maximum number of nodes on the page. Larger graphs are sampled.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = 50_000,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Write a self-contained HTML page that shows the nodes of a run and their filters."""
    values.columns(column)
    options.check_output_file(output)

    from nfgnn.cli._print import message
    from nfgnn.cli.graphs import source_of_run
    from nfgnn.explain import build_node_table, check_page_output, select_runs, write_explorer
    from nfgnn.progress import Progress

    check_page_output(output)
    selection = select_runs(run, other, seed)
    with Progress() as progress:
        progress.stage("reading the graph", 0, 0)
        source = source_of_run(selection.summaries[0], dataset, root, column)
        data = _load_graph_of_run(source)

        def on_step(step: int, steps: int) -> None:
            progress.stage("placing the nodes", step, steps)

        table = build_node_table(selection, data, device, on_step)
        with writing(output):
            sample = write_explorer(table, output, nodes, overwrite)
    size = output.stat().st_size
    if json_:
        result = {
            "run": str(run),
            "with": None if other is None else str(other),
            "seed": selection.seed,
            "output": str(output),
            "bytes": size,
            "nodes": data.num_nodes,
            "shown": sample.shown,
        }
        print_json(result)
        return
    sampled = ""
    if sample.shown < data.num_nodes:
        sampled = f", a random sample of {sample.shown:,} of {data.num_nodes:,} nodes"
    message(f"{output} written ({size / 1e6:.1f} MB{sampled}): open it in a browser")


def _load_graph_of_run(source: "GraphSource") -> "Data":
    from nfgnn.data import load_dataset
    from nfgnn.store import is_store

    place = source.dataset
    if is_store(place):
        raise UserError(
            f"{place} is a store, which contains terms but no edges: explore a run on the graph "
            "itself"
        )
    return load_dataset(place, root=source.root, **values.columns(source.columns))
