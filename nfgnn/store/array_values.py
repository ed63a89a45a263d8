"""Check values of a store that other arrays are indexed with, or that a product would spread."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from nfgnn.errors import UserError
from nfgnn.store.manifest import Manifest
from nfgnn.store.stored_ids import StoredIds

REMEDY = "precompute the store again, or restore the file from a copy"
_SCALES = (1e-150, 1e150)  # of degrees that float64 can hold
_SAMPLE = 64  # ids that are compared
_OTHERS = {"id_start": "id_text", "indptr": "indices"}
Arrays = Callable[[str], np.ndarray]
"""Returns an array of the store by its name."""


def check_values(
    name: str, array: np.ndarray, path: Path, manifest: Manifest, map_: Arrays
) -> None:
    """Refuse an array with values that no store has.

    Args:
        name: its name.
        array: its values.
        path: its file, for the message.
        manifest: of the store.
        map_: returns other arrays.
    """
    problem = None
    if name == "y" and (array.min() < -1 or array.max() >= manifest.num_classes):
        problem = f"has labels outside of the {manifest.num_classes} classes"
    elif name in _OTHERS and not _are_starts(array, map_(_OTHERS[name])):
        problem = f"does not fit {_OTHERS[name]}.npy"
    elif name == "id_order":
        problem = _order_problem(array, map_)
    elif name == "weight" and len(array) != len(map_("indices")):
        problem = "does not fit indices.npy"
    elif name in ("scale", "weight") and len(array) > 0:
        problem = _size_problem(name, array)
    elif name == "nodes":
        inside = array[0] >= 0 and array[-1] < manifest.num_nodes
        if not inside or bool((array[1:] <= array[:-1]).any()):
            problem = "does not hold nodes of the graph in ascending order"
    if problem:
        raise UserError(f"{path}: {problem}; {REMEDY}")


def _are_starts(start: np.ndarray, values: np.ndarray) -> bool:
    """Whether an array divides another one into ranges."""
    fits = start[0] == 0 and start[-1] == len(values)
    return bool(fits) and not bool((start[1:] < start[:-1]).any())


def _order_problem(order: np.ndarray, map_: Arrays) -> str | None:
    if order.min() < 0 or order.max() >= len(order):
        return "does not hold rows of the store"
    seen = np.zeros(len(order), dtype=bool)
    seen[order] = True
    ids = StoredIds(map_("id_text"), map_("id_start"), order)
    places = np.linspace(0, len(order) - 1, min(len(order), _SAMPLE)).astype(int)
    texts = [ids.encoded(row) for row in order[places].tolist()]
    if not seen.all() or any(one >= next_ for one, next_ in pairwise(texts)):
        return "does not hold the order of the ids"
    return None


def _size_problem(name: str, array: np.ndarray) -> str | None:
    if not (array.min() >= 0 and np.isfinite(array.max())):
        return "has values that are negative or not finite"
    if name == "scale":
        smallest = np.min(array, where=array > 0, initial=np.inf)
        if smallest < _SCALES[0] or array.max() > _SCALES[1]:
            return "has values that no degrees have"
    return None
