"""Does a filter per node pay where the truth is known? The built-in graph with mixed local patterns.

Compares the MLP, one global filter, the node-oriented filter under two gates and an oracle that is told every node's
true local pattern and learns one filter for each, overall and per pattern. The distance from the global filter to the
oracle is the room that node orientation has. All have the same settings but for the gate.

``python -m nfgnn.paper.mixed_patterns --out results`` writes the table.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.data import FeatureScaling, load_dataset, split
from nfgnn.files import atomic_write
from nfgnn.nn.conv import Gate
from nfgnn.nn.models import NFGNN
from nfgnn.spectral import ScaledLaplacian
from nfgnn.training import RunConfig, fit
from nfgnn.training.metrics import accuracy, summarise

PATTERNS = ("homophilic", "heterophilic", "random")
FILTER = {"K": 5, "alpha": 0.5, "filter_lr": 0.02}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "MLP": ("MLP", {}),
    "one global filter": ("PolyGNN", FILTER),
    "NFGNN, Algorithm 1": ("NFGNN", FILTER),
    "NFGNN, agreement": ("NFGNN", {**FILTER, "gate": "agreement", "rank": 3}),
    "oracle": ("NFGNN", FILTER),
}
GRAPHS: dict[str, dict[str, Any]] = {
    "Half homophilic, half heterophilic": {},
    "A third of every pattern": {"shares": (0.34, 0.33, 0.33)},
}


class OracleGate(Gate):
    """One base filter for every true local pattern: η of node i is the column of its pattern."""

    def __init__(self, pattern: Tensor, channels: int, K: int) -> None:
        super().__init__(channels, K, rank=int(pattern.max()) + 1, activation="identity")
        self.pattern: Tensor
        self.register_buffer("pattern", pattern)

    def reset_parameters(self, coefficients: Tensor) -> None:
        with torch.no_grad():
            self.gamma.copy_(coefficients[:, None].expand_as(self.gamma))

    def forward(self, terms: Tensor, x: Tensor, operator: ScaledLaplacian | None = None) -> Tensor:
        return self.gamma[:, self.pattern]


def build(name: str, data: Data) -> tuple[nn.Module, RunConfig]:
    """One of the models; the oracle is NFGNN with another gate."""
    model_name, settings = MODELS[name]
    config = RunConfig.resolve(model_name, settings, None, None, "none")
    model = config.build(data.num_features, data.num_classes)
    if name == "oracle":
        assert isinstance(model, NFGNN)
        prop: Any = model.prop
        prop.gate = OracleGate(data.pattern, prop.channels, prop.K)
        prop.reset_parameters()
    return model, config


def run(name: str, seed: int, **graph: Any) -> dict[str, float]:
    """Test accuracy of one model on one generated graph with one split, overall and per true pattern."""
    data = split(load_dataset("mixed", seed=seed, **graph), "full", seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, config = build(name, data)
        data.x = FeatureScaling.fit(data.x, config.training.features).apply(data.x)
        fit(model, data, config.training)
    with torch.no_grad():
        logits = model.eval()(data.x, data.edge_index)
    scores = {"all": accuracy(logits[data.test_mask], data.y[data.test_mask])}
    for p in data.pattern.unique().tolist():
        nodes = data.test_mask & (data.pattern == p)
        scores[PATTERNS[p]] = accuracy(logits[nodes], data.y[nodes])
    return scores


def compare(seeds: range, **graph: Any) -> Iterator[dict[str, Any]]:
    """One row per model: the summary of every score over the seeds."""
    for name in MODELS:
        scores = [run(name, seed, **graph) for seed in seeds]
        yield {"model": name, **{key: summarise([s[key] for s in scores]) for key in scores[0]}}


def markdown(tables: dict[str, list[dict[str, Any]]], command: str) -> str:
    """A Markdown table for every kind of graph."""
    runs = len(next(iter(tables.values()))[0]["all"]["values"])
    lines = [
        "# One filter, a filter per node, and an oracle on the built-in graph",
        "",
        f"Test accuracy in %, mean ± 95 % confidence interval over {runs} graphs; columns by the true local pattern of",
        f"the node. The oracle is told that pattern. `{command}`, on the CPU, one thread.",
    ]
    for title, rows in tables.items():
        keys = [key for key in rows[0] if key != "model"]
        lines += [
            "",
            f"## {title}",
            "",
            f"| model | {' | '.join(keys)} |",
            f"|---|{'---:|' * len(keys)}",
        ]
        for row in rows:
            cells = (f"{100 * row[key]['mean']:.2f} ± {100 * row[key]['ci95']:.2f}" for key in keys)
            lines.append(f"| {row['model']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1000)
    arguments = parser.parse_args()
    tables: dict[str, list[dict[str, Any]]] = {}
    for title, options in GRAPHS.items():
        for row in compare(range(arguments.seed, arguments.seed + arguments.runs), **options):
            tables.setdefault(title, []).append(row)
            print(
                row["model"],
                {k: round(100 * v["mean"], 2) for k, v in row.items() if k != "model"},
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    command = (
        f"python -m nfgnn.paper.mixed_patterns --runs {arguments.runs} --seed {arguments.seed}"
    )
    atomic_write(
        arguments.out / "mixed_patterns.json",
        json.dumps({"command": command, "tables": tables}, indent=1),
    )
    atomic_write(arguments.out / "mixed_patterns.md", markdown(tables, command))


if __name__ == "__main__":
    main()
