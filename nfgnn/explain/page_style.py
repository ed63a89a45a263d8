"""Common style of HTML reports: one file without scripts or external resources."""

from html import escape
from importlib import resources


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


def html_list(items: list[str]) -> str:
    """Return a bulleted list of plain texts."""
    entries = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<ul>{entries}</ul>"


def html_definitions(table: dict[str, str]) -> str:
    """Return a two-column list of labels and values."""
    pairs = [f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in table.items()]
    return f"<dl>{''.join(pairs)}</dl>"
