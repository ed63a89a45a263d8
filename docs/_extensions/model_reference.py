"""The registered models: a table of what they support, and their formulas and settings."""

import inspect
import re

import nfgnn
from nfgnn.nn.models import MODELS, ModelEntry


def models() -> str:
    """Return a table of all models, then one section per model."""
    entries = sorted(MODELS.values(), key=lambda entry: entry.name.lower())
    lines = [
        "| model | year | cost of a pass | rows in batches | many seeds at once | new graphs |",
        "|---|---|---|:-:|:-:|:-:|",
        *(_row(entry) for entry in entries),
        "",
    ]
    return "\n".join([*lines, *(_section(entry) for entry in entries)])


def _row(entry: ModelEntry) -> str:
    support = (entry.mini_batch, entry.model.batchable, not entry.model.weights_per_node)
    marks = " | ".join("✓" if supported else "–" for supported in support)
    link = f"[`{entry.name}`](#{entry.name.lower()})"
    return f"| {link} | {entry.year} | {_cost(entry)} | {marks} |"


def _cost(entry: ModelEntry) -> str:
    """Return the cost with its formulas as mathematics."""
    parts = entry.complexity.replace("²", "^2").split(", once ")
    return ", once ".join(f"${part}$" for part in parts)


def _section(entry: ModelEntry) -> str:
    model = entry.model
    # The API page has the entries of these names in the index.
    is_in_api = entry.name in nfgnn.__all__
    options = "   :no-members:\n" + "   :no-index:\n" * is_in_api
    name = f"{model.__module__}.{model.__qualname__}"
    return (
        f"\n## {entry.name}\n\n*{_escaped(entry.title)}*, {entry.year}\n\n"
        f"{_settings(entry)}\n\n"
        "```{eval-rst}\n"
        f".. autoclass:: {name}(in_channels, out_channels, **settings)\n{options}```\n"
    )


def _settings(entry: ModelEntry) -> str:
    """Return the settings with their defaults, in one line."""
    parameters = inspect.signature(entry.model).parameters.values()
    settings = [
        f"`{parameter.name}={parameter.default}`"
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty and parameter.name != "num_nodes"
    ]
    return f"**Settings:** {', '.join(settings)}" if settings else "**Settings:** none"


def _escaped(text: str) -> str:
    return re.sub(r"([*_$<])", r"\\\1", text)
