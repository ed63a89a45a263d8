"""Printing that several commands share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from nfgnn.json_text import json_text
from nfgnn.progress import PlainConsole

if TYPE_CHECKING:
    from torch_geometric.data import Data


def console(stderr: bool = False) -> PlainConsole:
    """Return a console that prints texts as they are."""
    return PlainConsole(stderr=stderr)


def message(text: str) -> None:
    """Print a line on standard error."""
    console(stderr=True).print(text, highlight=False, soft_wrap=True)


def print_notes(data: "Data") -> None:
    """Print what was corrected while a graph was read."""
    for note in data.get("notes") or []:
        message(f"note: {note}")


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    print(json_text(value))


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """End an interrupted command with one message and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"nfgnn: interrupted; {hint}", file=sys.stderr)
        raise typer.Exit(130) from None
