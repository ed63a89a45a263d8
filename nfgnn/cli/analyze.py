"""``nfgnn analyze``: measure a graph."""

from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer
from rich.text import Text

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
        typer.Option(help="Output folder. Default: analysis/NAME.", rich_help_panel=options.OUTPUT),
    ] = None,
    models: Annotated[
        bool,
        typer.Option(
            "--models/--no-models",
            help="Cross-validate an MLP on the features and LINK on the edges. Takes about 20 "
            "seconds at most; large graphs are sampled.",
            rich_help_panel=options.EXECUTION,
        ),
    ] = True,
    overwrite: options.Overwrite = False,
    json_: options.Json = False,
) -> None:
    """Measure a graph and report whether node-specific filters may help."""
    values.columns(column)
    options.check_published_folder(out)

    from nfgnn.cli.graphs import load_graph, source_arguments
    from nfgnn.explain import analyze_graph, check_analysis_output, write_analysis
    from nfgnn.progress import Progress

    data = load_graph(dataset, root, column, need_labels=False)
    folder = out or Path("analysis") / safe_name(data.get("name") or "graph")
    with writing(folder):
        check_analysis_output(folder)
    with Progress() as progress:
        source = source_arguments(dataset, root, column)
        card = analyze_graph(data, progress.stage, models, source)
    files = write_analysis(card, folder, overwrite)
    if json_:
        print_json({**card, "files": [str(file) for file in files]})
    else:
        _print_analysis(card, files[0])


def _print_analysis(card: dict[str, Any], page: Path) -> None:
    """Print the findings, the commands to run next and the path of the page."""
    output = console()
    words = card["words"]
    title = f"{card['name']}: {card['nodes']:,} nodes, {card['edges']:,} edges"
    output.print(title, style="bold", highlight=False)
    output.print(words["summary"], highlight=False)
    for label, finding in words["findings"].items():
        output.print(Text.assemble("· ", (f"{label}: ", "bold"), finding))
    output.print(words["advice"], highlight=False)
    for step in card["commands"]:
        output.print(step["purpose"], highlight=False)
        output.print(indent(step["command"], "  "), highlight=False, soft_wrap=True, markup=False)
    output.print(f"page: {page}", highlight=False, soft_wrap=True)
