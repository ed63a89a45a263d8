"""Time the terms of a large graph on one GPU, and training on them.

A random graph with classes is generated and sorted on the device: a node's edges lead to its own
class with a given probability, features are noisy class means. The recurrence runs over all nodes
in blocks of columns, planned as in `nfgnn precompute`. The rows of labelled nodes are stored, and
ScalableNFGNN is trained on them. The lower bound of a product is the time to read the indices and
one gathered value per entry and column once, at 4.3 TB/s.

    python benchmarks/precompute_gpu.py --out benchmarks/results          one H200
    python benchmarks/precompute_gpu.py --nodes 3000 --links 30000 --features 8 --epochs 30
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.nn import ScalableNFGNN
from nfgnn.spectral import ScaledLaplacian, each_term, resolve_basis
from nfgnn.store import (
    MemoryRows,
    MemorySource,
    Settings,
    Speed,
    make_plan,
    plan_precompute,
    precompute,
)
from nfgnn.training import TrainingConfig
from nfgnn.training.minibatch import RowTask, fit_rows

CLASSES = 10
BANDWIDTH = 4.3e12  # bytes per second, measured on an H200
T = TypeVar("T")


def timed(work: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """Return a result and its seconds, including asynchronous work of the device."""
    start = time.perf_counter()
    result = work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def random_operator(
    nodes: int, links: int, homophily: float, device: torch.device
) -> ScaledLaplacian:
    """Return a random graph whose edges are made symmetric, sorted and unique on the device.

    Node i belongs to class i mod 10.
    """
    generator = torch.Generator(device).manual_seed(0)
    options = {"generator": generator, "device": device}
    source = torch.randint(nodes, (links,), **options)
    target = torch.randint(nodes // CLASSES, (links,), **options) * CLASSES + source % CLASSES
    other = torch.randint(nodes, (links,), **options)
    target = torch.where(torch.rand(links, **options) < homophily, target, other)
    del other
    keep = source != target
    source, target = source[keep], target[keep]
    keys = torch.cat([source * nodes + target, target * nodes + source])
    del source, target, keep
    keys = torch.unique_consecutive(keys.sort().values)
    degree = torch.bincount(torch.div(keys, nodes, rounding_mode="floor"), minlength=nodes)
    indptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)]).int()
    scale = torch.where(degree > 0, degree.double().rsqrt(), 0.0)
    return ScaledLaplacian(indptr, (keys % nodes).int(), None, scale)


def features(nodes: int, first: int, last: int, device: torch.device) -> Tensor:
    """Return columns ``first`` to ``last`` of the features: noisy class means."""
    generator = torch.Generator(device).manual_seed(first + 1)
    means = 0.2 * torch.randn(CLASSES, last - first, generator=generator, device=device)
    x = torch.randn(nodes, last - first, generator=generator, device=device)
    return x.add_(means.repeat(-(-nodes // CLASSES), 1)[:nodes])


def error_of_first_term(
    operator: ScaledLaplacian, x: Tensor, term: Tensor, count: int = 1000
) -> float:
    """Return the largest relative error of some rows of T_1 = -Â x, compared with float64."""
    rows = torch.randint(
        operator.num_nodes, (count,), generator=torch.Generator().manual_seed(1)
    ).tolist()
    worst = largest = 0.0
    for row in rows:
        start, stop = int(operator.indptr[row]), int(operator.indptr[row + 1])
        neighbours = operator.indices[start:stop].long()
        exact = -operator.scale[row] * (
            operator.scale[neighbours, None] * x[neighbours].double()
        ).sum(0)
        worst = max(worst, float((term[row].double() - exact).abs().max()))
        largest = max(largest, float(exact.abs().max()))
    return worst / largest


def compute(
    args: argparse.Namespace, operator: ScaledLaplacian, device: torch.device
) -> dict[str, object]:
    """Compute all terms, and copy the rows of labelled nodes to the host."""
    n, entries, basis = args.nodes, operator.indices.numel(), resolve_basis("chebyshev")
    labelled = (
        torch.randperm(n, generator=torch.Generator().manual_seed(2))[: max(60, n // 20)]
        .sort()
        .values
    )
    free = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 10**12
    speed = Speed(1e-9, 1e-9, 1e-8, 1e-7, 1e-9)
    settings = Settings(K=args.K, memory=10**12)
    cut = make_plan(
        n,
        entries,
        args.features,
        len(labelled),
        settings,
        base=0,
        speed=speed,
        out=Path(),
        device_memory=free,
    )
    kept = torch.empty(len(labelled), args.K + 1, args.features)
    chosen, products, error, keeping = labelled.to(device), [], 0.0, 0.0
    for first, last in zip(cut.bounds, cut.bounds[1:]):
        x = features(n, first, last, device)
        check = x.clone() if first == 0 and n * (last - first) < 4 * 10**9 else None
        terms = each_term(x, operator, basis, args.K)
        for k in range(args.K + 1):
            term, seconds = timed(lambda terms=terms: next(terms), device)
            products += (
                [seconds] if k > 1 else []
            )  # the first two prepare the graph and compile the kernel
            if k == 1 and check is not None:
                error, check = error_of_first_term(operator, check, term), None
            place = kept[:, k, first:last]
            _, seconds = timed(lambda t=term, to=place: to.copy_(t.index_select(0, chosen)), device)
            keeping += seconds
    return {
        "rows": kept,
        "nodes": labelled,
        "products": products,
        "width": cut.width,
        "error": error,
        "keep": keeping,
    }


def train(
    args: argparse.Namespace, rows: Tensor, y: Tensor, device: torch.device
) -> tuple[float, float, int]:
    """Train ScalableNFGNN on the stored rows; return test accuracy, seconds and epochs.

    Half of the rows are for training, a quarter each for validation and test.
    """
    torch.manual_seed(0)
    order = torch.randperm(len(y))
    parts = [part.sort().values for part in order.tensor_split([len(y) // 2, 3 * len(y) // 4])]
    rows = rows / args.features**0.5
    model = ScalableNFGNN(args.features, CLASSES, K=args.K, dropout=0.2).to(device)
    config = TrainingConfig(epochs=args.epochs, patience=args.epochs, batch_size=args.batch_size)
    task = RowTask(MemoryRows(rows), y, parts[0], parts[1])
    history, seconds = timed(lambda: fit_rows(model, task, config, 0), device)
    model.eval()
    with torch.no_grad():
        right = sum(
            int((model.forward_rows(rows[part].to(device)).argmax(1).cpu() == y[part]).sum())
            for part in parts[2].split(2**16)
        )
    return right / len(parts[2]), seconds, history.epochs


def stores_agree(device: torch.device) -> float:
    """Return the largest difference between stores of a small graph from the device and the CPU."""
    operator = random_operator(20_000, 200_000, 0.5, torch.device("cpu"))
    row = torch.repeat_interleave(torch.arange(20_000), operator.indptr.diff().long())
    data = Data(x=torch.randn(20_000, 16), edge_index=torch.stack([row, operator.indices.long()]))
    data.y = torch.arange(20_000) % CLASSES
    source, found = MemorySource(data), []
    with tempfile.TemporaryDirectory() as folder:
        for name in {"cpu", device.type}:
            settings = Settings(K=10, device=name, features="raw")
            made = plan_precompute(source, Path(folder) / name, settings)
            found.append(
                precompute(source, Path(folder) / name, settings, chosen=made).rows(slice(None))
            )
    return float((found[0] - found[-1]).abs().max() / found[0].abs().max())


def report(args: argparse.Namespace, device: torch.device) -> list[str]:
    agreement, check = timed(lambda: stores_agree(device), device)
    operator, generate = timed(lambda: random_operator(args.nodes, args.links, 0.3, device), device)
    entries = operator.indices.numel()
    made, everything = timed(lambda: compute(args, operator, device), device)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    products, width = made["products"], made["width"]
    best, mean = 1e3 * min(products), 1e3 * sum(products) / len(products)
    floor = 1e3 * 4 * entries * (1 + width) / BANDWIDTH
    y = made["nodes"] % CLASSES
    accuracy, training, epochs = train(args, made["rows"], y, device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    pairs = [
        ("nodes, entries, features, K", f"{args.nodes:,}, {entries:,}, {args.features}, {args.K}"),
        ("columns per block", str(width)),
        ("graph generated and sorted", f"{generate:.2f} s"),
        ("sparse product, best and mean", f"{best:.2f} ms, {mean:.2f} ms"),
        ("floor of indices and gathers", f"{floor:.2f} ms"),
        ("share of the floor", f"{100 * floor / best:.0f} %"),
        ("all terms, with preparation and stored rows", f"{everything:.2f} s"),
        ("of which copying rows", f"{made['keep']:.2f} s"),
        ("peak device memory", f"{peak:.1f} GiB"),
        ("error of T_1 against float64, 1000 rows", f"{made['error']:.1e}"),
        ("small store, device against CPU", f"{agreement:.1e} ({check:.1f} s)"),
        ("training on the stored rows", f"{len(y):,} rows, {epochs} epochs, {training:.1f} s"),
        ("test accuracy (chance 0.1)", f"{accuracy:.3f}"),
    ]
    lines = [
        "# Precompute on a GPU",
        "",
        f"Machine: {name}; torch {torch.__version__}, float32.",
        "",
    ]
    command = f"python benchmarks/precompute_gpu.py --nodes {args.nodes} --links {args.links}"
    lines += [
        f"Command: `{command} --features {args.features} --K {args.K} --epochs {args.epochs}`",
        "",
    ]
    return [*lines, "| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in pairs)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--links", type=int, default=300_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--K", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--out", type=Path, default=os.environ.get("OUT"), help="folder of precompute_gpu.md"
    )
    args = parser.parse_args()
    text = "\n".join(report(args, torch.device(args.device)))
    if args.out:
        Path(args.out).mkdir(parents=True, exist_ok=True)
        (Path(args.out) / "precompute_gpu.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
