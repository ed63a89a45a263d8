"""``nfgnn precompute``: compute the polynomial terms of a graph and write them to disk."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nfgnn.cli import names, options, values
from nfgnn.cli._print import console, print_json, resumable
from nfgnn.errors import UserError, printable, writing
from nfgnn.object_store import is_remote

if TYPE_CHECKING:
    from nfgnn.store import Plan, Source, Store

app = typer.Typer()
_ROWS = options.Choice("choice of rows", ("labelled", "all"))
_DTYPES = options.Choice("dtype", names.DTYPES)
_SCALINGS = options.Choice("scaling", names.SCALINGS)
_CUTS = {
    "resident": "graph in memory, columns in blocks",
    "streamed": "graph streamed from disk in blocks of rows, columns in blocks",
    "device": "graph in GPU memory, columns in blocks",
}

_PARTS = {
    "sketch": "hashed neighbours",
    "two_hop": "hashed two-hop neighbours",
    "degree": "logarithms of degrees",
    "agreement": "cosines with neighbours",
}


@app.command(epilog="Example:  nfgnn precompute my-graph/ --out my-store --K 10 --memory 4GB")
def precompute(
    dataset: options.Dataset,
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Output folder of the store, or a URL such as s3://bucket/store.",
            callback=options.validate_url,
            rich_help_panel=options.OUTPUT,
        ),
    ],
    rows: Annotated[
        str,
        typer.Option(
            metavar="ROWS",
            help="Which nodes to store: labelled or all.",
            callback=_ROWS.validate,
            autocompletion=_ROWS.complete,
            rich_help_panel=options.DATA,
        ),
    ] = "labelled",
    features: Annotated[
        str,
        typer.Option(
            metavar="SCALING",
            help="Scaling of the features: auto, row, standard or raw.",
            callback=_SCALINGS.validate,
            autocompletion=_SCALINGS.complete,
            rich_help_panel=options.DATA,
        ),
    ] = "auto",
    root: options.Root = None,
    column: options.Column = None,
    basis: Annotated[
        str,
        typer.Option(
            metavar="BASIS",
            help="Polynomial basis, such as chebyshev or 'jacobi(0.5, 1)'.",
            callback=options.validate_basis,
            autocompletion=options.BASES.complete,
            rich_help_panel=options.MODEL,
        ),
    ] = "chebyshev",
    K: Annotated[
        int,
        typer.Option(
            "--K",
            min=0,
            help="Polynomial degree. Every row stores K + 1 terms.",
            rich_help_panel=options.MODEL,
        ),
    ] = 10,
    memory: Annotated[
        str,
        typer.Option(help="Memory budget, such as 4GB.", rich_help_panel=options.EXECUTION),
    ] = "4GB",
    self_loops: Annotated[
        bool,
        typer.Option(
            "--self-loops", help="Add a self-loop to every node.", rich_help_panel=options.MODEL
        ),
    ] = False,
    lambda_max: Annotated[
        float,
        typer.Option(
            help="Assumed largest eigenvalue of the Laplacian.", rich_help_panel=options.MODEL
        ),
    ] = 2.0,
    sketch: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of columns of the adjacency sketch stored with every row; 0 stores none.",
            rich_help_panel=options.MODEL,
        ),
    ] = 0,
    two_hop: Annotated[
        int,
        typer.Option(
            "--two-hop",
            min=0,
            help="Number of columns of hashed two-hop neighbours stored with every row; 0 stores "
            "none.",
            rich_help_panel=options.MODEL,
        ),
    ] = 0,
    degree: Annotated[
        bool,
        typer.Option(
            "--degree",
            help="Store the logarithm of the degree with every row.",
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    agreement: Annotated[
        bool,
        typer.Option(
            "--agreement",
            help="Store the mean cosine between the features of a node and its neighbours with "
            "every row.",
            rich_help_panel=options.MODEL,
        ),
    ] = False,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    import_: options.Import = None,
    device: options.Device = "auto",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan without computing anything.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = False,
    dtype: Annotated[
        str,
        typer.Option(
            metavar="DTYPE",
            help="Data type on disk: float32, bfloat16 or float16.",
            callback=_DTYPES.validate,
            autocompletion=_DTYPES.complete,
            rich_help_panel=options.OUTPUT,
        ),
    ] = "float32",
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Also store the graph and the terms of all nodes, so that new nodes can be "
            "added later (nfgnn predict --extends, nfgnn serve). Implies --rows all.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Compute the polynomial terms of a graph within a memory budget and store them on disk."""
    columns = values.columns(column)
    if not is_remote(out):
        options.check_published_folder(Path(out))

    from nfgnn.progress import Progress
    from nfgnn.spectral import resolve_basis
    from nfgnn.store import Settings, local_folder, parse_memory, plan_precompute
    from nfgnn.store import precompute as compute
    from nfgnn.training import check_setting, resolve_device

    start = time.perf_counter()
    limit = parse_memory(memory)
    resolve_device(device)
    check_setting("K", K, 10)
    check_setting("lambda_max", lambda_max, 2.0)
    try:
        resolve_basis(basis)  # its parameters; the name was validated while parsing
    except ValueError as error:
        raise UserError(str(error)) from None
    if serve:
        rows = "all"
    settings = Settings(
        basis,
        K,
        limit,
        rows,
        dtype,
        features,
        self_loops,
        lambda_max,
        device,
        serve,
        sketch,
        two_hop,
        degree,
        agreement,
    )
    source = _open_source(dataset, root, limit, rows != "all", columns)
    chosen = plan_precompute(source, out, settings, engine)
    _print_plan(chosen, limit)
    if dry_run:
        if json_:
            print_json({"plan": chosen.summary()})
        return
    with (
        resumable("run the same command again to continue"),
        writing(local_folder(out)),
        Progress() as progress,
    ):
        store = compute(
            source,
            out,
            settings,
            engine=engine,
            address=ray_address,
            chosen=chosen,
            report=progress.stage,
            say=progress.say,
            overwrite=overwrite,
        )
    seconds = time.perf_counter() - start
    if json_:
        print_json(_summary(store, chosen, seconds, progress.stage_seconds))
    else:
        print(printable(f"{store.manifest.num_rows:,} rows written to {store.origin}"))


def _open_source(
    dataset: str, root: Path | None, memory: int, need_labels: bool, columns: dict[str, Any]
) -> "Source":
    """Open a graph, in memory if it is small compared with the budget, otherwise in blocks."""
    from nfgnn.cli._print import print_notes
    from nfgnn.data import held_bytes, load_dataset, loaded_bytes, open_large
    from nfgnn.store import MemorySource, resident_bytes, return_freed_memory

    return_freed_memory()
    available = max(0, memory - resident_bytes())
    if loaded_bytes(dataset, root) > available // 4:
        large = open_large(dataset, root, **columns)
        if large is not None:
            return large
    held = held_bytes(dataset, root)
    if held > available:
        raise UserError(
            f"{dataset}: is loaded as a whole and takes about {_size(held)}, but --memory "
            f"{_size(memory)} leaves {_size(available)} besides the libraries; use --memory "
            f"{math.ceil((memory - available + 2 * held) / 1e9)}GB or more"
        )
    if held > 0:
        line = f"{dataset}: loaded as a whole, about {_size(held)} of {_size(available)} available"
        console(stderr=True).print(printable(line), highlight=False, markup=False)
    data = load_dataset(dataset, root=root, need_labels=need_labels, **columns)
    print_notes(data)
    path = Path(dataset)
    return MemorySource(data, str(path.resolve()) if path.exists() else dataset)


def _print_plan(plan: "Plan", memory: int) -> None:
    """Print the plan of the computation and its resource needs to standard error."""
    from nfgnn.progress import duration

    table = Table(show_header=False, box=None)
    table.add_row(
        "graph",
        f"{plan.num_nodes:,} nodes, at most {plan.num_entries:,} entries, "
        f"{plan.num_features} features",
    )
    table.add_row("cut", _CUTS[plan.cut])
    table.add_row(
        "blocks",
        f"{plan.blocks} of {plan.width} columns, {plan.products} sparse products in total",
    )
    table.add_row("memory", f"{_size(plan.memory_bytes)} expected, {_size(memory)} allowed")
    table.add_row(
        "store",
        f"{plan.num_rows:,} rows of {plan.K + 1} × {plan.num_features} values: "
        f"{_size(plan.part_bytes['terms'])}",
    )
    if plan.graph_bytes:
        table.add_row("graph kept", f"{_size(plan.graph_bytes)} for serving")
    for name, content in _PARTS.items():
        if name in plan.part_bytes:
            label = name.replace("_", "-")
            table.add_row(label, f"{_size(plan.part_bytes[name])} of {content}")
    table.add_row("disk", f"{_size(plan.disk_bytes)} at peak, {_size(plan.free_bytes)} free")
    table.add_row("traffic", f"{_size(plan.read_bytes)} read, {_size(plan.written_bytes)} written")
    table.add_row(
        "time", f"about {duration(max(plan.seconds, 1))}, estimated from a short calibration"
    )
    console(stderr=True).print(table, highlight=False)


def _summary(
    store: "Store", plan: "Plan", seconds: float, stages: dict[str, float]
) -> dict[str, Any]:
    manifest = store.manifest
    return {
        "store": store.origin,
        "dataset": manifest.dataset,
        "rows": manifest.num_rows,
        "features": manifest.num_features,
        "K": manifest.K,
        "basis": manifest.basis,
        "dtype": manifest.dtype,
        "scaling": manifest.features,
        "seconds": seconds,
        "stages": stages,
        "plan": plan.summary(),
    }


def _size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
