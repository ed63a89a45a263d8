"""A run as a value, and how it is trained.

:class:`RunSpec` holds what determines every number of a run: graph, protocol, seed, configuration.
:func:`train_runs` turns one or several of them into :class:`RunResult` or :class:`Failure`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn.data import load_dataset
from nfgnn.errors import DivergedError, UserError
from nfgnn.store import Store, is_store
from nfgnn.training import inputs
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.config import RunConfig
from nfgnn.training.history import OnEpoch
from nfgnn.training.masks import with_boolean_masks
from nfgnn.training.metrics import Metric, resolve_metric
from nfgnn.training.split_check import checked_split

NUMERIC_SETTINGS = frozenset(
    (
        "lr",
        "weight_decay",
        "dropout",
        "filter_lr",
        "filter_weight_decay",
        "filter_dropout",
        "input_dropout",
        "alpha",
        "label_smoothing",
        "warmup_epochs",
    )
)
"""Settings that change numbers, but neither the shape nor the cost of the computation."""
_WARM_UP_EPOCHS = 3


@dataclass(frozen=True)
class Graph:
    """The graph of a run: a name or path that every process can load, or a graph in memory.

    Args:
        source: a registered name, or the path of a graph or store.
        root: folder with raw datasets.
        options: further arguments of :func:`~nfgnn.data.load_dataset`.
    """

    source: str
    root: Path | None = None
    options: tuple[tuple[str, Any], ...] = ()
    in_memory: Data | None = field(default=None, compare=False, repr=False)
    memory_id: int = 0
    """Tells graphs in memory apart that have the same name."""

    @classmethod
    def of(cls, data: Data) -> "Graph":
        """Return a graph in memory. It is pickled for other processes."""
        name = str(data.get("name") or "graph")
        return cls(name, in_memory=data, memory_id=id(data))

    @classmethod
    def named(cls, source: str, root: Path | None = None, **options: Any) -> "Graph":
        """Return a graph that every process loads by itself."""
        return cls(source, root, tuple(options.items()))

    @property
    def data(self) -> Data:
        """The graph, loaded on first use."""
        if self.in_memory is not None:
            return self.in_memory
        return _load(self.source, self.root, json.dumps(dict(self.options), sort_keys=True))

    @property
    def name(self) -> str:
        return str(self.data.get("name") or "graph")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the content: see :func:`nfgnn.training.inputs.fingerprint`."""
        return inputs.fingerprint(self.data)


# The options are JSON, because arguments of a cached function must be hashable. Runs of one graph
# follow each other, so a few graphs suffice.
@lru_cache(maxsize=3)
def _load(source: str, root: Path | None, options: str) -> Data:
    if is_store(source):
        return Store.open(source).labels()
    return load_dataset(source, root=root, **json.loads(options))


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines the numbers of a run."""

    graph: Graph
    protocol: str
    seed: int
    config: RunConfig
    timed: bool = False
    """Whether the run measures time: alone, after a warm-up, and once per machine."""

    @property
    def label(self) -> str:
        return f"{self.config.model} on {self.graph.source} ({self.protocol}), seed {self.seed}"

    @property
    def metric(self) -> Metric:
        """The metric that the run is scored by."""
        return resolve_metric(self.config.training.metric, self.graph.data)

    def split(self) -> Data:
        """Return the graph with the masks of this run, on which its metric is defined."""
        return checked_split(self.graph.data, self.protocol, self.seed, self.metric)

    def classifier(self, device: str) -> NodeClassifier:
        """Return the classifier of this run, not fitted yet."""
        return NodeClassifier.from_config(self.config, self.seed, device)


@dataclass(frozen=True)
class RunResult:
    """A finished run: the fitted classifier and the graph with the masks of the run."""

    spec: RunSpec
    classifier: NodeClassifier
    data: Data
    batch_size: int = 1
    """Number of runs that were trained as one computation."""

    def dead_run_metrics(self) -> dict[str, int]:
        """Return ``restarts`` and ``dead`` (:mod:`nfgnn.training.dead_runs`) where they are not 0.

        Few runs have them, so they do not take columns in tables of other runs.
        """
        history = self.classifier.history_
        counts = {"restarts": history.restarts, "dead": int(history.dead)}
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class Failure:
    """A run that failed."""

    spec: RunSpec
    message: str
    diverged: bool = False
    """Whether no epoch had a finite validation loss."""

    @property
    def line(self) -> str:
        return f"{self.spec.label}: {self.message}"


Outcome = RunResult | Failure


def train_runs(
    specs: Sequence[RunSpec],
    device: str,
    on_epoch: OnEpoch | None = None,
    checkpoint: Path | None = None,
) -> list[Outcome]:
    """Train runs as one computation and return their outcomes in the same order.

    Several runs must share the graph, the protocol and the shape of the model. Invalid input and
    lack of memory become failures; every other exception is raised.

    Args:
        specs: the runs.
        device: where they are trained.
        on_epoch: called with the history of the longest run.
        checkpoint: file of an unfinished run; only for a single mini-batch run.
    """
    try:
        if specs[0].timed:
            _warm_up(specs[0], device)
        if len(specs) == 1:
            return [_train_single(specs[0], device, on_epoch, checkpoint)]
        return _train_batch(specs, device, on_epoch)
    except UserError as error:
        diverged = isinstance(error, DivergedError)
        return [Failure(spec, str(error), diverged) for spec in specs]
    except torch.OutOfMemoryError:
        name = specs[0].graph.name
        message = (
            f"{specs[0].config.model} on {name} does not fit into the GPU's memory: train on parts "
            "of the graph (--set partitions=10, or more), or on the CPU"
        )
        return [Failure(spec, message) for spec in specs]
    except (MemoryError, RuntimeError) as error:
        # Torch reports a lack of CPU memory by a RuntimeError without a type of its own.
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return [Failure(spec, "there is not enough memory") for spec in specs]


def _warm_up(spec: RunSpec, device: str) -> None:
    """Train for a few epochs, so that no kernel is compiled while the clock runs."""
    training = replace(spec.config.training, epochs=_WARM_UP_EPOCHS, restarts=0)
    short = replace(spec, config=replace(spec.config, training=training))
    _train_single(short, device, None, None)


def _train_single(
    spec: RunSpec, device: str, on_epoch: OnEpoch | None, checkpoint: Path | None
) -> RunResult:
    data = spec.split()
    classifier = spec.classifier(device).fit(data, on_epoch, checkpoint)
    return RunResult(spec, classifier, data)


def _train_batch(specs: Sequence[RunSpec], device: str, on_epoch: OnEpoch | None) -> list[Outcome]:
    classifiers = [spec.classifier(device) for spec in specs]
    graphs = [spec.split() for spec in specs]
    fit_together(classifiers, graphs, on_epoch)
    outcomes: list[Outcome] = []
    for spec, classifier, graph in zip(specs, classifiers, graphs):
        try:
            classifier.history_.raise_if_diverged()
            outcomes.append(RunResult(spec, classifier, graph, len(specs)))
        except DivergedError as error:
            outcomes.append(Failure(spec, str(error), diverged=True))
    return outcomes


def fit_together(
    classifiers: Sequence[NodeClassifier],
    graphs: Sequence[Data],
    on_epoch: OnEpoch | None = None,
) -> None:
    """Fit classifiers of the same model as one computation.

    Each has its own seed, split and numeric hyper-parameters. The result equals fitting them one
    by one, except for the random numbers of dropout. Dead runs are started again together.

    Args:
        classifiers: of one model shape.
        graphs: splits of one graph. Those of the inductive protocol differ in their nodes and are
            fitted one after the other, and so are runs on parts of the graph.
        on_epoch: called with the history of the longest run.
    """
    graphs = [with_boolean_masks(graph) for graph in graphs]
    if any(graph.get("unobserved_mask") is not None for graph in graphs):
        for classifier, graph in zip(classifiers, graphs):
            classifier.fit(graph, on_epoch)
        return
    with classifiers[0].random_state():
        for classifier, graph in zip(classifiers, graphs):
            classifier.prepare_fit(graph)
        runs = list(zip(classifiers, graphs))
        if any(classifier.config_.training.partitions for classifier in classifiers):
            for classifier, graph in runs:
                classifier.fit(graph, on_epoch)
            return
        restart = 0
        while runs:
            _fit_batch(runs, restart, on_epoch)
            restart += 1
            runs = [run for run in runs if _starts_again(run[0], restart)]


def _fit_batch(
    runs: Sequence[tuple[NodeClassifier, Data]], restart: int, on_epoch: OnEpoch | None
) -> None:
    members = []
    for classifier, graph in runs:
        if restart > 0:
            classifier.initialise(graph, restart)
        config = classifier.training_config(graph)
        members.append(Member(classifier.model_, graph.train_mask, graph.val_mask, config))
    members = _with_own_features(members, runs)
    first, graph = runs[0]
    # Every run has seeded the generator for its own weights. The dropout of the whole batch draws
    # from the seed of the first run.
    torch.manual_seed(first.start_seed(restart))
    histories = fit_batched(members, first.scaled(graph), on_epoch)
    for (classifier, graph), history in zip(runs, histories):
        classifier.finish_fit(graph, restart, history)


def _starts_again(classifier: NodeClassifier, restart: int) -> bool:
    return classifier.history_.dead and restart <= classifier.config_.training.restarts


def _with_own_features(
    members: list[Member], runs: Sequence[tuple[NodeClassifier, Data]]
) -> list[Member]:
    """Give every member its own features if their scalings differ.

    ``features = "auto"`` depends on the training nodes.
    """
    first = runs[0][0].scaling_
    if all(classifier.scaling_.equals(first) for classifier, _ in runs):
        return members
    return [
        replace(member, x=classifier.scaled(graph).x.to_dense())
        for member, (classifier, graph) in zip(members, runs)
    ]


def same_cost(config: RunConfig, other: Mapping[str, Any]) -> bool:
    """Whether an epoch of two configurations takes the same time.

    Learning rates and the like do not matter. Whether the features are dense does.
    """
    return _cost_settings(config.to_dict()) == _cost_settings(other)


def _cost_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    # The number of epochs does not matter either, because the cost is that of one epoch.
    without_cost = NUMERIC_SETTINGS | {"epochs", "patience"}
    settings = {key: value for key, value in values.items() if key not in without_cost}
    # Standardised features are dense, all others stay as sparse as they were.
    settings["features"] = values.get("features") == "standard"
    return settings
