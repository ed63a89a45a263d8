"""Search of presets on the nine graphs: every polynomial model gets the same draws of the same numeric settings.

    python benchmarks/search_presets.py --device cuda --out results/search.jsonl

For a cell (graph, protocol) and a family (a model with its structural choices) DRAWS random numeric settings are
trained on a few search seeds, all of them as one computation on a GPU; the best by mean validation accuracy are trained
again on all ten search seeds (0-9; in the third round of `semi` on up to a hundred, 0-99). Every line of the output is
one configuration with all its validation accuracies (and test accuracies of the same search seeds, which choose
nothing). What is there already is not computed again.
On a machine with a GPU, hide it from workers on the CPU: ``CUDA_VISIBLE_DEVICES= python … --device cpu``.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.presets import preset
from nfgnn.training.together import fit_together

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
LOOPS = {"basis": "monomial", "self_loops": True}
LINK = {"features": "raw", "link": "raw"}
STRUCTURES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("cora", "full"): [{**LOOPS, "features": "row"}, {**LOOPS, "features": "row", "K": 5}],
    ("citeseer", "full"): [
        {**LOOPS, "features": "row", "K": 5, "init": "low-pass"},
        {**LOOPS, "features": "row", "K": 5},
    ],
    ("computers", "full"): [{"features": "standard", "init": "band-stop"}, {"features": "standard"}],
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
    ("computers", "semi"): [{"features": "raw", "num_layers": 1, "init": "band-stop"}, {**LOOPS, "features": "raw"}],
    ("photo", "semi"): [{**LOOPS, "features": "raw", "init": "low-pass"}, {**LOOPS, "features": "raw"}],
    ("chameleon", "semi"): [{**LOOPS, "features": "raw", "link": "row"}, {"features": "raw"}],
    ("squirrel", "semi"): [{**LOOPS, "features": "raw"}, {**LOOPS, "features": "raw", "link": "row"}],
    ("actor", "semi"): [{**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}],
    ("texas", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
    ("cornell", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
    ("cornell-genuine", "semi"): [{"features": "row", "K": 2}, {"features": "row"}],
}
NARROW: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, list[float]]]] = {
    ("squirrel", "full"): (
        [{**LINK, "K": 5}, {**LINK, "K": 2}, {**LINK, "features": "row", "K": 5, "hidden_channels": 128}],
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
        [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row", "K": 5, "init": "low-pass"}],
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
SCORES = {"link": "scores", "features": "row"}
_WEBKB = ([{"features": "row", "K": 2, "hidden_channels": 128}, {"features": "row"}], {"lr": [0.01, 0.05, 0.1]})
_SMALL = (
    [{"features": "row", "K": 2}, {"features": "row", "K": 2, "init": "all-pass"}],
    {"weight_decay": [0.0, 5e-4, 5e-3, 1e-2, 5e-2], "alpha": [0.5, 0.9, 1.0]},
)
SMOOTH: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, list[float]]]] = {
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
        [{**LOOPS, "features": "row", "K": 5}, {**LOOPS, "features": "row", "K": 5, "init": "low-pass"}],
        NARROW["citeseer", "full"][1],
    ),
    ("computers", "full"): ([{"features": "standard"}, {"features": "standard", "init": "band-stop"}], {}),
    ("photo", "full"): ([{"features": "standard"}, {"features": "standard", "init": "band-stop"}], {}),
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
        [{**LOOPS, "features": "row"}, {**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}],
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
        [{"features": "raw", "num_layers": 1, "init": "band-stop"}, {"basis": "bernstein", "features": "row"}],
        {"filter_dropout": [0.0, 0.3, 0.5, 0.7]},
    ),
    ("photo", "semi"): ([{**LOOPS, "features": "raw", "init": "low-pass"}, {**LOOPS, "features": "raw"}], {}),
    ("chameleon", "semi"): (
        [{**LOOPS, "features": "raw", "link": "row"}, {"features": "raw"}, {**SCORES, "K": 2}],
        {},
    ),
    ("squirrel", "semi"): (
        [{**LOOPS, "features": "raw", "link": "row"}, {**LOOPS, "features": "raw"}, {**SCORES, "K": 2}],
        {},
    ),
    ("actor", "semi"): ([{**LOOPS, "features": "row", "K": 2}, {"features": "row", "K": 2}], {}),
    ("texas", "semi"): _SMALL,
    ("cornell", "semi"): _SMALL,
}
"""A third round: links in the scores, and smoothed labels. The presets found before are among its finalists."""
_AS_THEY_ARE = {"lr": [0.02, 0.05, 0.1], "weight_decay": [5e-4, 5e-3, 1e-2, 5e-2], "alpha": [0.5, 0.9, 1.0]}
RAW: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, list[float]]]] = {
    (graph, protocol): (
        [{"features": "raw", "K": 2}, {"features": "raw", "K": 2, "init": "all-pass"}],
        _AS_THEY_ARE | {"filter_lr": [0.001, 0.005, 0.01]},
    )
    for graph in ("texas", "cornell", "cornell-genuine")
    for protocol in ("semi", "full")
}
"""Features as they are, which the MLP needs most on Texas; otherwise like the third."""
_MORE = {"label_smoothing": [0.0, 0.2, 0.3, 0.4, 0.5]}
MORE: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, list[float]]]] = {
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
        | {"lr": [0.005, 0.01, 0.02], "weight_decay": [1e-3, 2e-3, 3e-3, 5e-3], "dropout": [0.5, 0.6, 0.7, 0.8]},
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
LOOPED: dict[tuple[str, str], tuple[list[dict[str, Any]], dict[str, list[float]]]] = {
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
ROUNDS = ("wide", *TABLES, "given", "final")
"""The last two try nothing new: the presets that are there, and the best finalists of ``--earlier`` on more seeds."""

Config = dict[str, Any]


def seeds(cell: tuple[str, str], round: str) -> tuple[range, range]:
    """Search seeds of the first stage and of the finalists.

    With 2.5 % of the nodes for validation ten splits of a small graph cannot tell configurations apart (Texas has 50
    such nodes in them), so the third round takes more there.
    """
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


def given(cell: tuple[str, str], family: str) -> Config:
    """The preset that is there."""
    model = FAMILIES[family]["model"]
    return {"model": model, **preset(model, *cell, KINDS.get(family, "best"))}


def draws(cell: tuple[str, str], family: str, round: str, most: int = 24) -> list[list[Config]]:
    """Settings to try: a list for every structure, since only numeric settings may differ within a computation."""
    if round in ("given", "final"):
        return []
    fixed, plain = FAMILIES[family], family in ("paper", "GPRGNN", "BernNet")
    number = min(most, (MORE_DRAWS if round in ("more", "looped") else HEAVY).get(cell[0], 24))
    if round == "wide":
        structures, number = ([{}], 2 * number) if plain else (STRUCTURES[cell], number)
        table = PAPER if family == "paper" else NUMERIC
    else:
        structures, own = TABLES[round][cell]
        if plain:  # of the structure they have a choice of the features alone
            structures = [{"features": s["features"]} for s in structures]
        table = NUMERIC | ({} if round == "narrow" else SMOOTHING) | own
    out = []
    for i, structure in enumerate(structures):
        choose = random.Random(f"{cell} {i} {round if round != 'wide' else ''}".strip())
        numeric = [{key: choose.choice(values) for key, values in table.items()} for _ in range(number)]
        if family == "BernNet":
            numeric = [{k: v for k, v in draw.items() if k != "alpha"} for draw in numeric]
        out.append([{**fixed, **structure, **draw} for draw in numeric])
    return out


def classifiers(configs: list[Config], seeds: range, device: str) -> list[NodeClassifier]:
    out = []
    for config in configs:
        settings = {k: v for k, v in config.items() if k != "model"}
        out += [NodeClassifier(config["model"], preset="none", seed=s, device=device, **settings) for s in seeds]
    return out


def score(classifier: NodeClassifier, graph: Any) -> tuple[float, float, int]:
    history = classifier.history_
    if history.diverged:
        return 0.0, 0.0, history.epochs
    return history.val_accuracy[history.best_epoch], classifier.score(graph), history.epochs


def train_together(data: Any, protocol: str, configs: list[Config], seeds: range) -> list[list[Any]]:
    """Scores of all settings of one structure; computed in as few batches as fit."""
    fitted = classifiers(configs, seeds, "cuda")
    graphs = [split(data, protocol, classifier.seed) for classifier in fitted]
    columns = data.num_nodes * data.num_classes + data.num_edges
    batch = max(len(seeds), min(256, int(6e7 / columns)))
    for start in range(0, len(fitted), batch):
        part = fitted[start : start + batch]
        with suppress(UserError):  # some may have diverged; all others are fitted
            fit_together(part, graphs[start : start + batch])
    scores = [score(classifier, graph) for classifier, graph in zip(fitted, graphs)]
    return [scores[i : i + len(seeds)] for i in range(0, len(scores), len(seeds))]


def train_alone(task: tuple[str, str, Config, int]) -> tuple[float, float, int]:
    dataset, protocol, config, seed = task
    torch.set_num_threads(1)
    (classifier,) = classifiers([config], range(seed, seed + 1), "cpu")
    graph = split(load_dataset(dataset), protocol, seed)
    try:
        return score(classifier.fit(graph), graph)
    except UserError:
        return 0.0, 0.0, 0


class Search:
    """One cell and family after the other, every finished configuration a line."""

    def __init__(self, out: Path, pool: ProcessPoolExecutor | None, round: str, most: int, earlier: list[Path]) -> None:
        self.out, self.pool, self.round, self.most = out, pool, round, most
        self.earlier = [json.loads(line) for path in earlier for line in path.read_text().splitlines()]
        lines = out.read_text().splitlines() if out.exists() else []
        self.done = {(d["dataset"], d["protocol"], d["family"], d["stage"]) for d in map(json.loads, lines)}

    def run(self, cell: tuple[str, str], family: str) -> None:
        start, data = time.perf_counter(), load_dataset(cell[0])
        few, many = seeds(cell, self.round)
        first = [
            (c, s)
            for configs in draws(cell, family, self.round, self.most)
            for c, s in self.scores(data, cell, configs, few)
        ]
        first.sort(key=lambda pair: -sum(v for v, _, _ in pair[1]))
        self.write(cell, family, 1, first)
        finalists = [config for config, _ in first[: 3 if cell[0] in HEAVY or self.round == "raw" else 5]]
        if self.round not in ("wide", "narrow", "final"):
            finalists.append(given(cell, family))
        if self.round == "final":
            finalists = self.best_of_earlier(cell, family)
        last = [pair for group in by_structure(finalists) for pair in self.scores(data, cell, group, many)]
        last.sort(key=lambda pair: -sum(v for v, _, _ in pair[1]))
        self.write(cell, family, 2, last)
        best = last[0][1]
        mean = [100 * sum(s[i] for s in best) / len(best) for i in (0, 1)]
        seconds = time.perf_counter() - start
        print(f"{cell[0]} {cell[1]} {family}: val {mean[0]:.2f} test {mean[1]:.2f} ({seconds:.0f} s)", flush=True)

    def best_of_earlier(self, cell: tuple[str, str], family: str) -> list[Config]:
        """The four finalists of highest validation accuracy on the first ten search seeds."""
        here = [d for d in self.earlier if (d["dataset"], d["protocol"], d["family"], d["stage"]) == (*cell, family, 2)]
        here.sort(key=lambda line: -sum(line["val"][:10]))
        distinct = {json.dumps(line["config"], sort_keys=True): line["config"] for line in here}
        return list(distinct.values())[:4]

    def scores(
        self, data: Any, cell: tuple[str, str], configs: list[Config], seeds: range
    ) -> Iterator[tuple[Config, list[Any]]]:
        if self.pool is None:
            yield from zip(configs, train_together(data, cell[1], configs, seeds))
            return
        tasks = [(*cell, config, seed) for config in configs for seed in seeds]
        scores = list(self.pool.map(train_alone, tasks))
        yield from zip(configs, (scores[i : i + len(seeds)] for i in range(0, len(scores), len(seeds))))

    def write(self, cell: tuple[str, str], family: str, stage: int, results: list[tuple[Config, list[Any]]]) -> None:
        with self.out.open("a") as file:
            for config, scores in results:
                val, test, epochs = (list(column) for column in zip(*scores))
                row = {"dataset": cell[0], "protocol": cell[1], "family": family, "stage": stage, "config": config}
                row |= {"val": [round(v, 5) for v in val], "test": [round(v, 5) for v in test], "epochs": epochs}
                file.write(json.dumps(row) + "\n")


def by_structure(configs: list[Config]) -> list[list[Config]]:
    groups: dict[str, list[Config]] = {}
    for config in configs:
        shape = json.dumps({k: v for k, v in config.items() if k not in NUMERIC | SMOOTHING}, sort_keys=True)
        groups.setdefault(shape, []).append(config)
    return list(groups.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", default=",".join(":".join(cell) for cell in STRUCTURES))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--draws", type=int, default=24, help="at most so many for a structure")
    parser.add_argument("--round", choices=ROUNDS, default="wide", help="given: only the presets that are there")
    parser.add_argument("--earlier", type=Path, nargs="*", default=[], help="results that the final round starts from")
    parser.add_argument("--seconds", type=float, default=1e9, help="start nothing new after this time")
    parser.add_argument("--out", type=Path, default=Path("results/search.jsonl"))
    arguments = parser.parse_args()
    start = time.perf_counter()
    pool = ProcessPoolExecutor(arguments.workers) if arguments.device == "cpu" else None
    search = Search(arguments.out, pool, arguments.round, arguments.draws, arguments.earlier)
    for name in arguments.cells.split(","):
        dataset, _, protocol = name.partition(":")
        for family in arguments.families.split(","):
            if (dataset, protocol, family, 2) in search.done or time.perf_counter() - start > arguments.seconds:
                continue
            search.run((dataset, protocol), family)


if __name__ == "__main__":
    main()
