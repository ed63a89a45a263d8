"""Compare one filter, a filter per node and an oracle where the true local patterns are known.

On the built-in graph with mixed local patterns, the study compares the MLP, one global filter, the
node-oriented filter under two gates, and an oracle that is given the true local pattern of every
node and learns one filter for each. The distance from the global filter to the oracle is what node
orientation can gain. All models have the same settings except for the gate.

In the first two kinds of graph no edge joins two patterns, so every neighbourhood follows one. In
the others a share of the edges joins them.

``nfgnn reproduce mixed-patterns`` or ``python -m nfgnn.paper.studies.mixed_patterns`` writes the
table.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.existing_output import refuse_replacement
from nfgnn.files import atomic_write
from nfgnn.nn import Gate, NFConv
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.progress import Progress
from nfgnn.spectral import ScaledLaplacian
from nfgnn.training import (
    Graph,
    InMemory,
    InProcess,
    NodeClassifier,
    RunConfig,
    RunResult,
    RunSpec,
    execute,
    machine_name,
    raise_first,
    summarise,
)

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
    "Half and half, 10 % of the edges join the two patterns": {"crossing": 0.1},
    "Half and half, 30 % of the edges join the two patterns": {"crossing": 0.3},
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


class OracleClassifier(NodeClassifier):
    """NFGNN with an :class:`OracleGate`."""

    def initialise(self, data: Data, restart: int = 0) -> None:
        super().initialise(data, restart)
        conv = self.model_.filter
        assert isinstance(conv, NFConv)
        conv.gate = OracleGate(data.pattern, conv.channels, conv.K)
        conv.reset_parameters()


class OracleSpec(RunSpec):
    """A run of the oracle."""

    def classifier(self, device: str) -> NodeClassifier:
        return OracleClassifier.from_config(self.config, self.seed, device)


def pattern_scores(result: RunResult) -> dict[str, float]:
    """Return the test accuracy on all nodes and on the nodes of every true pattern."""
    data = result.data
    scores = {"all": result.classifier.score(data)}
    for pattern in data.pattern.unique().tolist():
        nodes = data.test_mask & (data.pattern == pattern)
        scores[PATTERNS[pattern]] = result.classifier.score(data, nodes)
    return scores


def run_spec(name: str, seed: int, **graph: Any) -> RunSpec:
    """Return the run of a model of :data:`MODELS` on the generated graph of a seed."""
    model, settings = MODELS[name]
    settings = {"select": "loss", "features": "standard", **settings}
    config = RunConfig.resolve(model, settings, None, None, "none")
    source = Graph.named("mixed", seed=seed, **graph)
    kind = OracleSpec if name == "oracle" else RunSpec
    return kind(source, "full", seed, config)


def compare(seeds: range, progress: Progress, **graph: Any) -> list[dict[str, Any]]:
    """Return one row per model: the summary of every score over the seeds."""
    rows = []
    for name in MODELS:
        specs = [run_spec(name, seed, **graph) for seed in seeds]
        results = InMemory(pattern_scores)
        executor = InProcess(single_thread=True)
        raise_first(execute(specs, results, executor, progress, "cpu", start_progress=False))
        scores = [results.find(spec) for spec in specs]
        summaries = {key: summarise([score[key] for score in scores]) for key in scores[0]}
        rows.append({"model": name, **summaries})
    return rows


def markdown(tables: dict[str, list[dict[str, Any]]], command: str, machine: str) -> str:
    """Return a Markdown table for every kind of graph."""
    runs = len(next(iter(tables.values()))[0]["all"]["values"])
    lines = [
        "# One filter, a filter per node, and an oracle on the built-in graph",
        "",
        f"Test accuracy in %, mean ± 95 % confidence interval over {runs} graphs; columns by the "
        "true local pattern of",
        f"the node. The oracle is told that pattern. `{command}`, on the CPU, one thread",
        f"({machine}). No edge joins two patterns, except where the heading says so.",
    ]
    for title, rows in tables.items():
        keys = [key for key in rows[0] if key != "model"]
        lines += ["", f"## {title}", "", f"| model | {' | '.join(keys)} |"]
        lines.append(f"|---|{'---:|' * len(keys)}")
        for row in rows:
            cells = [f"{100 * row[key]['mean']:.2f} ± {100 * row[key]['ci95']:.2f}" for key in keys]
            lines.append(f"| {row['model']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write_mixed_patterns(
    out: Path = Path("results"),
    runs: int | None = None,
    seed: int = FIRST_REPORT_SEED,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Run the study and write ``mixed_patterns.json`` and ``mixed_patterns.md``.

    Args:
        out: folder to write to.
        runs: number of generated graphs, 10 by default.
        seed: first seed of graph, split and model.
        progress: the display.
        overwrite: replace the files of a study with other runs or seeds.

    Returns:
        The paths of the files.
    """
    runs = runs or 10
    command = f"nfgnn reproduce mixed-patterns --runs {runs} --seed {seed}"
    for name in ("mixed_patterns.json", "mixed_patterns.md"):
        _check_output(out / name, command, overwrite)
    progress = progress or Progress("mixed-patterns", quiet=True)
    total = len(GRAPHS) * len(MODELS) * runs
    progress.start(total, total)
    seeds = range(seed, seed + runs)
    tables = {title: compare(seeds, progress, **options) for title, options in GRAPHS.items()}
    machine = machine_name()
    content = {"command": command, "machine": machine, "tables": tables}
    texts = {
        "mixed_patterns.json": json.dumps(content, indent=1),
        "mixed_patterns.md": markdown(tables, command, machine),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        atomic_write(out / name, text)
    return [out / name for name in texts]


def _check_output(path: Path, command: str, overwrite: bool) -> None:
    """Refuse to replace a file of another program, or of another study."""
    if not path.exists():
        return
    found = path.read_bytes()
    ours = b"nfgnn reproduce mixed-patterns" in found
    same = command.encode() in found
    refuse_replacement(path, "a study", ours=ours, same=same, overwrite=overwrite)


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=FIRST_REPORT_SEED)
    arguments = parser.parse_args()
    with Progress("mixed-patterns") as progress:
        write_mixed_patterns(arguments.out, arguments.runs, arguments.seed, progress)


if __name__ == "__main__":
    _main()
