"""Load the graph that a command names."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.cli import values
from nfgnn.cli._print import print_notes
from nfgnn.data import TableEncoding, load_dataset
from nfgnn.store import Store, is_store


def load_graph(
    dataset: str,
    root: Path | None,
    column: list[str] | None,
    need_labels: bool = True,
    encoding: TableEncoding | None = None,
) -> Data:
    """Return a graph, or the labels of a store, and print notes about it.

    Args:
        dataset: name or path.
        root: folder with raw datasets.
        column: the values of ``--column``.
        need_labels: refuse a graph without two classes.
        encoding: how a trained model encodes the columns of a table.
    """
    if is_store(dataset):
        return Store.open(dataset).labels()
    options: dict[str, Any] = values.columns(column)
    data: Data = load_dataset(
        dataset, root=root, need_labels=need_labels, encoding=encoding, **options
    )
    print_notes(data)
    return data
