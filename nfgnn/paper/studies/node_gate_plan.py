"""The plan of the study of node gates: graphs, networks, draws and seeds.

``docs/studies/node-gates.md`` states the same plan in words, with the reasons.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nfgnn.data import REGISTRY
from nfgnn.errors import unknown_name
from nfgnn.nn import HEAD_GATES
from nfgnn.paper.find_graph import find_fingerprint, find_graph
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.training import Graph, Records, RunConfig

NETWORK = "NFNet"
NONE = "none"
"""The network without a gate, with which every gate is compared."""
MLP = "MLP"
"""The reference for accuracy by local homophily."""
CONFIRMATORY = ("term", "agreement", "attention", "cluster")
"""Gates that can decide the verdict. Gates that were added after the first run are exploratory."""

FEW_SEEDS = range(3)
"""Search seeds of all draws."""
SEARCH_SEEDS = range(5)
"""Search seeds of the finalists."""
REPORT_SEEDS = range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + 10)
"""Seeds of the report runs, which no choice uses."""
FINALISTS = 2
DRAWS_PER_STRUCTURE = 3
LAYERS = (2, 4, 8, 12)
"""The numbers of layers. There is one structure of each."""
STRUCTURES: dict[str, tuple[Any, ...]] = {
    "hidden_channels": (64, 128),
    "K": (1, 2, 3),
    "basis": ("monomial", "chebyshev"),
    "operator": ("symmetric", "mean"),
    "heads": (4, 8),
    "features": ("auto", "row", "standard"),
}
"""Settings that are drawn once per structure."""
NUMBERS: dict[str, tuple[float, ...]] = {
    "lr": (0.0003, 0.001, 0.003, 0.01),
    "weight_decay": (0.0, 0.00005, 0.0005),
    "dropout": (0.2, 0.3, 0.5, 0.7),
}
"""Settings that are drawn for every configuration. Runs that differ in nothing else are trained as
one computation."""
TRAINING = {"epochs": 2000, "patience": 200, "select": "metric", "precision": "auto"}
_MLP_SETTINGS = ("hidden_channels", "features", *NUMBERS)

MODERN = "modern"
CLASSICAL = "classical"
GENERATED = "generated"
_SHIFTS = ("homophily-high-to-low", "homophily-low-to-high")

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class StudyGraph:
    """A graph of the study, or a kind of generated graphs."""

    name: str
    group: str
    protocol: str
    """How its nodes are split."""
    shifts: tuple[str, ...] = ()
    """Protocols with a shift of homophily that it is reported under, too."""
    family: str = ""
    """Graphs of one family count once in the verdict; by default a graph of its own."""
    crossing: float = 0.0
    """Share of the edges between the patterns of a generated graph."""
    shortened: bool = False
    """Whether all draws are compared by the first search seeds alone, without finalists, and only
    half of the report seeds are run. ``docs/studies/node-gates.md`` says why."""

    @property
    def search_seeds(self) -> range:
        """Search seeds of the finalists."""
        return FEW_SEEDS if self.shortened else SEARCH_SEEDS

    @property
    def report_seeds(self) -> range:
        """Seeds of the report runs."""
        return REPORT_SEEDS[: len(REPORT_SEEDS) // 2] if self.shortened else REPORT_SEEDS

    @property
    def is_generated(self) -> bool:
        return self.group == GENERATED

    @property
    def dataset(self) -> str:
        """Name of the data set; the generated graphs have one in common."""
        return "mixed" if self.is_generated else self.name

    @property
    def metric(self) -> str:
        """Name of the official metric."""
        return "accuracy" if self.is_generated else REGISTRY[self.name].metric

    @property
    def title(self) -> str:
        if not self.is_generated:
            return REGISTRY[self.name].title
        return f"mixed, {100 * self.crossing:.0f} % crossing"

    def graph(self, seed: int, root: Path | None) -> Graph:
        """Return the graph of a seed. Only generated graphs differ between seeds."""
        if self.is_generated:
            return _generated_graph(self.dataset, seed, self.crossing)
        return find_graph(self.dataset, root)

    def fingerprint(self, seed: int, records: Records, root: Path | None) -> str | None:
        """Return the fingerprint of the graph of a seed.

        Without the files of a real graph, it is that of its records; ``None`` if there are none.
        """
        if self.is_generated:
            return self.graph(seed, root).fingerprint
        return find_fingerprint(self.dataset, root, records)


@lru_cache(maxsize=256)
def _generated_graph(dataset: str, seed: int, crossing: float) -> Graph:
    """Return the same object for the same arguments, because it keeps its fingerprint."""
    return Graph.named(dataset, seed=seed, crossing=crossing)


def _modern(name: str, family: str = "") -> StudyGraph:
    return StudyGraph(name, MODERN, "public", _SHIFTS, family or name)


def _classical(name: str, shifts: tuple[str, ...] = ()) -> StudyGraph:
    return StudyGraph(name, CLASSICAL, "full", shifts, name)


def _generated(percent: int, shortened: bool = False) -> StudyGraph:
    name = f"mixed-{percent}"
    return StudyGraph(name, GENERATED, "full", crossing=percent / 100, shortened=shortened)


_GRAPHS = (
    _modern("minesweeper"),
    _modern("tolokers"),
    _modern("chameleon-filtered", "chameleon"),
    _modern("squirrel-filtered", "squirrel"),
    _classical("cora", _SHIFTS),
    _classical("citeseer"),
    _classical("pubmed"),
    _classical("computers"),
    _classical("photo"),
    _classical("chameleon"),
    _classical("squirrel"),
    _classical("actor", _SHIFTS),
    _classical("texas"),
    _classical("cornell"),
    _generated(0, shortened=True),
    _generated(10, shortened=True),
    _generated(30),
)
GRAPHS: dict[str, StudyGraph] = {graph.name: graph for graph in _GRAPHS}


def find_graphs(names: Sequence[str] | None) -> list[StudyGraph]:
    """Return graphs of the study by name or data set, all of them by default."""
    if names is None:
        return list(GRAPHS.values())
    known = dict.fromkeys(name for graph in GRAPHS.values() for name in (graph.name, graph.dataset))
    found = {}
    for name in names:
        if name not in known:
            raise unknown_name("graph of the study of node gates", name, list(known))
        for graph in GRAPHS.values():
            if name in (graph.name, graph.dataset):
                found[graph.name] = graph
    return list(found.values())


def gates() -> tuple[str, ...]:
    """Return all gates, the confirmatory ones first."""
    exploratory = [gate for gate in HEAD_GATES if gate not in CONFIRMATORY]
    return (*CONFIRMATORY, *exploratory)


def networks(chosen: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return what is searched: the network without and with every gate, and the MLP.

    Args:
        chosen: the gates; all of them by default.
    """
    for gate in chosen or ():
        if gate not in gates():
            raise unknown_name("gate of NFNet", gate, gates())
    return (NONE, *(gates() if chosen is None else chosen), MLP)


def draws(graph: StudyGraph) -> list[list[dict[str, Any]]]:
    """Return the settings that every network is trained with, one list per structure.

    They only depend on the name of the graph, so all networks have the same ones.
    """
    structures = []
    combinations = list(itertools.product(*NUMBERS.values()))
    for num_layers in LAYERS:
        generator = random.Random(f"node-gates {graph.name} {num_layers}")
        structure: dict[str, Any] = {"num_layers": num_layers}
        for name, choices in STRUCTURES.items():
            structure[name] = generator.choice(choices)
        numbers = generator.sample(combinations, DRAWS_PER_STRUCTURE)
        structures.append([{**structure, **dict(zip(NUMBERS, values))} for values in numbers])
    return structures


def config(network: str, settings: Settings) -> RunConfig:
    """Return the configuration of a network with drawn settings.

    Args:
        network: one of :func:`networks`.
        settings: one of :func:`draws`. The MLP uses those that it has, with its two layers.
    """
    if network == MLP:
        own = {name: settings[name] for name in _MLP_SETTINGS}
        return RunConfig.resolve(MLP, {**own, **TRAINING}, None, None, "none")
    gated = {**settings, "gate": network, **TRAINING}
    return RunConfig.resolve(NETWORK, gated, None, None, "none")
