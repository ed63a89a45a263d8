"""``nfgnn analyze``: measure a graph."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nfgnn.cli import options, values
from nfgnn.cli._print import console, print_json
from nfgnn.errors import writing
from nfgnn.files import safe_name

app = typer.Typer()


@app.command(
    epilog="Example:  nfgnn analyze texas --root DATA   ·   nfgnn analyze my-graph/ --out report",
)
def analyze(
    dataset: options.Dataset,
    root: options.Root = None,
    column: options.Column = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write. Default: analysis/NAME.", rich_help_panel=options.OUTPUT
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Measure homophily and spectrum of a graph and report whether node-wise filters may help."""
    values.columns(column)
    options.check_published_folder(out)

    from nfgnn.cli.graphs import load_graph
    from nfgnn.explain import analyze_graph, check_analysis_output, write_analysis
    from nfgnn.progress import Progress

    data = load_graph(dataset, root, column, need_labels=False)
    folder = out or Path("analysis") / safe_name(data.get("name") or "graph")
    with writing(folder):
        check_analysis_output(folder)
    with Progress() as progress:
        card = analyze_graph(data, progress.stage)
    files = write_analysis(card, folder, overwrite)
    if json_:
        print_json({**card, "files": [str(file) for file in files]})
    else:
        _print_analysis(card, files[0])


def _print_analysis(card: dict[str, Any], page: Path) -> None:
    """Print the findings, and the path of the page."""
    output = console()
    findings = card["words"]
    title = f"{card['name']}: {card['nodes']:,} nodes, {card['edges']:,} edges"
    output.print(title, style="bold", highlight=False)
    reasons = [f"· {reason}" for reason in findings["reasons"]]
    for sentence in (findings["summary"], *reasons, findings["advice"]):
        output.print(sentence, highlight=False)
    output.print(f"page: {page}", highlight=False)
