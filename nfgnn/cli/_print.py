"""Printing that several commands share."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from nfgnn.json_text import json_text
from nfgnn.progress import PlainConsole

if TYPE_CHECKING:
    from torch_geometric.data import Data

_MOST_CLASSES = 8


def console(stderr: bool = False) -> PlainConsole:
    """Return a console that prints text without interpreting markup."""
    return PlainConsole(stderr=stderr)


def message(text: str) -> None:
    """Print a line to standard error."""
    console(stderr=True).print(text, highlight=False, soft_wrap=True)


def print_notes(data: "Data") -> None:
    """Print what was corrected while a graph was read."""
    for note in data.get("notes") or []:
        message(f"note: {note}")


def print_json(value: Any) -> None:
    """Print one JSON object to standard output."""
    print(json_text(value))


def class_counts_line(counts: Mapping[str, Sequence[int]], names: Sequence[str]) -> str:
    """Return the number of nodes of every class by part; ranges if there are many classes."""
    if len(names) <= _MOST_CLASSES:
        sizes = ["/".join(map(str, row)) for row in zip(*counts.values())]
        listed = " · ".join(f"{name}: {size}" for name, size in zip(names, sizes))
        return f"nodes per class, {'/'.join(counts)}:  {listed}"
    ranges = [f"{part} {min(sizes)} to {max(sizes)}" for part, sizes in counts.items()]
    return f"nodes in each of the {len(names)} classes:  {' · '.join(ranges)}"


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """End an interrupted command with one message and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"nfgnn: interrupted; {hint}", file=sys.stderr)
        raise typer.Exit(130) from None
