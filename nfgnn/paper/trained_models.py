"""Graphs, and models trained on them, for the figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import BUILT_IN, REGISTRY, canonical_name, is_available
from nfgnn.errors import UserError
from nfgnn.nn import NFConv, PolyConv
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.progress import Progress
from nfgnn.training import (
    Graph,
    InMemory,
    InProcess,
    RecordResults,
    RunConfig,
    RunResult,
    RunSpec,
    execute,
    open_records,
    raise_first,
)

_SEMI_SUPERVISED = ("cora", "citeseer", "pubmed")
"""Graphs that the figures of the paper show under ``semi``; others are shown under ``full``."""


@dataclass(frozen=True)
class Fit:
    """What the figures need of one trained model."""

    seed: int
    accuracy: float
    """On the test nodes."""
    correct: Tensor
    """Whether each node is classified correctly, boolean ``[n]``."""
    test_mask: Tensor
    coefficients: Tensor | None
    """Ψ, ``[n, K + 1]``; ``None`` for a model without polynomial filter."""
    shared: Tensor | None
    """Γ, ``[K + 1, rank]``, of a node-oriented filter."""
    basis: str
    dead: bool = False
    """Whether the run never rose above chance."""


def _fit(result: RunResult) -> Fit:
    classifier = result.classifier
    data = result.data
    model = classifier.model_
    conv = model.filter
    correct = classifier.predict(data) == data.y
    return Fit(
        seed=result.spec.seed,
        accuracy=float(correct[data.test_mask].double().mean()),
        correct=correct,
        test_mask=data.test_mask,
        coefficients=classifier.coefficients(data) if model.has_coefficients else None,
        shared=conv.gate.gamma.detach().cpu() if isinstance(conv, NFConv) else None,
        basis=str(conv.basis) if isinstance(conv, NFConv | PolyConv) else "",
        dead=classifier.history_.dead,
    )


class TrainedModels:
    """Graphs and trained models on demand. Nothing is trained twice.

    Args:
        root: folder of raw datasets.
        runs: number of runs per model and dataset, with seeds 1000, 1001, …
        progress: the display.
        records: database of runs. Figures that only need scores take them from here, and add the
            missing runs. Without one, all runs are made.
        settings: hyper-parameters of all runs, such as ``epochs``.
    """

    def __init__(
        self,
        root: Path | None = None,
        runs: int = 5,
        progress: Progress | None = None,
        records: Path | None = None,
        **settings: Any,
    ) -> None:
        self.root = root
        self.runs = runs
        self._progress = progress or Progress("figures", quiet=True)
        self._records = records
        self._settings = settings
        self._graphs: dict[str, Graph] = {}
        self._fits = InMemory(_fit)

    def available(self, datasets: Sequence[str]) -> list[str]:
        """Return the datasets that need no download, under their canonical names."""
        names = [canonical_name(name) or name for name in datasets]
        return [
            name
            for name in names
            if name in BUILT_IN or name not in REGISTRY or is_available(REGISTRY[name], self.root)
        ]

    def graph(self, dataset: str) -> Data:
        """Return a graph."""
        return self.source(dataset).data

    def source(self, dataset: str) -> Graph:
        """Return a graph as run specifications name it."""
        if dataset not in self._graphs:
            # Figures go through the same few graphs again and again, so they stay in memory.
            self._graphs[dataset] = Graph.of(Graph.named(dataset, self.root).data)
        return self._graphs[dataset]

    def fits(self, dataset: str, model: str, runs: int | None = None, **settings: Any) -> list[Fit]:
        """Train a model in the form that the paper describes, once per seed.

        Args:
            dataset: name or path of the graph.
            model: name of the model.
            runs: number of seeds; ``self.runs`` by default.
            settings: hyper-parameters that differ from the preset.
        """
        protocol = "semi" if dataset in _SEMI_SUPERVISED else "full"
        specs = self._specs(dataset, model, protocol, runs or self.runs, settings)
        if self._fits.missing(specs):
            raise_first(execute(specs, self._fits, InProcess(), self._progress))
            for spec in specs:
                if self._fits.find(spec).dead:
                    self._progress.say(f"{spec.label}: never rose above chance")
        return [self._fits.find(spec) for spec in specs]

    def accuracies(self, dataset: str, model: str, **settings: Any) -> list[float]:
        """Return the test accuracy of every seed under ``full``, as in the tables.

        Args:
            dataset: name or path of the graph.
            model: name of the model.
            settings: hyper-parameters that differ from the preset of the paper.
        """
        specs = self._specs(dataset, model, "full", self.runs, settings)
        if self._records is None:
            raise_first(execute(specs, self._fits, InProcess(), self._progress))
            return [self._fits.find(spec).accuracy for spec in specs]
        with open_records(self._records) as records:
            raise_first(execute(specs, RecordResults(records), InProcess(), self._progress))
            found = records.find(
                specs[0].graph.fingerprint,
                "full",
                specs[0].config.to_dict(),
                [spec.seed for spec in specs],
            )
        return [found[spec.seed].metrics["test_accuracy"] for spec in specs]

    def _specs(
        self, dataset: str, model: str, protocol: str, runs: int, settings: dict[str, Any]
    ) -> list[RunSpec]:
        graph = self.source(dataset)
        options = {"select": "loss", **self._settings, **settings}
        name = graph.data.get("registered_name")
        config = RunConfig.resolve(model, options, name, protocol, "paper")
        seeds = range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + runs)
        return [RunSpec(graph, protocol, seed, config) for seed in seeds]


def shared_coefficients(fits: Sequence[Fit]) -> Tensor:
    """Return the first column of Γ of every fit, ``[fits, K + 1]``.

    With rank 1 it is the filter that all nodes share.
    """
    shared = [fit.shared for fit in fits if fit.shared is not None]
    if len(shared) < len(fits):
        raise UserError("a model without a node-oriented filter has no shared coefficients Γ")
    return torch.stack([gamma[:, 0] for gamma in shared])
