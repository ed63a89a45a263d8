"""Common style of HTML reports: one file without scripts or external resources."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources


@dataclass(frozen=True)
class Bar:
    """A labelled share, drawn as a horizontal bar."""

    label: str
    value: float | None
    """From 0 to 1; ``None`` is not drawn."""
    colour: str
    """Class of the style sheet."""


@dataclass(frozen=True)
class Tile:
    """One of the main results at the top of a report."""

    label: str
    value: str
    beside: str
    """What the value is compared with, in small letters."""
    text: str
    bars: Sequence[Bar] = ()


def html_page(title: str, body: str) -> str:
    """Return a page with the style of ``report.css``; ``body`` is HTML."""
    style = (resources.files(__package__) / "report.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def html_text(text: str) -> str:
    """Return a plain text as HTML, with text between backticks as code.

    Lines do not break before a percent sign or inside an equation.
    """
    html = escape(text)
    for sign in (" %", " = ", " ± "):
        html = html.replace(sign, sign.replace(" ", "&nbsp;"))
    return re.sub("`([^`]+)`", r"<code>\1</code>", html)


def html_list(items: list[str]) -> str:
    """Return a bulleted list of plain texts."""
    entries = "".join(f"<li>{html_text(item)}</li>" for item in items)
    return f"<ul>{entries}</ul>"


def html_labelled_list(items: Mapping[str, str]) -> str:
    """Return a list of plain texts, each after its label in bold letters."""
    entries = []
    for label, text in items.items():
        entries.append(f"<li><strong>{escape(label)}.</strong> {html_text(text)}</li>")
    return f'<ul class="labelled">{"".join(entries)}</ul>'


def html_definitions(table: dict[str, str]) -> str:
    """Return a two-column list of labels and values."""
    pairs = [f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in table.items()]
    return f"<dl>{''.join(pairs)}</dl>"


def html_tiles(tiles: Sequence[Tile]) -> str:
    """Return tiles side by side, or below each other on a narrow screen."""
    if not tiles:
        return ""
    return f'<div class="tiles">{"".join(_tile(tile) for tile in tiles)}</div>'


def html_commands(commands: Sequence[Mapping[str, str]]) -> str:
    """Return commands to copy, each with its ``purpose`` and ``command``."""
    entries = []
    for entry in commands:
        purpose = escape(entry["purpose"])
        # Browsers break lines after a hyphen. An element per word keeps options in one piece.
        command = re.sub(r"(\S+)", r"<span>\1</span>", escape(entry["command"]))
        entries.append(f"<div><p>{purpose}</p><pre>{command}</pre></div>")
    return f'<div class="pairs">{"".join(entries)}</div>'


def _tile(tile: Tile) -> str:
    bars = "".join(_bar(bar) for bar in tile.bars if bar.value is not None)
    meters = f'<div class="meters">{bars}</div>' if bars else ""
    return (
        f'<section class="tile"><h2>{escape(tile.label)}</h2>'
        f'<p class="value">{html_text(tile.value)} <small>{html_text(tile.beside)}</small></p>'
        f"{meters}<p>{html_text(tile.text)}</p></section>"
    )


def _bar(bar: Bar) -> str:
    assert bar.value is not None
    width = 100 * min(1.0, max(0.0, bar.value))
    return (
        f"<span>{escape(bar.label)}</span>"
        f'<span class="track {bar.colour}"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="percent">{100 * bar.value:.0f}&nbsp;%</span>'
    )
