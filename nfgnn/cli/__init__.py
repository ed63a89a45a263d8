"""The command line: one module per command, which parses, calls the library and prints.

Commands import torch and the library inside their function, so that ``nfgnn --help`` and shell
completion stay fast.
"""

import os
import sys
from typing import Annotated

import typer

from nfgnn.cli import (
    analyze,
    datasets,
    explore,
    models,
    precompute,
    predict,
    reproduce,
    train,
    tune,
)
from nfgnn.errors import UserError

app = typer.Typer(
    name="nfgnn",
    help="Node-oriented spectral filtering for graph neural networks: every node learns its own "
    "filter.",
    epilog="Start with:  nfgnn train   ·   then:  nfgnn train texas --root DATA --runs 5",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    train,
    predict,
    explore,
    analyze,
    datasets,
    models,
    tune,
    reproduce,
    precompute,
):
    app.add_typer(command.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from nfgnn import __version__

        print(f"nfgnn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run a command. Invalid input exits with status 2 and one message that explains the fix."""
    try:
        app()
    except UserError as error:
        # One of the processes that torchrun has started is enough to print it.
        if os.environ.get("RANK", "0") == "0":
            print(f"nfgnn: {error}", file=sys.stderr)
        sys.exit(2)
