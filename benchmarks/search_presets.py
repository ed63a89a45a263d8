"""Search of presets on the nine graphs: every polynomial model gets the same draws of the same numeric settings.

    python benchmarks/search_presets.py --device cuda          all rounds, into results/search.jsonl
    python benchmarks/search_presets.py --missing              what is not there yet

For a round, a cell (graph, protocol) and a family (a model with its structural choices) random numeric settings are
drawn, always the same, and trained on a few search seeds, all of them as one computation on a GPU; the best by mean
validation accuracy are trained again on more search seeds (:func:`seeds`). Every line of the output is one
configuration with all its validation accuracies (and test accuracies of the same search seeds, which choose nothing).
What is there already is not computed again, so a search that was killed goes on where it stopped.
On a machine with a GPU, hide it from workers on the CPU: ``CUDA_VISIBLE_DEVICES= python … --device cpu``.
"""

import argparse
import json
import random
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.fit_together import fit_together
from nfgnn.training.presets import preset

Cell = tuple[str, str]
"""A graph and a protocol."""
Config = dict[str, Any]
Choices = tuple[list[Config], dict[str, list[float]]]
"""Structures, and the numbers to draw from where they are not those of ``NUMERIC``."""
NUMERIC = {
    "lr": [0.01, 0.05],
    "weight_decay": [0.0, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.3, 0.5, 0.5, 0.8],
    "filter_lr": [0.005, 0.01, 0.05],
    "filter_weight_decay": [0.0, 0.0, 5e-4, 5e-3],
    "filter_dropout": [0.0, 0.3, 0.5, 0.7, 0.9],
    "alpha": [0.1, 0.5, 0.9],
}
SMOOTHING = {"label_smoothing": [0.0, 0.1, 0.2, 0.3]}
PAPER = {
    "lr": [0.01, 0.05],
    "weight_decay": [1e-4, 5e-4, 1e-3],
    "filter_lr": [0.001, 0.005, 0.01],
    "filter_dropout": [0.0, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9],
    "alpha": [0.1, 0.5, 0.9],
}
LOOPS: Config = {"basis": "monomial", "self_loops": True}
LINK: Config = {"features": "raw", "link": "raw"}
STRUCTURES: dict[Cell, list[Config]] = {
    ("cora", "full"): [{**LOOPS, "features": "row"}, {**LOOPS, "features": "row", "K": 5}],
    ("citeseer", "full"): [
        {**LOOPS, "features": "row", "K": 5, "init": "low-pass"},
        {**LOOPS, "features": "row", "K": 5},
    ],
    ("computers", "full"): [
        {"features": "standard", "init": "band-stop"},
        {"features": "standard"},
    ],
    ("photo", "full"): [{"features": "standard"}, {"features": "standard", "init": "band-stop"}],
    ("chameleon", "full"): [{"features": "raw"}, LINK, {**LINK, "K": 5}],
    ("squirrel", "full"): [{"features": "row"}, LINK, {**LINK, "K": 5}],
    ("actor", "full"): [{**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}],
    ("texas", "full"): [{"features": "row", "K": 2, "hidden_channels": 128}, {"features": "row"}],
    ("cornell", "full"): [{"features": "row", "K": 2, "hidden_channels": 128}, {"features": "row"}],
    ("cornell-genuine", "full"): [
        {"features": "raw", "K": 2, "self_loops": True, "init": "all-pass"},
        {"features": "row", "K": 2, "hidden_channels": 128},
    ],
    ("cora", "semi"): [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row"}],
    ("citeseer", "semi"): [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row"}],
    ("computers", "semi"): [
        {"features": "raw", "num_layers": 1, "init": "band-stop"},
        {**LOOPS, "features": "raw"},
    ],
    ("photo", "semi"): [
        {**LOOPS, "features": "raw", "init": "low-pass"},
        {**LOOPS, "features": "raw"},
    ],
    ("chameleon", "semi"): [{**LOOPS, "features": "raw", "link": "row"}, {"features": "raw"}],
    ("squirrel", "semi"): [
        {**LOOPS, "features": "raw"},
        {**LOOPS, "features": "raw", "link": "row"},
    ],
    ("actor", "semi"): [{**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}],
    ("texas", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
    ("cornell", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
    ("cornell-genuine", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
}
NARROW: dict[Cell, Choices] = {
    ("squirrel", "full"): (
        [
            {**LINK, "K": 5},
            {**LINK, "K": 2},
            {**LINK, "features": "row", "K": 5, "hidden_channels": 128},
        ],
        {
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [1e-3, 5e-3, 1e-2, 2e-2],
            "dropout": [0.5, 0.7, 0.8, 0.9],
            "filter_dropout": [0.3, 0.5, 0.7],
            "alpha": [0.5, 0.9],
        },
    ),
    ("chameleon", "full"): (
        [{"features": "raw"}, {**LINK, "K": 5}],
        {
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [1e-4, 5e-4, 1e-3, 5e-3, 1e-2],
            "dropout": [0.5, 0.6, 0.7, 0.8],
            "filter_lr": [0.002, 0.005, 0.01],
            "filter_weight_decay": [0.0, 5e-4],
            "filter_dropout": [0.6, 0.7, 0.8],
        },
    ),
    ("citeseer", "full"): (
        [
            {**LOOPS, "features": "row", "K": 5},
            {**LOOPS, "features": "row", "K": 5, "init": "low-pass"},
        ],
        {
            "lr": [0.01, 0.02, 0.05],
            "weight_decay": [3e-3, 5e-3, 1e-2],
            "dropout": [0.5, 0.6, 0.7],
            "filter_lr": [0.001, 0.005, 0.01],
            "filter_weight_decay": [0.0, 5e-4, 5e-3],
            "filter_dropout": [0.0, 0.3, 0.5],
            "alpha": [0.5, 0.7, 0.9],
        },
    ),
    ("actor", "full"): (
        [{**LOOPS, "features": "row", "K": 2}, {**LOOPS, "features": "row", "K": 1}],
        {
            "lr": [0.005, 0.01, 0.05],
            "weight_decay": [5e-4, 1e-3, 3e-3, 5e-3],
            "dropout": [0.1, 0.3, 0.5],
            "filter_dropout": [0.3, 0.5, 0.7, 0.9],
            "alpha": [0.3, 0.5, 0.7],
        },
    ),
    ("citeseer", "semi"): (
        [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row"}],
        {
            "lr": [0.01, 0.02, 0.05],
            "weight_decay": [1e-3, 5e-3, 1e-2],
            "dropout": [0.5, 0.7, 0.8],
            "filter_lr": [0.001, 0.005, 0.01],
            "filter_dropout": [0.3, 0.5, 0.7, 0.9],
            "alpha": [0.1, 0.2, 0.5],
        },
    ),
}
"""A second round around what the first has found, for the cells that had room: structures, and what differs from
``NUMERIC``."""
SCORES: Config = {"link": "scores", "features": "row"}
_WEBKB: Choices = (
    [{"features": "row", "K": 2, "hidden_channels": 128}, {"features": "row"}],
    {"lr": [0.01, 0.05, 0.1]},
)
_SMALL: Choices = (
    [{"features": "row", "K": 2}, {"features": "row", "K": 2, "init": "all-pass"}],
    {"weight_decay": [0.0, 5e-4, 5e-3, 1e-2, 5e-2], "alpha": [0.5, 0.9, 1.0]},
)
SMOOTH: dict[Cell, Choices] = {
    ("cora", "full"): (
        [{**LOOPS, "features": "row"}, {**LOOPS, "features": "row", "K": 5}],
        {
            "weight_decay": [5e-4, 1e-3, 3e-3, 5e-3],
            "dropout": [0.5, 0.6, 0.7, 0.8],
            "filter_dropout": [0.0, 0.3, 0.5],
            "alpha": [0.1, 0.3, 0.5],
        },
    ),
    ("citeseer", "full"): (
        [
            {**LOOPS, "features": "row", "K": 5},
            {**LOOPS, "features": "row", "K": 5, "init": "low-pass"},
        ],
        NARROW["citeseer", "full"][1],
    ),
    ("computers", "full"): (
        [{"features": "standard"}, {"features": "standard", "init": "band-stop"}],
        {},
    ),
    ("photo", "full"): (
        [{"features": "standard"}, {"features": "standard", "init": "band-stop"}],
        {},
    ),
    ("chameleon", "full"): (
        [{**SCORES, "K": 5}, {**SCORES, "K": 2}],
        {
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [1e-4, 3e-4, 5e-4, 1e-3, 2e-3],
            "dropout": [0.3, 0.5, 0.7],
            "filter_dropout": [0.0, 0.3],
            "label_smoothing": [0.1, 0.2, 0.3, 0.4],
        },
    ),
    ("squirrel", "full"): (
        [{**SCORES, "K": 2}, {**SCORES, "features": "raw", "K": 2}],
        {
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [5e-5, 1e-4, 2e-4, 3e-4, 5e-4],
            "filter_dropout": [0.0, 0.3],
            "label_smoothing": [0.1, 0.2, 0.3, 0.4],
        },
    ),
    ("actor", "full"): (
        [
            {**LOOPS, "features": "row"},
            {**LOOPS, "features": "row", "K": 2},
            {"features": "row", "K": 2},
        ],
        {
            "weight_decay": [0.0, 0.0, 5e-4, 1e-3],
            "filter_dropout": [0.5, 0.7, 0.9, 0.9],
            "alpha": [0.5, 0.7, 0.9, 1.0],
        },
    ),
    ("texas", "full"): _WEBKB,
    ("cornell", "full"): _WEBKB,
    ("cora", "semi"): ([{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row"}], {}),
    ("citeseer", "semi"): (
        [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row"}],
        NARROW["citeseer", "semi"][1],
    ),
    ("computers", "semi"): (
        [
            {"features": "raw", "num_layers": 1, "init": "band-stop"},
            {"basis": "bernstein", "features": "row"},
        ],
        {"filter_dropout": [0.0, 0.3, 0.5, 0.7]},
    ),
    ("photo", "semi"): (
        [{**LOOPS, "features": "raw", "init": "low-pass"}, {**LOOPS, "features": "raw"}],
        {},
    ),
    ("chameleon", "semi"): (
        [{**LOOPS, "features": "raw", "link": "row"}, {"features": "raw"}, {**SCORES, "K": 2}],
        {},
    ),
    ("squirrel", "semi"): (
        [
            {**LOOPS, "features": "raw", "link": "row"},
            {**LOOPS, "features": "raw"},
            {**SCORES, "K": 2},
        ],
        {},
    ),
    ("actor", "semi"): ([{**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}], {}),
    ("texas", "semi"): _SMALL,
    ("cornell", "semi"): _SMALL,
}
"""A third round: links in the scores, and smoothed labels. The presets found before are among its finalists."""
_AS_THEY_ARE = {
    "lr": [0.02, 0.05, 0.1],
    "weight_decay": [5e-4, 5e-3, 1e-2, 5e-2],
    "alpha": [0.5, 0.9, 1.0],
}
RAW: dict[Cell, Choices] = {
    (graph, protocol): (
        [{"features": "raw", "K": 2}, {"features": "raw", "K": 2, "init": "all-pass"}],
        _AS_THEY_ARE | {"filter_lr": [0.001, 0.005, 0.01]},
    )
    for graph in ("texas", "cornell", "cornell-genuine")
    for protocol in ("semi", "full")
}
"""Features as they are, which the MLP needs most on Texas; otherwise like the third."""
_MORE = {"label_smoothing": [0.0, 0.2, 0.3, 0.4, 0.5]}
MORE: dict[Cell, Choices] = {
    ("cora", "full"): (SMOOTH["cora", "full"][0], SMOOTH["cora", "full"][1] | _MORE),
    ("citeseer", "full"): (
        [
            {**LOOPS, "features": "row", "K": 5},
            {**LOOPS, "features": "row", "K": 5, "init": "low-pass"},
            {**LOOPS, "features": "row", "K": 3, "init": "low-pass"},
            {**LOOPS, "features": "row", "K": 5, "init": "low-pass", "hidden_channels": 128},
        ],
        NARROW["citeseer", "full"][1]
        | _MORE
        | {
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [1e-3, 2e-3, 3e-3, 5e-3],
            "dropout": [0.5, 0.6, 0.7, 0.8],
        },
    ),
    ("computers", "full"): SMOOTH["computers", "full"],
    ("computers", "semi"): SMOOTH["computers", "semi"],
    ("photo", "full"): SMOOTH["photo", "full"],
}
"""A fourth, for cells that had fewer configurations than others, and for CiteSeer."""
_LOOPED = {
    "weight_decay": [0.0, 1e-4, 5e-4],
    "dropout": [0.3, 0.5],
    "filter_lr": [0.01, 0.05],
    "filter_dropout": [0.0, 0.3, 0.5],
    "label_smoothing": [0.1, 0.2],
}
LOOPED: dict[Cell, Choices] = {
    ("computers", "full"): ([{**LOOPS, "features": "standard"}], _LOOPED),
    ("computers", "semi"): ([{**LOOPS, "features": "raw"}], _LOOPED),
}
"""Powers of the adjacency with self-loops on Computers, where GPRGNN, which is made of them, came out best."""
FAMILIES: dict[str, dict[str, Any]] = {
    "global": {"model": "PolyGNN"},
    "agreement": {"model": "NFGNN", "gate": "agreement", "rank": 3},
    "term": {"model": "NFGNN", "gate": "term"},
    "paper": {"model": "NFGNN", "features": "row"},
    "GPRGNN": {"model": "GPRGNN"},
    "BernNet": {"model": "BernNet"},
}
KINDS = {"agreement": "agreement", "term": "term", "paper": "paper"}
"""Kind of the presets of a family, where it is not ``"best"``."""
HEAVY = {"computers": 4, "photo": 6, "squirrel": 12, "actor": 16}
"""Draws on large graphs; 24 on the others. (The first three families of Photo under `full` had 12.)"""
MORE_DRAWS = {"computers": 10, "photo": 12}
TABLES = {"narrow": NARROW, "smooth": SMOOTH, "raw": RAW, "more": MORE, "looped": LOOPED}
CONTAINS: dict[str, Config] = {
    "GPRGNN": LOOPS,
    "BernNet": {"basis": "bernstein", "init": "all-pass"},
}
"""Models that are a global filter in a certain basis (BernNet's coefficients are kept from being negative, too)."""
HELD = {("texas", "full"): 100, ("cornell", "full"): 100}
"""Cells with so few validation nodes that choosing the epoch by them flatters a configuration, the more the less
steadily it trains. There the last word has a third stage: eight finalists, the best of every structure first, are
stopped by one half of the validation nodes and judged by the other, on so many search seeds."""
SEARCH = ("wide", *TABLES, "contained", "held")
"""The whole search, round by round. ``contained`` takes the three best finalists of GPRGNN and of BernNet and puts
NFGNN's filters in the place of theirs; ``held`` is the third stage."""
ROUNDS = (*SEARCH, "given", "final")
"""The last two try nothing new: the presets that are there, and the best finalists that are known on more seeds."""

Line = dict[str, Any]
Key = tuple[Cell, str, int, str]
"""Cell, family, stage and configuration."""
Known = dict[Key, Line]


def seeds(cell: Cell, round: str) -> tuple[range, range]:
    """Search seeds of the first stage and of the finalists.

    With 2.5 % of the nodes for validation ten splits of a small graph cannot tell configurations apart (Texas has 50
    such nodes in them), so the third round takes more there.
    """
    if round == "held":
        return range(0), range(HELD[cell])
    if round == "final":
        return range(0), range(100 if cell[0] in ("texas", "cornell", "cornell-genuine") else 40)
    if round == "raw":
        return range(20), range(100)
    if round in ("more", "looped"):
        return (range(10), range(40)) if cell[0] not in HEAVY else (range(3), range(10))
    if round in ("wide", "narrow", "given") or cell[1] == "full":
        small = round == "smooth" and cell[0] not in HEAVY
        return range(5 if small else 3), range(10)
    if cell[0] in ("texas", "cornell", "cornell-genuine"):
        return range(40), range(100)
    return (range(5), range(10)) if cell[0] in ("computers", "photo") else (range(10), range(40))


def given(cell: Cell, family: str) -> Config:
    """The preset that is there."""
    model = FAMILIES[family]["model"]
    return {"model": model, **preset(model, *cell, KINDS.get(family, "best"))}


def draws(cell: Cell, family: str, round: str, most: int = 24) -> list[list[Config]]:
    """Settings to try: a list for every structure, since only numeric settings may differ within a computation."""
    if round not in ("wide", *TABLES):
        return []
    fixed, plain = FAMILIES[family], family in ("paper", "GPRGNN", "BernNet")
    number = min(most, (MORE_DRAWS if round in ("more", "looped") else HEAVY).get(cell[0], 24))
    if round == "wide":
        structures = STRUCTURES[cell]
        if plain:
            structures, number = [{}], number * len(structures)
        table = PAPER if family == "paper" else NUMERIC
    else:
        structures, own = TABLES[round][cell]
        if plain:  # of the structure they have a choice of the features alone
            structures = [{"features": s["features"]} for s in structures]
        table = NUMERIC | ({} if round == "narrow" else SMOOTHING) | own
    out = []
    for i, structure in enumerate(structures):
        choose = random.Random(f"{cell} {i} {round if round != 'wide' else ''}".strip())
        numeric = [
            {key: choose.choice(values) for key, values in table.items()} for _ in range(number)
        ]
        if family == "BernNet":
            numeric = [{k: v for k, v in draw.items() if k != "alpha"} for draw in numeric]
        configs = [{**fixed, **structure, **draw} for draw in numeric]
        out.append([config for j, config in enumerate(configs) if config not in configs[:j]])
    return out


def classifiers(configs: list[Config], seeds: range, device: str) -> list[NodeClassifier]:
    out = []
    for config in configs:
        settings = {k: v for k, v in config.items() if k != "model"}
        out += [
            NodeClassifier(config["model"], preset="none", seed=s, device=device, **settings)
            for s in seeds
        ]
    return out


def score(classifier: NodeClassifier, graph: Any) -> tuple[float, float, int]:
    history = classifier.history_
    if history.diverged:
        return 0.0, 0.0, history.epochs
    held = graph.get("held_mask")
    val = (
        history.val_accuracy[history.best_epoch] if held is None else classifier.score(graph, held)
    )
    return val, classifier.score(graph), history.epochs


def halved(graph: Any, seed: int) -> Any:
    """The graph with one half of its validation nodes, drawn at random, in ``val_mask``, the other in ``held_mask``."""
    nodes = graph.val_mask.nonzero().flatten()
    nodes = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    out = graph.clone()
    out.val_mask, out.held_mask = torch.zeros_like(graph.val_mask), torch.zeros_like(graph.val_mask)
    out.val_mask[nodes[: len(nodes) // 2]] = True
    out.held_mask[nodes[len(nodes) // 2 :]] = True
    return out


def split_for(data: Any, protocol: str, seed: int, stage: int) -> Any:
    graph = split(data, protocol, seed)
    return halved(graph, seed) if stage == 3 else graph


def train_together(
    data: Any, protocol: str, stage: int, configs: list[Config], seeds: range
) -> list[list[Any]]:
    """Scores of all settings of one structure; computed in as few batches as fit."""
    fitted = classifiers(configs, seeds, "cuda")
    splits = {seed: split_for(data, protocol, seed, stage) for seed in seeds}
    graphs = [splits[classifier.seed] for classifier in fitted]
    columns = data.num_nodes * data.num_classes + data.num_edges
    batch = max(len(seeds), min(256, int(6e7 / columns)))
    for start in range(0, len(fitted), batch):
        part = fitted[start : start + batch]
        with suppress(UserError):  # some may have diverged; all others are fitted
            fit_together(part, graphs[start : start + batch])
    scores = [score(classifier, graph) for classifier, graph in zip(fitted, graphs)]
    return [scores[i : i + len(seeds)] for i in range(0, len(scores), len(seeds))]


def train_alone(task: tuple[str, str, int, Config, int]) -> tuple[float, float, int]:
    dataset, protocol, stage, config, seed = task
    torch.set_num_threads(1)
    (classifier,) = classifiers([config], range(seed, seed + 1), "cpu")
    graph = split_for(load_dataset(dataset), protocol, seed, stage)
    try:
        return score(classifier.fit(graph), graph)
    except UserError:
        return 0.0, 0.0, 0


def read(paths: list[Path]) -> Known:
    """What files of results tell; of a configuration the line with most seeds."""
    known: Known = {}
    for line in (
        json.loads(text)
        for path in paths
        if path.exists()
        for text in path.read_text().splitlines()
    ):
        key = key_of(
            (line["dataset"], line["protocol"]), line["family"], line["stage"], line["config"]
        )
        if key not in known or len(known[key]["val"]) < len(line["val"]):
            known[key] = line
    return known


class Search:
    """One cell and family after the other, every finished configuration a line."""

    def __init__(
        self,
        known: Known,
        round: str,
        out: Path,
        pool: ProcessPoolExecutor | None = None,
        most: int = 24,
    ) -> None:
        self.known, self.round, self.out, self.pool, self.most = known, round, out, pool, most
        self.last_stage = 3 if round == "held" else 2

    def run(self, cell: Cell, family: str) -> None:
        start, (few, many) = time.perf_counter(), self.seeds(cell, family)
        for configs in draws(cell, family, self.round, self.most):
            self.train(cell, family, 1, configs, few)
        for configs in by_structure(self.finalists(cell, family)):
            self.train(cell, family, self.last_stage, configs, many)
        here = [
            line for key, line in self.known.items() if key[:3] == (cell, family, self.last_stage)
        ]
        best = max(here, key=lambda line: mean(line, many))
        where = f"{self.round} {':'.join(cell)} {family}"
        print(
            f"{where}: val {mean(best, many):.2f} % ({time.perf_counter() - start:.0f} s)",
            flush=True,
        )

    def seeds(self, cell: Cell, family: str) -> tuple[range, range]:
        """Search seeds of the first stage and of the finalists; these must keep up with the ones that are there."""
        few, many = seeds(cell, self.round)
        if self.round == "contained":
            many = range(
                max(line.get("seeds", len(line["val"])) for line in self.last(cell, family))
            )
        return few, many

    def last(self, cell: Cell, family: str) -> list[Line]:
        """All finalists that are known, best on the first ten seeds first."""
        lines = [line for key, line in self.known.items() if key[:3] == (cell, family, 2)]
        return sorted(lines, key=lambda line: -round_off(mean(line, range(10))))

    def finalists(self, cell: Cell, family: str) -> list[Config]:
        """The best of this round's draws, and the preset that is there. In the last round: the four finalists of
        highest validation accuracy on the first ten search seeds."""
        if self.round == "final":
            return [line["config"] for line in self.last(cell, family)[:4]]
        if self.round == "held":
            return self.of_every_structure(cell, family)[:8]
        if self.round == "contained":
            others = [line["config"] for model in CONTAINS for line in self.last(cell, model)[:3]]
            return [*(with_filter(family, config) for config in others), given(cell, family)]
        tried = [
            config for configs in draws(cell, family, self.round, self.most) for config in configs
        ]
        few, _ = self.seeds(cell, family)
        tried.sort(
            key=lambda config: -round_off(mean(self.known[key_of(cell, family, 1, config)], few))
        )
        best = tried[: 3 if cell[0] in HEAVY or self.round == "raw" else 5]
        return best if self.round in ("wide", "narrow") else [*best, given(cell, family)]

    def of_every_structure(self, cell: Cell, family: str) -> list[Config]:
        """All finalists: the best of every structure, then the others; those tried on most seeds first."""
        lines = sorted(
            self.last(cell, family),
            key=lambda line: (-len(line["val"]), -round_off(mean(line, range(100)))),
        )
        full = [RunConfig.from_dict(line["config"]).to_dict() for line in lines]
        distinct = [config for i, config in enumerate(full) if config not in full[:i]]
        first = [group[0] for group in by_structure(distinct)]
        return [*first, *(config for config in distinct if config not in first)]

    def missing(
        self, cell: Cell, family: str, stage: int, configs: list[Config], seeds: range
    ) -> list[Config]:
        """Those that were not yet trained on all of these seeds."""
        return [
            config for config in configs if self.seeds_of(cell, family, stage, config) < len(seeds)
        ]

    def train(
        self, cell: Cell, family: str, stage: int, configs: list[Config], seeds: range
    ) -> None:
        """Train what is missing, on the seeds that are missing, and write it down."""
        lacking = self.missing(cell, family, stage, configs, seeds)
        for start in sorted({self.seeds_of(cell, family, stage, config) for config in lacking}):
            part = [
                config for config in lacking if self.seeds_of(cell, family, stage, config) == start
            ]
            more = range(start, len(seeds))
            if self.pool is None:
                scores = train_together(load_dataset(cell[0]), cell[1], stage, part, more)
            else:
                alone = list(
                    self.pool.map(
                        train_alone, [(*cell, stage, c, seed) for c in part for seed in more]
                    )
                )
                scores = [alone[i : i + len(more)] for i in range(0, len(alone), len(more))]
            for config, rows in zip(part, scores):
                self.write(cell, family, stage, config, start, rows)

    def seeds_of(self, cell: Cell, family: str, stage: int, config: Config) -> int:
        """On how many seeds a configuration was tried; on none where only a mean was kept."""
        line = self.known.get(key_of(cell, family, stage, config), {"val": []})
        return 0 if "seeds" in line else len(line["val"])

    def write(
        self, cell: Cell, family: str, stage: int, config: Config, start: int, rows: list[Any]
    ) -> None:
        """A line for what is known of a configuration's first seeds and what was found on the others."""
        line = {
            "dataset": cell[0],
            "protocol": cell[1],
            "family": family,
            "stage": stage,
            "config": config,
        }
        before = self.known[key_of(cell, family, stage, config)] if start else {}
        for name, values in zip(("val", "test", "epochs"), zip(*rows)):
            line[name] = [*before.get(name, []), *(round(value, 5) for value in values)]
        self.known[key_of(cell, family, stage, config)] = line
        with self.out.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def count_missing(self, cell: Cell, family: str) -> tuple[int, int]:
        """How many draws of a cell were not trained, and how many of its finalists."""
        few, many = self.seeds(cell, family)
        tried = [
            config for configs in draws(cell, family, self.round, self.most) for config in configs
        ]
        if lacking := len(self.missing(cell, family, 1, tried, few)):
            return lacking, 0  # the finalists are not known then
        own = given(cell, family)  # is another after every round
        best = [config for config in self.finalists(cell, family) if config != own]
        return 0, len(self.missing(cell, family, self.last_stage, best, many))


def with_filter(family: str, config: Config) -> Config:
    """The configuration of a model that is a global filter, with the filter of a family in its place."""
    return {
        **RunConfig.from_dict(config).to_dict(),
        **CONTAINS[config["model"]],
        **FAMILIES[family],
    }


def round_off(value: float) -> float:
    """Means that differ by the order of their sum are equal."""
    return round(value, 6)


def key_of(cell: Cell, family: str, stage: int, config: Config) -> Key:
    return cell, family, stage, json.dumps(config, sort_keys=True)


def mean(line: Line, seeds: range) -> float:
    """Mean validation accuracy on the first of the search seeds, in %."""
    values = line["val"][: len(seeds)]
    return float(100 * sum(values) / len(values))


def cells_of(round: str) -> list[Cell]:
    if round == "held":
        return list(HELD)
    return list(TABLES.get(round, STRUCTURES))


def families_of(round: str) -> list[str]:
    """The paper's form has a grid of its own, which is the first round."""
    if round == "contained":
        return ["global", "agreement", "term"]
    return [family for family in FAMILIES if family != "paper" or round not in TABLES]


def by_structure(configs: list[Config]) -> list[list[Config]]:
    groups: dict[str, list[Config]] = {}
    for config in configs:
        shape = json.dumps(
            {k: v for k, v in config.items() if k not in NUMERIC | SMOOTHING}, sort_keys=True
        )
        groups.setdefault(shape, []).append(config)
    return list(groups.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", help="such as cora:full,texas:semi; all of a round by default")
    parser.add_argument("--families", help=f"of {', '.join(FAMILIES)}; all by default")
    parser.add_argument("--draws", type=int, default=24, help="at most so many for a structure")
    parser.add_argument("--round", default=",".join(SEARCH), help=f"of {', '.join(ROUNDS)}")
    parser.add_argument(
        "--earlier", type=Path, nargs="*", default=[], help="other results that count as known"
    )
    parser.add_argument(
        "--missing", action="store_true", help="train nothing: say what is not there"
    )
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="start nothing new after this time"
    )
    parser.add_argument("--out", type=Path, default=Path("results/search.jsonl"))
    arguments = parser.parse_args()
    start = time.perf_counter()
    pool = ProcessPoolExecutor(arguments.workers) if arguments.device == "cpu" else None
    asked = [tuple(name.split(":")) for name in (arguments.cells or "").split(",") if name]
    known = read([*arguments.earlier, arguments.out])
    for round in arguments.round.split(","):
        search = Search(known, round, arguments.out, pool, arguments.draws)
        for cell in cells_of(round):
            for family in families_of(round):
                if (asked and cell not in asked) or family not in (
                    arguments.families or family
                ).split(","):
                    continue
                lacking, finalists = search.count_missing(cell, family)
                if not lacking + finalists or time.perf_counter() - start > arguments.seconds:
                    continue
                if arguments.missing:
                    print(
                        f"{round} {':'.join(cell)} {family}: {lacking} draws, {finalists} finalists of those known"
                    )
                else:
                    search.run(cell, family)
    if pool is not None:
        pool.shutdown()


if __name__ == "__main__":
    main()
