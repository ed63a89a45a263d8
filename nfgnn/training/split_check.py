"""Whether the parts of a split can be scored, and what a constant prediction scores on them."""

import math
from collections.abc import Mapping, Sequence

from torch_geometric.data import Data

from nfgnn.data import few, names_of, split
from nfgnn.errors import UserError
from nfgnn.training.metrics import ACCURACY, Metric, count_classes, parts

PARTS = {
    "train": "training",
    "val": "validation",
    "test": "test",
    "observed": "observed test",
    "unobserved": "unobserved test",
}
"""Parts of a split as messages name them."""


def checked_split(data: Data, protocol: str, seed: int, metric: Metric) -> Data:
    """Split a graph and refuse a split that the metric cannot score.

    The metric must be defined on the validation nodes and on the test nodes.
    """
    out = split(data, protocol, seed)
    undefined = _undefined_parts(out, metric)
    if undefined:
        name = data.get("name") or "the graph"
        raise UserError(
            f"{name}: under the protocol '{protocol}' (seed {seed}) {_reason(out, undefined)}, so "
            f"{metric.title} is not defined: {_remedy(data, protocol, seed, metric)}"
        )
    return out


def class_counts(data: Data) -> dict[str, list[int]]:
    """Return the number of nodes of every class in every part of a split graph."""
    tests = ["test"] if data.get("unobserved_mask") is None else ["observed", "unobserved"]
    masks = parts(data)
    found = {}
    for part in ("train", "val", *tests):
        labels = data.y[masks[part]] if part in masks else data.y[:0]
        found[part] = count_classes(labels, data.num_classes)
    return found


def class_names(data: Data) -> list[str]:
    """Return the names of the classes, their numbers if they have none."""
    return names_of(data, "class_names") or [str(c) for c in range(data.num_classes)]


def missing_classes(
    counts: Mapping[str, Sequence[int]], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return for each of the validation and test parts the classes that it has no node of.

    Args:
        counts: of :func:`class_counts`.
        names: names of the classes.
    """
    found = {}
    for part, sizes in counts.items():
        missing = [name for name, size in zip(names, sizes) if size == 0]
        if missing and part != "train":
            found[part] = missing
    return found


def majority_scores(data: Data, metric: Metric) -> dict[str, float]:
    """Return the scores of the best constant prediction, with the keys of ``scores``.

    It predicts the same probabilities for every node of a part: the shares of the classes in that
    part. Its accuracy is the share of the largest class, its ROC-AUC is 0.5.
    """
    measures = [ACCURACY] if metric == ACCURACY else [ACCURACY, metric]
    found = {}
    for part, nodes in parts(data).items():
        y = data.y[nodes]
        counts = y.bincount(minlength=data.num_classes).double()
        constant = (counts / counts.sum()).expand(len(y), -1)
        for measure in measures:
            value = measure.compute(constant, y, data.num_classes)
            if not math.isnan(value):
                found[f"{part}_{measure.name}"] = value
    return found


def _undefined_parts(data: Data, metric: Metric) -> list[str]:
    counts = class_counts(data)
    scored = [part for part in counts if part != "train"]
    return [part for part in scored if metric.undefined(counts[part]) is not None]


def _reason(data: Data, undefined: Sequence[str]) -> str:
    """Return what the parts lack, such as "validation and test have no node of class 'fraud'"."""
    counts = class_counts(data)
    where = " and ".join(PARTS[part] for part in undefined)
    have = "has" if len(undefined) == 1 else "have"
    if any(sum(counts[part]) == 0 for part in undefined):
        return f"{where} {have} no labelled node"
    missing = missing_classes({part: counts[part] for part in undefined}, class_names(data))
    listed = list(dict.fromkeys(name for names in missing.values() for name in names))
    return f"{where} {have} no node of class {few(listed)}"


def _remedy(data: Data, protocol: str, seed: int, metric: Metric) -> str:
    """Return what to change: a protocol that the metric can score, if there is one."""
    for other in ("public", "stratified"):
        if other != protocol and _is_defined(data, other, seed, metric):
            return f"use the protocol '{other}'"
    sizes = count_classes(data.y, data.num_classes)
    small = [name for name, size in zip(class_names(data), sizes) if size < 3]
    if small:
        return (
            f"each class needs three labelled nodes or more; label more nodes of class "
            f"{few(small)}, or choose the metric 'accuracy'"
        )
    return "choose the metric 'accuracy'"


def _is_defined(data: Data, protocol: str, seed: int, metric: Metric) -> bool:
    try:
        return not _undefined_parts(split(data, protocol, seed), metric)
    except UserError:  # the graph comes without a split
        return False
