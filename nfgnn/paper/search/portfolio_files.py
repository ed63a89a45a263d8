"""The file of a portfolio as text."""

from collections.abc import Sequence

from nfgnn.auto import PORTFOLIO_TABLE
from nfgnn.paper.search.tune import toml_values
from nfgnn.training import RunConfig

_NEW_LINE = "\n"
_BY_GRAPH = ("metric", "select")


def portfolio_text(configs: Sequence[RunConfig], notes: Sequence[str]) -> str:
    """Return configurations with all their settings, so that later defaults do not change them.

    Args:
        configs: in the order in which a search trains them.
        notes: lines of the comment at the beginning.
    """
    parts = ["".join(f"# {note}\n" for note in notes)]
    for config in configs:
        settings = config.to_dict()
        chosen = {name: settings[name] for name in settings if name not in _BY_GRAPH}
        parts.append(f"[[{PORTFOLIO_TABLE}]]\n{toml_values(chosen, _NEW_LINE)}\n")
    return "\n".join(parts)
