"""Common style of HTML reports: one file without scripts or external resources."""

from html import escape

_STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --card: #f4f6f8; --line: #d0d7de;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa5b1; --paper: #0f1318; --card: #171c23; --line: #303842; }
  figure svg { filter: brightness(1.4); }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { margin: .5rem 0; font-size: 1.6rem; }
h2 { margin: 1.6rem 0 .6rem; font-size: 1.15rem; }
.summary { font-size: 1.1rem; }
.soft { color: var(--soft); }
.grid {
  display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
}
.pictures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.tall { grid-row: span 2; }
figure, .numbers {
  margin: 0; padding: .8rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem;
}
figure svg { display: block; width: 100%; height: auto; max-width: 34rem; margin: auto; }
figcaption { margin-top: .4rem; font-size: .9rem; color: var(--soft); }
dl { margin: 0; display: grid; grid-template-columns: 1fr auto; gap: .15rem 1rem; }
dt { color: var(--soft); }
dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
li { margin: .35rem 0; }
"""


def html_page(title: str, body: str) -> str:
    """Return a page for light and dark schemes and any screen width; ``body`` is HTML."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
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
