"""``load_dataset``: whatever the user has, turned into one checked graph."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.datasets.check import check_graph
from nfgnn.datasets.mixed import mixed_graph
from nfgnn.datasets.places import find
from nfgnn.datasets.registry import REGISTRY, canonical
from nfgnn.errors import UserError


def load_dataset(source: Any = "mixed", root: str | Path | None = None, **options: Any) -> Data:
    """Load a graph."""
    name = canonical(source)
    if name == "mixed":
        return mixed_graph(**options)
    if name == "karate":
        from torch_geometric.datasets import KarateClub

        return check_graph(KarateClub()[0], name="karate")
    entry = REGISTRY[name]
    folder = find(entry, root)
    if folder is None:
        raise UserError(f"{name} is not here")
    return check_graph(entry.reader(entry, folder), name=name, metric=entry.metric)
