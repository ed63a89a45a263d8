"""Time of an epoch (training step and evaluation), compared with plain implementations.

    python benchmarks/epochs.py --device cpu              one thread; writes epochs_cpu.{json,md}
    python benchmarks/epochs.py --device cuda --pokec     adds a generated graph of pokec's size
                                                          (--graphs none: pokec_cuda.{json,md})
    python benchmarks/epochs.py --device cuda --growth    growth of the time; growth_cuda.{json,md}

Models have K = 10 and 64 hidden channels. (a) is Algorithm 1 as plain message passing
(:mod:`reference`), then the models of PyTorch Geometric, then ours. Every row of a table is
measured in one process, the candidates in turn, and the median of several rounds is reported. Raw
files of the graphs are read from ``NFGNN_DATA``. Results are written to ``benchmarks/results``.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from reference import PlainNFGNN, PygNet, train_epochs
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import FeatureScaling
from nfgnn.training import RunConfig, fit, fit_together
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.device import usable_cores

GRAPHS = ("texas", "cora", "citeseer", "squirrel", "computers")
PLAIN = ("(a) plain NFGNN", "PyG GCN", "PyG APPNP", "PyG ChebNet")
OURS = ("NFGNN", "PolyGNN", "BernNet", "GCN")
HERE = Path(__file__).parent / "results"


def real_graph(name: str, device: str) -> Data:
    data = split(load_dataset(name), "full", 0)
    x = FeatureScaling.fit(data.x, "row").apply(data.x)
    keys = ("edge_index", "y", "train_mask", "val_mask")
    return Data(x=x, num_classes=data.num_classes, **{key: data[key] for key in keys}).to(device)


def random_graph(
    nodes: int, edges: int, features: int, classes: int, device: str, hubs: float = 0.63
) -> Data:
    """Return a graph with about ``edges`` directed edges, whose ends follow a power law."""
    generator = torch.Generator(device=device).manual_seed(0)
    popularity = (torch.arange(nodes, device=device).double() + 20) ** -hubs
    popularity = popularity[torch.randperm(nodes, device=device, generator=generator)].cumsum(0)
    ends = (
        torch.rand(2, int(edges * 0.5005), device=device, generator=generator, dtype=torch.double)
        * popularity[-1]
    )
    source, target = torch.searchsorted(popularity, ends).clamp_(max=nodes - 1)
    key = torch.unique(
        torch.cat([source * nodes + target, target * nodes + source])[
            torch.cat([source != target] * 2)
        ]
    )
    y = torch.randint(classes, (nodes,), device=device, generator=generator)
    train = torch.rand(nodes, device=device, generator=generator) < 0.5
    x = torch.randn(nodes, features, device=device, generator=generator)
    edge_index = torch.stack([key // nodes, key % nodes])
    return Data(
        x=x, edge_index=edge_index, y=y, train_mask=train, val_mask=~train, num_classes=classes
    )


def config(model: str, epochs: int, **settings: Any) -> RunConfig:
    return RunConfig.resolve(
        model, {"epochs": epochs, "patience": epochs, **settings}, None, None, "none"
    )


def seconds(call: Any, device: str) -> float:
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def epoch_ms(
    name: str, data: Data, device: str, epochs: int, runs: int = 1, **settings: Any
) -> float:
    """Return the milliseconds per epoch.

    The time of few epochs is subtracted from that of many, so that one-time work does not count.
    """
    if name in PLAIN:
        epochs = max(10, min(50, epochs // 4))  # they are slow, and steady
        dense = data.x.to_dense()
        kind = name.removeprefix("PyG ")
        net = PlainNFGNN if name == PLAIN[0] else lambda f, c: PygNet(kind, f, c)
        model = net(data.num_features, data.num_classes).to(device)

        def call(count: int) -> None:
            train_epochs(
                model, dense, data.edge_index, data.y, data.train_mask, data.val_mask, count
            )

        call(3)
    else:

        def call(count: int) -> None:
            setup = config(name, count, **settings)
            models = [
                setup.build(data.num_features, data.num_classes, data.num_nodes).to(device)
                for _ in range(runs)
            ]
            if runs == 1:
                fit(models[0], data, setup.training)
            else:
                fit_batched(
                    [Member(m, data.train_mask, data.val_mask, setup.training) for m in models],
                    data,
                )

        call(3)
    few, many = max(3, epochs // 10), epochs
    return (
        1000
        * (seconds(lambda: call(many), device) - seconds(lambda: call(few), device))
        / (many - few)
    )


def measure(
    graph: str, data: Data, device: str, names: tuple[str, ...], epochs: int, rounds: int
) -> dict[str, Any]:
    """Measure the candidates in turn; those whose ratios are reported in several rounds."""
    if device == "cpu" and data.edge_index.shape[1] * data.num_features > 1e8:
        # It gathers all features along all edges, which takes minutes.
        names = tuple(name for name in names if name != "PyG ChebNet")
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names:
            if turn == 0 or name in (*PLAIN[:2], "NFGNN", "BernNet"):
                times[name].append(epoch_ms(name, data, device, epochs))
    row: dict[str, Any] = {
        "graph": graph,
        "nodes": data.num_nodes,
        "edges": data.edge_index.shape[1],
    }
    row["ms"] = {name: statistics.median(values) for name, values in times.items()}
    row["all"] = times
    print(graph, {name: round(ms, 3) for name, ms in row["ms"].items()}, flush=True)
    return row


def peak_gib(name: str, data: Data) -> float:
    """Peak memory of training on the GPU in GiB, the graph included."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    epoch_ms(name, data, "cuda", 10)
    return torch.cuda.max_memory_allocated() / 2**30


def fifty_runs(device: str, plain_runs: int = 4) -> dict[str, Any]:
    """Time 50 Cora runs with early stopping: ours as one computation, (a) one after the other."""
    data = load_dataset("cora")
    splits = [split(data, "full", seed) for seed in range(50)]
    classifiers = [
        NodeClassifier("NFGNN", preset="none", seed=seed, device=device) for seed in range(50)
    ]
    fit_together(classifiers[:2], splits[:2])  # compiles the kernels
    ours = seconds(lambda: fit_together(classifiers, splits), device)
    epochs = statistics.mean(c.history_.epochs for c in classifiers)
    graph = real_graph("cora", device)
    plain = epoch_ms(PLAIN[0], graph, device, int(epochs) * plain_runs)
    return {
        "ours_s": ours,
        "epochs_per_run": epochs,
        "plain_ms_per_epoch": plain,
        "plain_s": 50 * epochs * plain / 1000,
    }


def process_pool_ms(runs: int, epochs: int) -> tuple[float, int]:
    """Return the milliseconds per epoch of all Cora runs in a pool, and the number of processes.

    The start of the processes does not count.
    """
    processes = min(runs, usable_cores())
    with ProcessPoolExecutor(processes, get_context("spawn"), torch.set_num_threads, (1,)) as pool:

        def call(count: int) -> None:
            list(pool.map(_one_run, [count] * runs))

        call(3)
        few = max(3, epochs // 10)
        long, short = seconds(lambda: call(epochs), "cpu"), seconds(lambda: call(few), "cpu")
    return 1000 * (long - short) / (epochs - few), processes


def _one_run(epochs: int) -> None:
    data, setup = _cora(), config("NFGNN", epochs)
    fit(setup.build(data.num_features, data.num_classes, data.num_nodes), data, setup.training)


@cache
def _cora() -> Data:
    return real_graph("cora", "cpu")


def growth(device: str) -> Iterator[dict[str, Any]]:
    """Vary one quantity at a time: 20,000 nodes, 200,000 edges, 8 classes, K = 10, one run."""
    base = {"nodes": 20_000, "edges": 200_000, "classes": 8, "K": 10, "runs": 1}
    steps = {
        "nodes": [5_000, 20_000, 80_000, 320_000],
        "edges": [50_000, 200_000, 800_000, 3_200_000],
        "classes": [2, 8, 32, 64],
        "K": [2, 5, 10, 20],
        "runs": [1, 4, 16, 64] if device == "cuda" else [1, 2, 4],
    }
    for what, values in steps.items():
        for value in values:
            at = {**base, what: value}
            data = random_graph(at["nodes"], at["edges"], 64, at["classes"], device)
            epochs = 500 if device == "cuda" else 10
            ms = epoch_ms("NFGNN", data, device, epochs, runs=at["runs"], K=at["K"])
            print(what, value, round(ms, 3), flush=True)
            yield {"varied": what, **at, "ms": ms}


def markdown(result: dict[str, Any]) -> str:
    names = [name for name in (*PLAIN, *OURS) if name in result["rows"][0]["ms"]]
    lines = [
        f"# Time of an epoch, {result['machine']}",
        "",
        "Milliseconds for a training step and an evaluation, K = 10, 64 hidden, float32. "
        f"`{result['command']}`",
        "",
        f"| graph | nodes | edges (directed) | {' | '.join(names)} | (a) / NFGNN "
        "| PyG GCN / NFGNN | BernNet / NFGNN |",
        f"|---|---:|---:|{'---:|' * (len(names) + 3)}",
    ]
    for row in result["rows"]:
        ms = row["ms"]
        ratios = [
            ms[PLAIN[0]] / ms["NFGNN"],
            ms["PyG GCN"] / ms["NFGNN"],
            ms["BernNet"] / ms["NFGNN"],
        ]
        cells = [f"{ms[name]:.3g}" if name in ms else "–" for name in names] + [
            f"**{ratio:.1f}**" for ratio in ratios
        ]
        lines.append(
            f"| {row['graph']} | {row['nodes']:,} | {row['edges']:,} | {' | '.join(cells)} |"
        )
    return "\n".join([*lines, "", *(f"- {text}" for text in result["notes"]), ""])


def growth_markdown(result: dict[str, Any]) -> str:
    lines = [
        f"# How the time of an epoch grows, {result['machine']}",
        "",
        "NFGNN around 20,000 nodes, 200,000 directed edges, 64 features, 8 classes, K = 10, "
        "one run.",
        f"`{result['command']}`",
        "",
        "| varied | value | ms per epoch |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {row['varied']} | {row[row['varied']]:,} | {row['ms']:.3g} |"
        for row in result["growth"]
    ]
    return "\n".join([*lines, ""])


def write(path: Path, name: str, result: dict[str, Any], text: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{name}.json").write_text(json.dumps(result, indent=1))
    (path / f"{name}.md").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pokec", action="store_true")
    parser.add_argument(
        "--growth", action="store_true", help="only this: how the time grows with the sizes"
    )
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    device, notes = arguments.device, []
    torch.set_num_threads(1)
    machine = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"CPU ({platform.machine()}), one thread"
    )
    result: dict[str, Any] = {
        "machine": f"{machine}, torch {torch.__version__}",
        "command": " ".join(["python benchmarks/epochs.py", *sys.argv[1:]]).partition(" --out")[0],
    }
    if arguments.growth:
        result["growth"] = []
        for row in growth(device):
            result["growth"].append(row)
            write(arguments.out, f"growth_{device}", result, growth_markdown(result))
        print(growth_markdown(result))
        return
    epochs = 1000 if device == "cuda" else 30
    graphs = [] if arguments.graphs == "none" else arguments.graphs.split(",")
    name = f"{'epochs' if graphs else 'pokec'}_{device}"
    result |= {"rows": [], "notes": notes}

    def add(graph: str, data: Data, names: tuple[str, ...], epochs: int) -> None:
        """Add a row and write it at once, in case that later rows are interrupted."""
        result["rows"].append(measure(graph, data, device, names, epochs, arguments.rounds))
        write(arguments.out, name, result, markdown(result))

    for graph in graphs:
        add(graph, real_graph(graph, device), (*PLAIN, *OURS), epochs)
    if "cora" in graphs:
        cora = real_graph("cora", device)
        many = 50 if device == "cuda" else 10
        one, together = (epoch_ms("NFGNN", cora, device, epochs, runs) for runs in (1, many))
        notes.append(
            f"{many} runs of Cora as one computation: {together:.3g} ms per epoch of all, "
            f"{together / one:.2f} times a single run's."
        )
        if device == "cpu":
            one = epoch_ms("NFGNN", cora, device, 300)
            pooled, processes = process_pool_ms(many, 300)
            notes.append(
                f"{many} runs of Cora in a process pool, as `nfgnn train --workers {processes}` "
                f"trains them, on {usable_cores()} cores: {pooled:.3g} ms per epoch of all, "
                f"{pooled / one:.2f} times a single run's."
            )
    if device == "cuda" and "cora" in graphs:
        whole = fifty_runs(device)
        notes.append(
            "50 runs of Cora with early stopping, as one computation: "
            f"{whole['ours_s']:.1f} s. One by one with (a), {whole['epochs_per_run']:.0f} epochs "
            f"each at {whole['plain_ms_per_epoch']:.1f} ms: {whole['plain_s']:.0f} s, "
            f"{whole['plain_s'] / whole['ours_s']:.0f} times as long (from its epochs)."
        )
    if arguments.pokec:
        pokec = random_graph(1_632_803, 61_200_000, 65, 2, device)
        # Measured before other candidates keep memory.
        plain, first, ours = (peak_gib(name, pokec) for name in (PLAIN[0], "NFGNN", "NFGNN"))
        add("pokec-sized", pokec, (*PLAIN[:2], *OURS), 200)
        notes.append(
            f"Peak memory of training at pokec's size: NFGNN {ours:.2f} GiB, (a) {plain:.2f} GiB. "
            f"While NFGNN's graph is prepared, once: {first:.2f} GiB."
        )
        degree = int(torch.bincount(pokec.edge_index[0]).max())
        notes.append(f"The pokec-sized graph is generated; its largest degree is {degree:,}.")
    write(arguments.out, name, result, markdown(result))
    print(markdown(result))


if __name__ == "__main__":
    main()
