"""Search settings with scikit-learn: folds that are splits of a graph."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from torch_geometric.data import Data

from nfgnn.errors import UserError


class MaskSplit:
    """A cross-validator of scikit-learn whose folds are splits of a graph.

    Nodes cannot be taken out of a graph like rows of a table, because their neighbours need them.
    So a fold is a graph with masks. It is trained on ``train_mask`` and scored on ``val_mask``.
    Test nodes have no influence on the search.

    Args:
        splits: graphs with masks, for example ``[split(data, seed=s) for s in range(3)]``.

    Attributes:
        graphs: what the search is fitted on: the splits with the validation nodes in place of the
            test nodes. With ``refit=True``, the search fits the best settings on the first one.

    Example:
        >>> from sklearn.model_selection import GridSearchCV
        >>> from nfgnn import NodeClassifier, load_dataset, split
        >>> from nfgnn.training import MaskSplit
        >>> data = split(load_dataset("karate"), protocol="stratified", seed=0)
        >>> folds = MaskSplit([data])
        >>> search = GridSearchCV(NodeClassifier(epochs=20), {"K": [2, 4]}, cv=folds)
        >>> search.fit(folds.graphs).best_params_["K"] in (2, 4)
        True
    """

    def __init__(self, splits: Sequence[Data]) -> None:
        if not splits:
            raise UserError("MaskSplit needs at least one graph with masks")
        self.graphs = [_without_test_nodes(data) for data in splits]

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Yield the number of a graph, twice: it is trained on and scored by its own masks."""
        for number in range(len(self.graphs)):
            index = np.array([number])
            yield index, index

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return len(self.graphs)

    def __repr__(self) -> str:
        return f"MaskSplit({len(self.graphs)} graphs)"


def single_graph(data: Data | Sequence[Data]) -> Data:
    """Return a graph as it is, and the first one of a list, which a search passes."""
    return data if isinstance(data, Data) else data[0]


def _without_test_nodes(data: Data) -> Data:
    if data.get("train_mask") is None or data.get("val_mask") is None:
        raise UserError(
            "MaskSplit needs graphs with train_mask and val_mask: create them with "
            "nfgnn.split(data, protocol, seed)"
        )
    graph = copy(data)
    graph.test_mask = data.val_mask
    return graph
