"""The registry of what ``nfgnn reproduce`` can make: one entry per table.

An entry says which models stand in the rows and which graphs, under which protocol, in the columns; how many runs a
cell has by default; what is shown of them; and which rows are held against which. The paper's values, where it has the
same cell, lie in ``paper.json``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nfgnn.nn.conv.gates import GATES
from nfgnn.nn.models import MODELS

BEST_OTHER = "the best other model"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Row:
    """A model of a table."""

    label: str
    model: str
    preset: str | None = None
    """A kind of preset, such as ``"best"`` or ``"paper"``; ``None`` is the item's."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What this row changes of the preset."""
    paper: str | None = None
    """Its name in the paper's table."""


@dataclass(frozen=True)
class Column:
    """A graph of a table and how it is split."""

    dataset: str
    protocol: str


@dataclass(frozen=True)
class Item:
    """One table (several where there are several metrics)."""

    title: str
    columns: tuple[Column, ...]
    rows: Callable[[], list[Row]]
    runs: int
    metrics: tuple[str, ...] = ("test_accuracy",)
    comparisons: Callable[[], Pairs] = tuple
    """Pairs of labels for paired tests; the second may be :data:`BEST_OTHER`."""
    preset: str = "best"
    by_device: bool = False
    """Whether the time of a run is what counts: it is then made alone, once on every machine, and these are told
    apart."""


_SMALL = (
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
)
_OTHERS = (
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
)
_BASES = ("monomial", "bernstein", "chebyshev")
BEST, PAPER_FORM, GLOBAL = "NFGNN (best)", "NFGNN (paper form)", "PolyGNN (w/o NF)"


def _columns(protocol: str, *datasets: str) -> tuple[Column, ...]:
    return tuple(Column(dataset, protocol) for dataset in datasets)


def _same(*models: str) -> list[Row]:
    return [Row(model, model, paper=model) for model in models if model in MODELS]


def _all_models() -> list[Row]:
    nfgnn = [
        Row(BEST, "NFGNN", "best", paper="NFGNN"),
        Row(PAPER_FORM, "NFGNN", "paper", paper="NFGNN"),
    ]
    return [*nfgnn, Row(GLOBAL, "PolyGNN", "best"), *_same(*_OTHERS)]


def _large_models() -> list[Row]:
    scalable = (
        [Row("ScalableNFGNN", "ScalableNFGNN", paper="NFGNN")] if "ScalableNFGNN" in MODELS else []
    )
    return [*_same("NFGNN"), *scalable, *_same("BernNet", "GPRGNN", "APPNP", "GCN")]


def _ablation() -> list[Row]:
    rows = []
    for basis in _BASES:
        name = basis.capitalize()
        rows.append(
            Row(f"{name} without NF", "PolyGNN", settings={"basis": basis}, paper=f"{name} without")
        )
        algorithm_1 = {"basis": basis, "gate": "term"}
        rows.append(Row(f"{name} with NF", "NFGNN", settings=algorithm_1, paper=f"{name} with"))
    chebyshev = {"basis": "chebyshev"}
    gates = [
        (gate, {"gate": gate, **({"rank": 3} if GATES[gate].least_rank > 1 else {})})
        for gate in GATES
        if gate != "term"
    ]
    return rows + [
        Row(f"Chebyshev, gate '{gate}'", "NFGNN", settings={**chebyshev, **own})
        for gate, own in gates
    ]


def _ablation_pairs() -> Pairs:
    pairs = [
        (f"{basis.capitalize()} with NF", f"{basis.capitalize()} without NF") for basis in _BASES
    ]
    return (
        *pairs,
        *(
            (f"Chebyshev, gate '{gate}'", "Chebyshev without NF")
            for gate in GATES
            if gate != "term"
        ),
    )


def _orientation() -> list[Row]:
    """Each has its own presets, found with the same effort."""
    return [
        Row(GLOBAL, "PolyGNN", "best"),
        Row("NFGNN, Algorithm 1", "NFGNN", "term"),
        Row("NFGNN, agreement", "NFGNN", "agreement"),
    ]


def _degrees_and_ranks() -> list[Row]:
    settings = [{"K": K, "rank": rank, "gate": "term"} for K in (1, 3, 5, 10) for rank in (1, 3, 5)]
    return [
        Row(f"K = {values['K']}, d = {values['rank']}", "NFGNN", settings=values)
        for values in settings
    ]


def _against_others() -> Pairs:
    return (BEST, BEST_OTHER), (PAPER_FORM, BEST_OTHER), (BEST, GLOBAL)


ITEMS: dict[str, Item] = {
    "semi": Item(
        "Semi-supervised node classification (2.5 / 2.5 / 95 %)",
        _columns("semi", *_SMALL), _all_models, 50, comparisons=_against_others,
    ),
    "full": Item(
        "Fully supervised node classification (60 / 20 / 20 %)",
        _columns("full", *_SMALL), _all_models, 50, comparisons=_against_others,
    ),
    "large": Item(
        "Larger graphs",
        _columns("random", "penn94", "genius", "pokec")
        + _columns("public", "ogbn-arxiv", "ogbn-products", "ogbn-papers100m"),
        _large_models, 5, metrics=("test_accuracy", "test_roc_auc"), comparisons=lambda: (("NFGNN", BEST_OTHER),),
    ),
    "inductive": Item(
        "Inductive: nodes that training has not seen",
        _columns("inductive", *_SMALL), lambda: _same("NFGNN", "BernNet", "GPRGNN", "APPNP"), 20,
        metrics=("observed_accuracy", "unobserved_accuracy"), comparisons=lambda: (("NFGNN", BEST_OTHER),),
    ),
    "ablation": Item(
        "Three bases, without and with node orientation",
        _columns("semi", "cora", "citeseer", "pubmed") + _columns("full", "chameleon", "actor", "texas"),
        _ablation, 20, comparisons=_ablation_pairs, preset="paper",
    ),
    "orientation": Item(
        "One global filter, Algorithm 1's gate, and the gate from agreement with the neighbourhood",
        _columns("semi", *_SMALL) + _columns("full", *_SMALL), _orientation, 50,
        comparisons=lambda: (("NFGNN, Algorithm 1", GLOBAL), ("NFGNN, agreement", GLOBAL)),
    ),
    "k-rank": Item(
        "Degree K and rank d",
        _columns("full", "cora", "citeseer", "photo", "texas", "chameleon", "actor"),
        _degrees_and_ranks, 10, preset="paper",
    ),
    "time": Item(
        "Time per epoch and per run",
        _columns("full", "cora", "pubmed", "computers", "actor", "squirrel", "cornell") + _columns("random", "pokec"),
        lambda: _same("NFGNN", "GPRGNN", "BernNet", "GCN"), 10,
        metrics=("epoch_ms", "seconds"), preset="paper", by_device=True,
    ),
}  # fmt: skip


@lru_cache
def paper_values() -> dict[str, dict[str, dict[str, dict[str, list[float | None]]]]]:
    """The paper's tables: item, metric, row, dataset → mean and half-width of its interval, in percent (times: ms, s).

    For ``large`` the paper gives the standard deviation in place of the interval.
    """
    values: dict[str, Any] = json.loads(
        (files(__package__) / "paper.json").read_text(encoding="utf-8")
    )
    return values
