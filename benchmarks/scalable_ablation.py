"""Find out which part of the full-graph model the rows of ScalableNFNet lack.

    python benchmarks/scalable_ablation.py cora --root DATA

PolyGNN computes class scores with an MLP and then propagates them. With one linear layer, the order
does not matter, so such a model could be trained on rows. The command prints the mean validation
accuracy of several forms on the search seeds 0 to 2, protocol `full`.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.training.metrics import summarise

FORMS: list[tuple[str, str, dict[str, Any]]] = [
    ("PolyGNN", "PolyGNN", {}),
    ("PolyGNN without dropout", "PolyGNN", {"dropout": 0.0, "filter_dropout": 0.0}),
    ("PolyGNN without hidden layer", "PolyGNN", {"num_layers": 1}),
    ("ScalableNFNet", "ScalableNFNet", {}),
]


def validation_accuracy(data: Any, model: str, settings: dict[str, Any], seed: int) -> float:
    graph = split(data, "full", seed)
    classifier = NodeClassifier(model, seed=seed, device="cpu", **settings).fit(graph)
    return classifier.score(graph, graph.val_mask)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare forms of PolyGNN with ScalableNFNet.")
    parser.add_argument("dataset", nargs="?", default="cora")
    parser.add_argument("--root", type=Path, help="Folder with raw datasets.")
    parser.add_argument("--seeds", type=int, default=3, help="Number of search seeds.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load_dataset(options.dataset, root=options.root)
    for name, model, settings in FORMS:
        seeds = range(options.seeds)
        found = [validation_accuracy(data, model, settings, seed) for seed in seeds]
        score = summarise(found)
        print(f"{name}: {100 * score['mean']:.2f} ± {100 * score['ci95']:.2f}", flush=True)


if __name__ == "__main__":
    main()
