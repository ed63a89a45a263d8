"""Printing that several commands share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from torch_geometric.data import Data


def message(text: str) -> None:
    """Print a line on standard error."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)


def print_notes(data: Data) -> None:
    """Print what was corrected while a graph was read."""
    for note in data.get("notes") or []:
        message(f"note: {note}")


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """End an interrupted command with one message and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"nfgnn: interrupted; {hint}", file=sys.stderr)
        raise typer.Exit(130) from None
