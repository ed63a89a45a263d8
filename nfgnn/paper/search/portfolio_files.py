"""Write the portfolio of ``nfgnn auto``."""

from collections.abc import Sequence
from pathlib import Path

from nfgnn.auto import portfolio
from nfgnn.files import atomic_write
from nfgnn.paper.search.tune import toml_values
from nfgnn.training import RunConfig

SHIPPED = Path(portfolio.__file__).with_name(portfolio.SHIPPED)
_NEW_LINE = "\n"
_BY_GRAPH = ("metric", "select")


def write_portfolio(configs: Sequence[RunConfig], path: Path, notes: Sequence[str]) -> None:
    """Write configurations with all their settings, so that later defaults do not change them.

    Args:
        configs: in the order in which a search trains them.
        path: the file.
        notes: lines of the comment at its beginning.
    """
    parts = ["".join(f"# {note}\n" for note in notes)]
    for config in configs:
        settings = config.to_dict()
        chosen = {name: settings[name] for name in settings if name not in _BY_GRAPH}
        parts.append(f"[[{portfolio.TABLE}]]\n{toml_values(chosen, _NEW_LINE)}\n")
    atomic_write(path, "\n".join(parts))
