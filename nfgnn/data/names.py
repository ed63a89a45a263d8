"""Names of features and classes, which users may set as any sequence."""

from collections import Counter
from collections.abc import Sequence

from torch_geometric.data import Data

from nfgnn.errors import UserError


def names_of(data: Data, key: str) -> list[str] | None:
    """Return the names of features or classes, which may be any sequence, as a list of text."""
    names = data.get(key)
    return None if names is None else [str(name) for name in names]


def class_names_of(data: Data) -> list[str]:
    """Return the names of the classes, or their numbers if they have no names."""
    names = names_of(data, "class_names")
    return names or [str(c) for c in range(int(data.y.max()) + 1)]


def check_feature_names(names: Sequence[str] | None, num_features: int, where: str) -> None:
    """Refuse names that are not as many as the features. No names at all are valid.

    Args:
        names: names of the features.
        num_features: number of features.
        where: the graph, for the error message.
    """
    if names and len(names) != num_features:
        raise UserError(
            f"{where}: `feature_names` has {len(names)} names for {num_features} features; give "
            "every feature one name, or remove `feature_names`"
        )


def repeated_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, in the order of their first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]
