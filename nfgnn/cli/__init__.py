"""The command line. One module per command parses the options, calls the library and prints.

Commands import torch and the library inside their function, so that ``nfgnn --help`` and shell
completion stay fast.
"""

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nfgnn.cli import (
    analyze,
    auto,
    datasets,
    explore,
    models,
    precompute,
    predict,
    reproduce,
    serve,
    train,
    tune,
    verify,
)
from nfgnn.cli.crash_report import write_crash_report
from nfgnn.errors import UserError, system_error, writing

app = typer.Typer(
    name="nfgnn",
    help="Node-oriented spectral filtering for graph neural networks: every node learns its own "
    "filter.",
    epilog="Start with:  nfgnn train   ·   then, for your own graph:  nfgnn auto my-graph/",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    train,
    auto,
    predict,
    serve,
    explore,
    analyze,
    datasets,
    models,
    tune,
    reproduce,
    precompute,
    verify,
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
    """Run a command and exit.

    Invalid input, and files that cannot be read or written, exit with status 2 and a message that
    explains the fix. An interruption exits with status 130. Any other error exits with status 1
    and prints the path of a crash report. With ``NFGNN_DEBUG=1`` errors are raised, so that Python
    prints the traceback.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files need not be valid Unicode, and not every terminal shows all of it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            _flush_output()
    except Exception as error:
        if os.environ.get("NFGNN_DEBUG") == "1":
            raise
        sys.exit(_report(error))


def _flush_output() -> None:
    """Flush standard output, so that a full disk is reported like any other error."""
    if sys.stdout is None:  # closed by the caller
        return
    try:
        with writing(Path("the standard output")):
            sys.stdout.flush()
    except (OSError, UserError):
        # Python would try again when it exits.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        raise


def _report(error: Exception) -> int:
    """Print one line about an error and return the exit status."""
    if isinstance(error, BrokenPipeError):  # the reader of the output has ended
        return 1
    if isinstance(error, OSError) and error.errno is not None:
        error = system_error(error)
    elif isinstance(error, MemoryError):
        error = UserError(
            "not enough memory: use a smaller graph, a smaller model or a lower --memory"
        )
    if isinstance(error, UserError):
        # One of the processes that torchrun has started is enough to print it.
        if os.environ.get("RANK", "0") == "0":
            print(f"nfgnn: {error}", file=sys.stderr)
        return 2
    report = write_crash_report(error)
    summary = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    where = f"the crash report is {report}"
    if report is None:
        where = "the crash report could not be written; set NFGNN_DEBUG=1 to print the traceback"
    print(f"nfgnn: unexpected error ({summary}); please report it: {where}", file=sys.stderr)
    return 1
