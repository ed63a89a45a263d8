"""Load the graph that a command names."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.cli import values
from nfgnn.cli._print import print_notes
from nfgnn.data import load_dataset
from nfgnn.store import Store, is_store


def load_graph(
    dataset: str, root: Path | None, column: list[str] | None, need_labels: bool = True
) -> Data:
    """Return a graph, or the labels of a store, and print notes about it."""
    if is_store(dataset):
        return Store.open(dataset).labels()
    options: dict[str, Any] = values.columns(column)
    data: Data = load_dataset(dataset, root=root, need_labels=need_labels, **options)
    print_notes(data)
    return data
