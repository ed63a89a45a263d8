"""Memory and time of training on a whole graph and on its parts.

    python benchmarks/partition_training.py                  a graph of the size of ogbn-arxiv
    python benchmarks/partition_training.py --nodes 20000 --device cpu

The graph is generated: communities of 500 nodes, 40 classes, 128 features. 70 % of the edges join
nodes of one community, and 60 % of its nodes have its class. Every row of the table is measured in
a process of its own. It trains for two epochs first, so that kernels are compiled, and then for
``--epochs``. An epoch includes the evaluation on the whole graph.

Memory is what training needs beyond the loaded graph: on a GPU the largest amount of memory that
tensors hold, on a CPU the largest resident memory of the process. Writes
``results/partition_training_DEVICE.md``.
"""

import argparse
import ctypes
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.data import load_dataset, partition_graph, split
from nfgnn.training import History, RunConfig, device_name, fit, machine_name
from nfgnn.training.partition_batches import edges_kept

CLASSES = 40
FEATURES = 128
MODELS = {
    "GCN": {"hidden_channels": 256, "num_layers": 3, "dropout": 0.5, "lr": 0.01},
    "NFGNN": {"hidden_channels": 256, "K": 10, "dropout": 0.5, "lr": 0.01},
    "NFNet": {"hidden_channels": 128, "num_layers": 8, "dropout": 0.3, "lr": 0.003},
}
BATCHES = ((0, 1), (10, 1), (40, 4), (40, 1))
"""Numbers of parts and of parts per batch; 0 parts are the whole graph."""
HEADER = (
    "| model | parts | per batch | edges kept: % | partition: s | epoch: s | memory: MiB | "
    "validation accuracy: % |"
)


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    model: str
    partitions: int
    per_batch: int
    nodes: int
    edges: int
    epochs: int
    device: str


def measure(case: Case) -> str:
    """Train and return the row of the table."""
    data = generated_graph(case.nodes, case.edges)
    parts = "whole graph | – | 100 | –"
    if case.partitions:
        start = time.perf_counter()
        data.part = partition_graph(data.edge_index, case.nodes, case.partitions)
        seconds = time.perf_counter() - start
        kept = 100 * edges_kept(data.edge_index, data.part, case.per_batch)
        parts = f"{case.partitions} | {case.per_batch} | {kept:.1f} | {seconds:.1f}"
    data = data.to(case.device)
    settings = {
        **MODELS[case.model],
        "partitions": case.partitions,
        "partitions_per_batch": case.per_batch,
        "patience": case.epochs + 2,
    }
    reset_peak(case.device)
    before = held_bytes(case.device)
    train(case, data, settings, 2)
    history = train(case, data, settings, case.epochs)
    memory = (peak_bytes(case.device) - before) / 2**20
    return (
        f"| {case.model} | {parts} | {history.seconds / history.epochs:.3f} | {memory:,.0f} | "
        f"{100 * max(history.val_accuracy):.1f} |"
    )


def train(case: Case, data: Data, settings: dict[str, Any], epochs: int) -> History:
    """Train a model with fresh weights."""
    config = RunConfig.resolve(case.model, {**settings, "epochs": epochs}, None, None, "none")
    torch.manual_seed(0)
    model = config.build(data.num_features, data.num_classes).to(case.device)
    return fit(model, data, config.training)


def generated_graph(nodes: int, edges: int) -> Data:
    """Return a graph of communities that have a majority class."""
    rng = np.random.default_rng(0)
    size = max(1, min(500, nodes))
    place = rng.permutation(nodes)
    community = place // size
    main = rng.integers(0, CLASSES, community.max() + 1)
    y = np.where(rng.random(nodes) < 0.6, main[community], rng.integers(0, CLASSES, nodes))
    source = rng.integers(0, nodes, edges)
    neighbour = community[source] * size + rng.integers(0, size, edges)
    members = np.argsort(place)
    inside = members[np.minimum(neighbour, nodes - 1)]
    target = np.where(rng.random(edges) < 0.7, inside, rng.integers(0, nodes, edges))
    means = rng.standard_normal((CLASSES, FEATURES))
    x = 0.3 * means[y] + rng.standard_normal((nodes, FEATURES))
    graph = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([source, target])),
        y=torch.from_numpy(y),
    )
    return split(load_dataset(graph), "stratified", seed=0)


def reset_peak(device: str) -> None:
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return
    # What the generator has freed goes back to the system, or training would use it unseen.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM


def held_bytes(device: str) -> int:
    return torch.cuda.memory_allocated() if device == "cuda" else memory_of_process("VmRSS")


def peak_bytes(device: str) -> int:
    return torch.cuda.max_memory_allocated() if device == "cuda" else memory_of_process("VmHWM")


def memory_of_process(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}: measure on Linux")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--edges", type=int, help="default: as many per node as ogbn-arxiv")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    edges = given.edges or round(given.nodes * 1_166_243 / 169_343)
    cases = [
        Case(model, *batch, given.nodes, edges, given.epochs, given.device)
        for model in given.models
        for batch in BATCHES
    ]
    machine = device_name("cuda") if given.device == "cuda" else machine_name()
    lines = [
        "# Training on a whole graph and on its parts",
        "",
        f"`python benchmarks/partition_training.py --nodes {given.nodes} --edges {edges} "
        f"--epochs {given.epochs} --device {given.device}`: {machine}.",
        f"A generated graph of communities, {CLASSES} classes and {FEATURES} features. Memory is",
        "what training needs beyond the graph. An epoch includes evaluating the whole graph.",
        "",
        HEADER,
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in cases:
        # A process of its own, because the peak of one row must not hide that of the next.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            lines.append(pool.submit(measure, case).result())
        print(lines[-1], flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"partition_training_{given.device}.md"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
