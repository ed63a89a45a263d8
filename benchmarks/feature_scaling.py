"""Validation accuracy of each feature scaling, on tables and on bags of words.

``features = "auto"`` was chosen by this comparison. Settings other than the scaling are the
defaults of each model for an unknown graph. Only search seeds and validation nodes are used.

    NFGNN_DATA=DATA OMP_NUM_THREADS=1 python benchmarks/feature_scaling.py --out table.md

The tables are two data sets that scikit-learn ships, each with a graph of nearest neighbours a
third of whose edges is random, and a generated table of people with heavy-tailed amounts, ages,
dates, cities and gaps.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import SCALINGS

MODELS = ("MLP", "GCN", "NFGNN")
OWN = ("wisconsin", "reed98")


def nearest_neighbours(load: Callable[[], object], name: str) -> Data:
    """Return a data set of scikit-learn with a noisy graph of nearest neighbours."""
    rng = np.random.default_rng(0)
    x, y = load(return_X_y=True)
    row, col = kneighbors_graph(StandardScaler().fit_transform(x), 5).nonzero()
    col = np.where(rng.random(len(col)) < 1 / 3, rng.integers(0, len(x), len(col)), col)
    edges = torch.from_numpy(np.stack([row, col])).long()
    graph = Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=edges, name=name)
    return load_dataset(graph)


def people(num_nodes: int = 3000) -> Data:
    """Return the generated table. Seven of ten edges join people of one class."""
    rng = np.random.default_rng(3)
    y = (rng.random(num_nodes) < 0.35).astype(int)
    source = rng.integers(0, num_nodes, 6 * num_nodes)
    wanted = np.where(rng.random(len(source)) < 0.7, y[source], 1 - y[source])
    members = [np.flatnonzero(y == c) for c in (0, 1)]
    target = np.where(wanted == 1, rng.choice(members[1], len(source)), 0)
    target = np.where(wanted == 0, rng.choice(members[0], len(source)), target)
    age = rng.normal(45 - 3 * y, 12)
    age[rng.random(num_nodes) < 0.1] = np.nan
    informed = rng.random(num_nodes) < 0.2
    nodes = {
        "id": np.arange(num_nodes),
        "label": y,
        "amount": np.exp(rng.normal(3 + 0.5 * y, 1.5)),
        "visits": np.floor(np.exp(rng.normal(1 + 0.4 * y, 1.0))),
        "age": pa.array(age, from_pandas=True),
        "joined": np.datetime64("2015-01-01") + rng.integers(0, 3000, num_nodes),
        "city": [f"city {c}" for c in np.where(informed, y, rng.integers(0, 30, num_nodes))],
    }
    edges = pa.table({"source": source, "target": target})
    return load_dataset(nodes=pa.table(nodes), edges=edges)


def graphs(own: Path) -> Iterator[tuple[str, Data]]:
    yield "breast cancer (30 numbers)", nearest_neighbours(load_breast_cancer, "breast cancer")
    yield "wine (13 numbers)", nearest_neighbours(load_wine, "wine")
    yield "people (numbers, date, 30 cities, gaps)", people()
    for name in OWN:
        kind = "words" if name == "wisconsin" else "6 categories"
        yield f"{name} ({kind})", load_dataset(own / f"{name}.npz")


def validation_accuracy(data: Data, model: str, scaling: str, seeds: int, epochs: int) -> float:
    scores = []
    for seed in range(seeds):
        part = split(data, "stratified", seed)
        classifier = NodeClassifier(
            model, seed=seed, device="cpu", features=scaling, epochs=epochs, metric="accuracy"
        )
        predicted = classifier.fit(part).predict(part)
        scores.append(float((predicted == part.y)[part.val_mask].float().mean()))
    return 100 * float(np.mean(scores))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="Number of search seeds.")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    own = Path(os.environ["NFGNN_DATA"]) / "own"
    lines = [f"| graph | model | {' | '.join(SCALINGS)} |", "|---|---|---:|---:|---:|---:|"]
    for title, data in graphs(own):
        for model in MODELS:
            cells = [
                f"{validation_accuracy(data, model, scaling, options.seeds, options.epochs):.1f}"
                for scaling in SCALINGS
            ]
            lines.append(f"| {title} | {model} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
