"""Precompute and training of a graph with 20 million nodes and 300 million edges on one GPU.

    python benchmarks/precompute_gpu.py                writes benchmarks/results/precompute_gpu.md

The graph is drawn on the GPU: classes, links that stay in their class more often than by chance, weak features. Its
terms are those of ``nfgnn precompute`` (:func:`nfgnn.propagate.each_term`), the rows of labelled nodes go to a store,
and ScalableNFGNN is trained on it. ``--nodes`` and ``--device cpu`` make it small.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor

from nfgnn import NodeClassifier, split
from nfgnn.basis import resolve_basis
from nfgnn.propagate import ScaledLaplacian, each_term
from nfgnn.scale.store import write_store


def links(nodes: int, edges: int, y: Tensor, classes: int, stay: float) -> tuple[Tensor, Tensor]:
    """The pattern of an undirected graph in compressed rows. Class c has the nodes c, c + classes, …"""
    source = torch.randint(nodes, (edges,), device=y.device)
    other = torch.randint(nodes // classes, (edges,), device=y.device) * classes
    shift = torch.randint(1, classes, (edges,), device=y.device)
    kept = torch.rand(edges, device=y.device) < stay
    target = other + torch.where(kept, source, source + shift) % classes
    del other, shift, kept
    key = torch.cat([source * nodes + target, target * nodes + source])[torch.cat([source != target] * 2)]
    del source, target
    key = torch.unique(key)
    counts = torch.bincount(key // nodes, minlength=nodes)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
    return indptr, (key % nodes).int()


def clock(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000_000)
    parser.add_argument("--degree", type=int, default=30)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--K", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--bandwidth", type=float, default=4.3e12, help="bytes per second")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    n, f, K, device, classes = args.nodes, args.features, args.K, args.device, 8
    torch.manual_seed(0)
    start = clock(device)
    y = torch.arange(n, device=device) % classes
    indptr, indices = links(n, n * args.degree // 2, y, classes, 0.3)
    means = 0.15 * torch.randn(classes, f, device=device)
    x = torch.randn(n, f, device=device)
    for c in range(classes):
        x[c::classes] += means[c]
    degree = indptr.diff().double()
    operator = ScaledLaplacian(indptr, indices, None, torch.where(degree > 0, degree.rsqrt(), 0.0))
    labelled = torch.randperm(n, device=device)[: n // 20].sort().values
    rows = torch.empty(labelled.numel(), K + 1, f, dtype=torch.bfloat16)
    made = clock(device)
    print(f"{n:,} nodes, {indices.numel():,} entries, drawn in {made - start:.1f} s", flush=True)

    steps, at = [], clock(device)
    for k, term in enumerate(each_term(x, operator, resolve_basis("chebyshev"), K)):
        now = clock(device)
        steps.append(now - at)
        rows[:, k] = term[labelled].to(torch.bfloat16).cpu()
        at = clock(device)
    terms_s = at - made
    step = statistics.median(steps[1:])
    once = (indices.numel() * 4 + 5 * x.numel() * 4) / args.bandwidth
    gathers = (indices.numel() * (4 + 4 * f) + 4 * x.numel() * 4) / args.bandwidth
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
    del x, term, operator, indices, indptr
    with tempfile.TemporaryDirectory() as folder:
        at = time.perf_counter()
        store = write_store(folder, rows, y[labelled].cpu(), nodes=labelled.cpu(), num_nodes=n, dtype="bfloat16")
        written = time.perf_counter() - at
        data = split(store.labels(), "random", 0)
        classifier = NodeClassifier("ScalableNFGNN", device=device, epochs=args.epochs).fit(data)
        history, accuracy = classifier.history_, classifier.score(data)
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    lines = [
        f"# Precompute on {name}, torch {torch.__version__}",
        "",
        f"`python benchmarks/precompute_gpu.py --nodes {n} --degree {args.degree} --features {f} --K {K}`. A generated "
        f"graph of {n:,} nodes and {degree.sum().long().item() // 2:,} edges, {f} features, K = {K}, float32.",
        "",
        "| | |",
        "|---|---:|",
        f"| one step of the recurrence, median | {1000 * step:.1f} ms |",
        f"| reading and writing everything once at {args.bandwidth / 1e12:.1f} TB/s | {1000 * once:.1f} ms |",
        f"| a row read for every entry, at the same rate | {1000 * gathers:.1f} ms |",
        f"| share of the latter floor | {100 * gathers / step:.0f} % |",
        f"| all terms, labelled rows copied to the CPU | {terms_s:.1f} s |",
        f"| first term (order of the nodes, kernels) | {steps[1]:.1f} s |",
        f"| peak memory of the GPU | {peak:.1f} GiB |",
        f"| store of {labelled.numel():,} rows, bfloat16: writing with checksums | {written:.1f} s |",
        f"| training: {history.epochs} epochs of {int(data.train_mask.sum()):,} rows | {history.seconds:.1f} s |",
        f"| rows per second in training | {history.loading.get('rows_per_second', 0):,.0f} |",
        f"| share of the time waited for rows | {100 * history.loading.get('waited', 0):.0f} % |",
        f"| test accuracy (chance {100 / classes:.1f} %) | {100 * accuracy:.1f} % |",
        "",
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "precompute_gpu.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
