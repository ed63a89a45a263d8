"""Settings of ScalableNFNet that :mod:`scalable_accuracy` compares, in a fixed order per graph.

First come hand-written settings, each with different parts of a row. Random changes of them
follow.
"""

import random
from typing import Any

DATASETS = ("squirrel", "pubmed", "computers", "citeseer", "chameleon", "cora")

_COMMON: dict[str, Any] = {
    "select": "metric",
    "batch_size": 0,
    "epochs": 200,
    "patience": 60,
    "hidden_channels": 256,
}
_LOOPS = {"basis": "monomial", "self_loops": True}
_CITATIONS = {**_LOOPS, "features": "row", "hidden_channels": 128}
_WIKIPEDIA = {
    "features": "row",
    "K": 2,
    "sketch": 1024,
    "alpha": 0.9,
    "lr": 0.002,
    "weight_decay": 1e-3,
    "label_smoothing": 0.2,
}

BASES: dict[str, list[dict[str, Any]]] = {
    "cora": [
        {**_CITATIONS, "K": 4, "alpha": 0.2, "dropout": 0.6, "lr": 0.02},
        {**_CITATIONS, "K": 10, "alpha": 0.1, "dropout": 0.7, "lr": 0.02, "weight_decay": 3e-3},
    ],
    "citeseer": [
        {**_CITATIONS, "K": 4, "alpha": 0.2, "dropout": 0.6, "lr": 0.02},
        {**_CITATIONS, "K": 5, "alpha": 0.5, "dropout": 0.8, "lr": 0.005, "weight_decay": 3e-3},
    ],
    "pubmed": [
        {**_LOOPS, "features": "raw", "K": 4, "alpha": 0.5, "dropout": 0.3, "lr": 0.01},
        {**_LOOPS, "features": "standard", "K": 3, "alpha": 0.5, "lr": 0.005, "batch_norm": True},
    ],
    "computers": [
        {**_LOOPS, "features": "raw", "K": 10, "alpha": 0.9, "dropout": 0.2, "batch_norm": True},
        {"features": "standard", "K": 4, "alpha": 0.5, "lr": 0.005, "label_smoothing": 0.1},
    ],
    "chameleon": [_WIKIPEDIA, {**_WIKIPEDIA, "sketch": 2048, "hidden_channels": 512}],
    "squirrel": [
        {**_WIKIPEDIA, "hidden_channels": 512},
        {**_WIKIPEDIA, "sketch": 2048, "hidden_channels": 512, "features": "raw"},
    ],
}
"""Hand-written settings of every graph."""

PARTS: list[dict[str, Any]] = [
    {},
    {"attention": 2},
    {"degree": True, "agreement": True},
    {"two_hop": 1024},
    {"attention": 2, "degree": True, "agreement": True, "two_hop": 1024},
    {"sketch": 1024, "sketch_dropout": 0.5, "attention": 2},
]

SPACE: dict[str, list[Any]] = {
    "K": [2, 3, 4, 6, 10],
    "features": ["row", "standard", "raw"],
    "alpha": [0.1, 0.2, 0.5, 0.9],
    "hidden_channels": [64, 128, 256, 512],
    "num_layers": [2, 3],
    "dropout": [0.2, 0.5, 0.6, 0.8],
    "batch_norm": [False, True],
    "sketch": [0, 1024, 2048],
    "two_hop": [0, 1024, 2048],
    "sketch_dropout": [0.2, 0.5, 0.7],
    "degree": [False, True],
    "agreement": [False, True],
    "attention": [0, 1, 2, 4],
    "lr": [0.002, 0.005, 0.01, 0.02],
    "weight_decay": [0.0, 1e-4, 1e-3, 3e-3],
    "label_smoothing": [0.0, 0.1, 0.2],
    "batch_size": [0, 1024],
}
"""Values that random changes choose from."""


def candidates(dataset: str, count: int) -> list[dict[str, Any]]:
    """Return the first candidates for a graph."""
    found = []
    for base in BASES[dataset]:
        for parts in PARTS:
            found.append({**_COMMON, **base, **parts})
    rng = random.Random(dataset)
    while len(found) < count:
        settings = {**_COMMON, **rng.choice(BASES[dataset]), **rng.choice(PARTS)}
        for key in rng.sample(sorted(SPACE), 4):
            settings[key] = rng.choice(SPACE[key])
        if settings not in found:
            found.append(settings)
    return found[:count]
