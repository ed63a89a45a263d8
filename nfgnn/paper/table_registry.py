"""The registry of the tables that ``nfgnn reproduce`` can make.

An entry names the models in the rows and the graphs, each under a protocol, in the columns; the
default number of runs per cell; the metrics to show; and the rows to compare. The values of the
paper, where it has the same cell, are in ``paper.json``; values that other papers publish for the
graphs of a table are in ``published.toml``.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nfgnn.nn import GATES

BEST_OTHER = "the best other model"
PaperRow = dict[str, list[float | None]]
"""Mean and half-width of its interval by dataset."""


@dataclass(frozen=True)
class Row:
    """A model of a table."""

    label: str
    model: str
    preset: str | None = None
    """A kind of preset, such as ``"best"`` or ``"paper"``; ``None`` is that of the table."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that this row changes in the preset."""
    paper: str | None = None
    """Its name in the paper's table."""


@dataclass(frozen=True)
class Column:
    """A graph of a table and how it is split."""

    dataset: str
    protocol: str


@dataclass(frozen=True)
class TableSpec:
    """What a table shows. With several metrics it has several parts."""

    title: str
    columns: tuple[Column, ...]
    """Empty for a table of the graphs that the user names."""
    rows: tuple[Row, ...]
    runs: int
    metrics: tuple[str, ...] = ("test_accuracy",)
    """Empty for a table that shows every graph by its official metric."""
    comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of labels for paired tests; the second may be :data:`BEST_OTHER`."""
    preset: str = "best"
    select: str = "loss"
    """What selects the epoch: the validation loss, as in the paper, or ``"auto"``, by which the
    metric of the graph decides."""
    by_device: bool = False
    """Whether the table shows times. Its runs are then made alone and once on every machine, and
    the machines have rows of their own."""
    ranked: bool = False
    """Whether the table ends with mean ranks, of the models with runs on all graphs with runs."""
    settings_note: str = ""
    """How the settings of the models were chosen."""


@dataclass(frozen=True)
class PublishedRow:
    """Values that another paper reports for the graphs of a table."""

    model: str
    source: str
    """Where the values are from. A source that was not looked up says so."""
    values: Mapping[str, float]
    """Test scores in percent, by dataset."""


_SMALL = [
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
    "actor",
    "texas",
    "cornell",
]
_OTHERS = [
    "BernNet",
    "GPRGNN",
    "APPNP",
    "ChebNet",
    "GCN",
    "BMGCN",
    "FAGCN",
    "GAT",
    "SGC",
    "ARMA",
    "MLP",
    "LINK",
]
_BASES = ("Monomial", "Bernstein", "Chebyshev")
_OTHER_GATES = tuple(gate for gate in GATES if gate != "term")
_BEST = "NFGNN (best)"
_PAPER_FORM = "NFGNN (paper form)"
_GLOBAL = "PolyGNN (w/o NF)"
_MODERN_GRAPHS = (
    ("public", ("minesweeper", "tolokers", "chameleon-filtered", "squirrel-filtered")),
    ("full", ("pubmed", "computers")),
    ("public", ("roman-empire", "amazon-ratings", "questions")),
    ("public", ("penn94", "genius", "twitch-gamers", "arxiv-year", "pokec")),
    ("public", ("ogbn-arxiv", "ogbn-products")),
)
_MODERN_MODELS = (
    "MLP",
    "LINKX",
    "GCN",
    "GAT",
    "GPRGNN",
    "FAGCN",
    "NFGNN",
    "PolyGNN",
    "ACMGCN",
    "FSGNN",
    "PolyFormer",
    "ResidualGCN",
    "ResidualSAGE",
    "ResidualGAT",
    "ResidualGATSep",
    "NFNet",
)
_AGAINST_OTHERS = ((_BEST, BEST_OTHER), (_PAPER_FORM, BEST_OTHER), (_BEST, _GLOBAL))


def _columns(protocol: str, *datasets: str) -> tuple[Column, ...]:
    return tuple(Column(dataset, protocol) for dataset in datasets)


def _models(*models: str) -> tuple[Row, ...]:
    return tuple(Row(model, model, paper=model) for model in models)


_ALL_MODELS = (
    Row(_BEST, "NFGNN", "best", paper="NFGNN"),
    Row(_PAPER_FORM, "NFGNN", "paper", paper="NFGNN"),
    Row(_GLOBAL, "PolyGNN", "best"),
    *_models(*_OTHERS),
)


def _ablation_rows() -> tuple[Row, ...]:
    """Three bases without and with node orientation, then the other gates."""
    rows = []
    for name in _BASES:
        basis = {"basis": name.lower()}
        algorithm_1 = {**basis, "gate": "term"}
        rows.append(Row(f"{name} without NF", "PolyGNN", None, basis, f"{name} without"))
        rows.append(Row(f"{name} with NF", "NFGNN", None, algorithm_1, f"{name} with"))
    for gate in _OTHER_GATES:
        settings: dict[str, Any] = {"basis": "chebyshev", "gate": gate}
        if GATES[gate].least_rank > 1:
            settings["rank"] = 3
        rows.append(Row(_gate_label(gate), "NFGNN", settings=settings))
    return tuple(rows)


def _gate_label(gate: str) -> str:
    return f"Chebyshev, gate '{gate}'"


def _degree_and_rank_rows() -> tuple[Row, ...]:
    rows = []
    for K in (1, 3, 5, 10):
        for rank in (1, 3, 5):
            settings = {"K": K, "rank": rank, "gate": "term"}
            rows.append(Row(f"K = {K}, d = {rank}", "NFGNN", settings=settings))
    return tuple(rows)


TABLES: dict[str, TableSpec] = {
    "semi": TableSpec(
        title="Semi-supervised node classification (2.5 / 2.5 / 95 %)",
        columns=_columns("semi", *_SMALL),
        rows=_ALL_MODELS,
        runs=50,
        comparisons=_AGAINST_OTHERS,
    ),
    "full": TableSpec(
        title="Fully supervised node classification (60 / 20 / 20 %)",
        columns=_columns("full", *_SMALL),
        rows=_ALL_MODELS,
        runs=50,
        comparisons=_AGAINST_OTHERS,
    ),
    "large": TableSpec(
        title="Larger graphs",
        columns=(
            *_columns("random", "penn94", "genius", "pokec"),
            *_columns("public", "ogbn-arxiv", "ogbn-products", "ogbn-papers100m"),
        ),
        rows=(
            *_models("NFGNN"),
            Row("ScalableNFGNN", "ScalableNFGNN", paper="NFGNN"),
            *_models("BernNet", "GPRGNN", "APPNP", "GCN"),
        ),
        runs=5,
        metrics=("test_accuracy", "test_roc_auc"),
        comparisons=(("NFGNN", BEST_OTHER),),
    ),
    "inductive": TableSpec(
        title="Inductive: nodes that training has not seen",
        columns=_columns("inductive", *_SMALL),
        rows=_models("NFGNN", "BernNet", "GPRGNN", "APPNP"),
        runs=20,
        metrics=("observed_accuracy", "unobserved_accuracy"),
        comparisons=(("NFGNN", BEST_OTHER),),
    ),
    "ablation": TableSpec(
        title="Three bases, without and with node orientation",
        columns=(
            *_columns("semi", "cora", "citeseer", "pubmed"),
            *_columns("full", "chameleon", "actor", "texas"),
        ),
        rows=_ablation_rows(),
        runs=20,
        comparisons=(
            *((f"{name} with NF", f"{name} without NF") for name in _BASES),
            *((_gate_label(gate), "Chebyshev without NF") for gate in _OTHER_GATES),
        ),
        preset="paper",
    ),
    "orientation": TableSpec(
        title=(
            "One global filter, Algorithm 1's gate, and the gate from agreement with the "
            "neighbourhood"
        ),
        columns=(*_columns("semi", *_SMALL), *_columns("full", *_SMALL)),
        # Each has its own presets, found with the same effort.
        rows=(
            Row(_GLOBAL, "PolyGNN", "best"),
            Row("NFGNN, Algorithm 1", "NFGNN", "term"),
            Row("NFGNN, agreement", "NFGNN", "agreement"),
        ),
        runs=50,
        comparisons=(("NFGNN, Algorithm 1", _GLOBAL), ("NFGNN, agreement", _GLOBAL)),
    ),
    "k-rank": TableSpec(
        title="Degree K and rank d",
        columns=_columns("full", "cora", "citeseer", "photo", "texas", "chameleon", "actor"),
        rows=_degree_and_rank_rows(),
        runs=10,
        preset="paper",
    ),
    "own": TableSpec(
        title="Graphs of your own, each by its metric",
        columns=(),
        rows=(Row("NFGNN", "NFGNN"), Row(_GLOBAL, "PolyGNN"), *_models(*_OTHERS)),
        runs=10,
        comparisons=(("NFGNN", BEST_OTHER), ("NFGNN", _GLOBAL)),
        select="auto",
    ),
    "modern": TableSpec(
        title="Newer benchmarks, on their official splits and by their official metrics",
        columns=tuple(
            column
            for protocol, datasets in _MODERN_GRAPHS
            for column in _columns(protocol, *datasets)
        ),
        rows=tuple(Row(model, model) for model in _MODERN_MODELS),
        runs=10,
        metrics=(),
        comparisons=(("NFNet", BEST_OTHER), ("NFGNN", BEST_OTHER), ("NFGNN", "PolyGNN")),
        preset="modern",
        select="metric",
        ranked=True,
        settings_note="winners of a search by validation scores; `modern-search.md` lists the "
        "number of draws and splits behind every winner, and the files with the values that were "
        "searched. NFNet, the residual networks and PolyFormer (not its earlier runs) are trained "
        "in bfloat16 on a GPU, all others in float32. Under `public`, the seeds of the table are "
        "the ten official splits that the search also used, with other weights",
    ),
    "time": TableSpec(
        title="Time per epoch and per run",
        columns=(
            *_columns("full", "cora", "pubmed", "computers", "actor", "squirrel", "cornell"),
            *_columns("random", "pokec"),
        ),
        rows=_models("NFGNN", "GPRGNN", "BernNet", "GCN"),
        runs=10,
        metrics=("epoch_ms", "seconds"),
        preset="paper",
        by_device=True,
    ),
}


@lru_cache
def paper_values() -> dict[str, dict[str, dict[str, PaperRow]]]:
    """Return the tables of the paper.

    Table, metric, row and dataset lead to the mean and the half-width of its interval, in percent
    (times in ms and s). For ``large`` the paper gives the standard deviation instead.
    """
    text = (files(__package__) / "paper.json").read_text(encoding="utf-8")
    values: dict[str, Any] = json.loads(text)
    return values


@lru_cache
def published_rows(table: str) -> tuple[PublishedRow, ...]:
    """Return the values of other papers for the graphs of a table."""
    text = (files(__package__) / "published.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text).get(table, [])
    return tuple(PublishedRow(**row) for row in rows)
