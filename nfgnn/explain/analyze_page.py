"""The page of an analysis: one HTML file without scripts or outside resources, light and dark, for any screen."""

from html import escape
from typing import Any

from nfgnn.explain.figure_style import inline_svg, title

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --card: #f4f6f8; --line: #d0d7de; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa5b1; --paper: #0f1318; --card: #171c23; --line: #303842; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 68rem; background: var(--paper); color: var(--ink);
       font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: .5rem 0; font-size: 1.6rem; } h2 { margin: 1.6rem 0 .6rem; font-size: 1.15rem; }
.summary { font-size: 1.1rem; } .soft { color: var(--soft); }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure, .numbers { margin: 0; padding: .8rem; background: var(--card); border: 1px solid var(--line);
                   border-radius: .5rem; }
.pictures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); } .tall { grid-row: span 2; }
figure svg { display: block; width: 100%; height: auto; max-width: 34rem; margin: auto; }
figcaption { margin-top: .4rem; font-size: .9rem; color: var(--soft); }
dl { margin: 0; display: grid; grid-template-columns: 1fr auto; gap: .15rem 1rem; } dt { color: var(--soft); }
dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
li { margin: .35rem 0; }
@media (prefers-color-scheme: dark) { figure svg { filter: brightness(1.4); } }
"""
_CAPTIONS = {
    "homophily_histograms": "Share of neighbours of a node's own class (h) and entropy of the classes around it (S), "
    "over all nodes, for direct neighbours and within two hops. Vertical lines are means.",
    "degrees": "Number of links of a node, in bins that double; both axes logarithmic.",
    "spectrum": "Eigenvalues λ of the normalised Laplacian: the frequencies that a filter can tell apart.",
}
_SPREAD = {
    "deviation": "standard deviation of h",
    "by_chance": "by chance alone",
    "correlation": "beyond chance: ρ",
    "correlation_error": "standard error of ρ",
    "above_half": "share of nodes with h > ½",
    "below_chance": "share of nodes with h below chance",
}


def page(card: dict[str, Any], figures: dict[str, Any]) -> str:
    """The HTML text; ``figures`` are the drawn figures by name."""
    name, said = escape(title(card["name"]).replace("\\$", "$")), card["words"]
    drawn = "".join(_figure(key, figures[key]) for key in _CAPTIONS if key in figures)
    reasons = "".join(f"<li>{escape(sentence)}</li>" for sentence in said["reasons"])
    notes = "".join(f"<li>{escape(note)}</li>" for note in card["notes"])
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: analysis of the graph</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{name}</h1>
<p class="summary">{escape(said["summary"])}</p>
<p class="soft">{escape(said["advice"])}</p>
<h2>Why</h2>
<ul>{reasons}</ul>
<h2>Pictures</h2>
<div class="grid pictures">{drawn}</div>
<h2>Numbers</h2>
<div class="grid">{_numbers(card)}</div>
{f"<h2>Notes from loading</h2><ul>{notes}</ul>" if notes else ""}
<p class="soft">Made by nfgnn analyze. All numbers are in analysis.json; the figures are beside this page as PNG, PDF
and SVG.</p>
</main>
</body>
</html>
"""


def _figure(key: str, figure: Any) -> str:
    caption = escape(_CAPTIONS[key])
    tall = ' class="tall"' if key == "homophily_histograms" else ""
    return f"<figure{tall}>{inline_svg(figure, caption)}<figcaption>{caption}</figcaption></figure>"


def _numbers(card: dict[str, Any]) -> str:
    sizes = {
        key: f"{card[key]:,}"
        for key in ("nodes", "edges", "features", "classes", "unlabelled", "isolated", "components")
    }
    tables = [sizes]
    if "homophily" in card:
        measures = {
            f"{key.replace('_', '-')} homophily": value for key, value in card["homophily"].items()
        }
        tables.append(
            {
                **_rounded(measures),
                **_rounded({"label informativeness": card["label_informativeness"]}),
            }
        )
        tables.append(_rounded({label: card["spread"][key] for key, label in _SPREAD.items()}))
    if card["class_names"]:
        largest = sorted(
            zip(card["class_names"], card["class_sizes"]), key=lambda entry: -entry[1]
        )[:12]
        tables.append(
            {f"class {name}" if name.isdigit() else name: f"{size:,}" for name, size in largest}
        )
    return "".join(f'<div class="numbers"><dl>{_pairs(table)}</dl></div>' for table in tables)


def _pairs(table: dict[str, str]) -> str:
    return "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in table.items()
    )


def _rounded(values: dict[str, float | None]) -> dict[str, str]:
    return {key: "–" if value is None else f"{value:.3f}" for key, value in values.items()}
