"""The figures, one file each: data first, then ink.

A file of this folder is a figure if it has ``DATASETS`` (what it shows unless told otherwise), ``rows(lab, datasets)``,
which asks a :class:`~nfgnn.paper.lab.Lab` for graphs and trained models and gives plain data, and
``draw(rows)``, which turns that data, fresh or read from JSON, into a matplotlib figure. Its name is the file's, and
nothing else is to be done for ``nfgnn reproduce figures`` to make it. ``write.py`` writes the files.
"""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from nfgnn.errors import UserError


@lru_cache(maxsize=1)
def figures() -> dict[str, Any]:
    """All figures by name."""
    modules = {
        info.name: import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__)
    }
    return {name: module for name, module in sorted(modules.items()) if hasattr(module, "rows")}


def find_figure(name: str) -> Any:
    """The module of a figure."""
    known = figures()
    key = name.replace("-", "_")
    if key not in known:
        raise UserError(f"there is no figure '{name}': choose one of {', '.join(known)}")
    return known[key]
