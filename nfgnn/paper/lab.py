"""What the figures need: graphs, and models trained on them.

A :class:`Lab` loads a graph or trains a model when a figure asks for it, and never twice. Reported seeds start at 1000.
The figures themselves are files of :mod:`nfgnn.paper.figures`, which also writes them:
``nfgnn reproduce figures`` or :func:`nfgnn.paper.figures.write.write_figures`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import BUILT_IN, REGISTRY, canonical_name, is_available, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier

FIRST_SEED = 1000
SEMI = ("cora", "citeseer", "pubmed")
"""Graphs on which the paper shows the semi-supervised protocol; the others are shown under ``full``."""


@dataclass(frozen=True)
class Fit:
    """One trained model and what it says of the graph."""

    seed: int
    accuracy: float
    """On the test nodes."""
    correct: Tensor
    """Whether each node is classified rightly, boolean ``[n]``."""
    test_mask: Tensor
    coefficients: Tensor | None
    """Ψ, ``[n, K + 1]``; ``None`` for a model without polynomial filter."""
    shared: Tensor | None
    """Γ, ``[K + 1, rank]``, of a node-oriented filter."""
    basis: str


class Lab:
    """Graphs and trained models on demand.

    Args:
        root: folder of raw datasets.
        runs: trainings per model and dataset, seeds 1000, 1001, …
        say: told what is being trained.
        settings: hyper-parameters that hold for all trainings, such as ``epochs``.
    """

    def __init__(
        self,
        root: Path | None = None,
        runs: int = 5,
        say: Callable[[str], None] = lambda text: None,
        **settings: Any,
    ) -> None:
        self.root, self.runs, self._say, self._settings = root, runs, say, settings
        self.graph = lru_cache(maxsize=None)(self._load)
        self._fits: dict[tuple[Any, ...], list[Fit]] = {}

    def here(self, datasets: Sequence[str]) -> list[str]:
        """Those of the datasets that can be had without a download, under their canonical names."""
        names = [canonical_name(name) or name for name in datasets]
        return [
            name
            for name in names
            if name in BUILT_IN or name not in REGISTRY or is_available(REGISTRY[name], self.root)
        ]

    def fits(self, dataset: str, model: str, runs: int | None = None, **settings: Any) -> list[Fit]:
        """The model trained on the dataset once per seed, in the form that the paper describes."""
        found = self._fits.setdefault((dataset, model, *sorted(settings.items())), [])
        runs = runs or self.runs
        found += [
            self._fit(dataset, model, FIRST_SEED + i, settings) for i in range(len(found), runs)
        ]
        return found[:runs]

    def _load(self, dataset: str) -> Data:
        return load_dataset(dataset, root=self.root)

    def _fit(self, dataset: str, model: str, seed: int, settings: dict[str, Any]) -> Fit:
        self._say(
            f"{model} on {dataset}, seed {seed}"
            + "".join(f", {k}={v}" for k, v in settings.items())
        )
        data = split(self.graph(dataset), "semi" if dataset in SEMI else "full", seed)
        options = {**self._settings, **settings}
        classifier = NodeClassifier(model, preset="paper", seed=seed, **options).fit(data)
        correct = classifier.predict(data) == data.y
        prop: Any = classifier.model_.filter
        gate = getattr(prop, "gate", None)
        return Fit(
            seed=seed,
            accuracy=float(correct[data.test_mask].double().mean()),
            correct=correct,
            test_mask=data.test_mask,
            coefficients=classifier.coefficients(data)
            if classifier.model_.has_coefficients
            else None,
            shared=None if gate is None else gate.gamma.detach().cpu(),
            basis=str(getattr(prop, "basis", "")),
        )


def shared_response_coefficients(fits: Sequence[Fit]) -> Tensor:
    """The first column of Γ of every fit, ``[fits, K + 1]``: the filter that all nodes share when the rank is 1."""
    if any(fit.shared is None for fit in fits):
        raise UserError("a model without node-oriented filter has no shared coefficients Γ")
    return torch.stack([fit.shared[:, 0] for fit in fits if fit.shared is not None])
