"""A graph of the size of ogbn-papers100M on one GPU: generate, precompute, store, train.

    python benchmarks/papers100m.py --data FOLDER --out benchmarks/results           one H200
    python benchmarks/papers100m.py --data FOLDER --nodes 20000 --edges 200000 --features 16 \
        --classes 8 --labelled 2000 --epochs 5 --device cpu                        any machine

Stages: write the graph to disk (about 42 GB); read its edges to the device and sort them; compute
the terms of all nodes in blocks of columns and keep the rows of labelled nodes; write them as a
store; train ScalableNFGNN on the store, and an MLP on the features of the same rows. Every stage is
printed and written to ``papers100m.md`` when it ends. With ``--skip-generate`` the folder is used
as it is, and a complete store in it is trained on directly.

The floor of a product is the time to read the indices and one gathered value per entry and column
once, at 4.3 TB/s.
"""

import argparse
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from nfgnn.data import PowerLawGraph
from nfgnn.nn import Scalable, ScalableNFGNN
from nfgnn.nn.models.gprgnn import ScalableGPRGNN
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import ScaledLaplacian, each_term, resolve_basis
from nfgnn.store import MemoryRows, RowSource, Store, StoreWriter, csr_on_device, is_store
from nfgnn.store.file_format import DTYPES
from nfgnn.training import TrainingConfig
from nfgnn.training.minibatch import RowTask, fit_rows

BANDWIDTH = 4.3e12  # bytes per second, measured on an H200
PIECE_BYTES = 2**26
READERS = 8


@dataclass
class Report:
    """The table of stages, written to a file after every stage."""

    args: argparse.Namespace
    device: torch.device
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._started = time.perf_counter()

    def begin(self) -> None:
        """Start to measure the time and the memory of a stage."""
        self._started = time.perf_counter()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def end(self, stage: str, note: str = "") -> float:
        """Record a stage, print it, and return its seconds."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            peak = torch.cuda.max_memory_allocated() / 2**30
            note = f"{note}; peak of the GPU {peak:.1f} GiB"
        seconds = time.perf_counter() - self._started
        self.add(stage, f"{seconds:.1f} s ({seconds / 60:.2f} min)", note)
        return seconds

    def add(self, name: str, value: str, note: str = "") -> None:
        self.rows.append((name, value, note.removeprefix("; ")))
        print(" | ".join(self.rows[-1]), flush=True)
        if self.args.out:
            folder = Path(self.args.out)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "papers100m.md").write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        args = self.args
        name = torch.cuda.get_device_name() if self.device.type == "cuda" else "CPU"
        cores = len(os.sched_getaffinity(0))
        sizes = ("nodes", "edges", "features", "classes", "labelled", "K", "epochs", "hidden")
        options = " ".join(f"--{size} {vars(args)[size]}" for size in sizes)
        options += f" --homophily {args.homophily} --signal {args.signal}"
        options += f" --precision {args.precision}"
        if args.capture:
            options += " --capture"
        lines = [
            "# A graph of the size of ogbn-papers100M",
            "",
            f"Machine: {name}, {cores} cores; torch {torch.__version__}.",
            "",
            f"Command: `python benchmarks/papers100m.py --data FOLDER {options}`",
            "",
            "| | | |",
            "|---|---|---|",
        ]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines) + "\n"


def pieces(path: Path, device: torch.device) -> Iterator[tuple[int, int, Tensor]]:
    """Yield all rows of a file in pieces on the device, and their first and last row.

    Several threads read ahead into pinned buffers, which are copied asynchronously. A piece is
    valid until the next one is requested.
    """
    cuda = device.type == "cuda"
    with NpyFile.open(path) as file, ThreadPoolExecutor(READERS) as pool:
        rows = max(1, PIECE_BYTES // (file.dtype.itemsize * file.shape[1]))
        dtype = torch.from_numpy(file.read(0, 1)).dtype
        shape = (min(rows, len(file)), file.shape[1])
        buffers = [torch.empty(shape, dtype=dtype, pin_memory=cuda) for _ in range(2 * READERS)]
        copied: list[torch.cuda.Event | None] = [None] * len(buffers)

        def read(slot: int, first: int) -> int:
            event = copied[slot]
            if event is not None:
                event.synchronize()
            last = min(first + rows, len(file))
            file.read(first, last, out=buffers[slot].numpy())
            return last

        starts = iter(range(0, len(file), rows))
        ahead: deque[tuple[int, int, Future[int]]] = deque()
        for slot, first in zip(range(len(buffers)), starts):
            ahead.append((slot, first, pool.submit(read, slot, first)))
        while ahead:
            slot, first, future = ahead.popleft()
            last = future.result()
            piece = buffers[slot][: last - first].to(device, non_blocking=True)
            if cuda:
                event = torch.cuda.Event()
                event.record()
                copied[slot] = event
            yield first, last, piece
            following = next(starts, None)
            if following is not None:
                ahead.append((slot, following, pool.submit(read, slot, following)))


def read_columns(path: Path, left: int, right: int, device: torch.device) -> Tensor:
    """Return some columns of a file on the device."""
    with NpyFile.open(path) as file:
        count = len(file)
        dtype = torch.from_numpy(file.read(0, 1)).dtype
    out = torch.empty(count, right - left, dtype=dtype, device=device)
    for first, last, piece in pieces(path, device):
        out[first:last] = piece[:, left:right]
    return out


@dataclass(frozen=True)
class ColumnPlan:
    """How the features are divided: blocks of ``width`` columns, kept on the device or not."""

    width: int
    resident: bool

    @classmethod
    def of(cls, nodes: int, features: int, entries: int, free: float) -> "ColumnPlan":
        """Plan for the free bytes of a device that holds the sorted graph.

        The graph is copied once in another order, in blocks. A block of columns needs four
        buffers in float32, and two in float16 if features are read again for every block.
        """
        free = 0.92 * free - 4 * entries - 64 * nodes - 3e9
        whole = 2 * nodes * features
        for resident, per_column, rest in ((True, 16, free - whole), (False, 20, free)):
            width = min(features, int(rest // (per_column * nodes)))
            if width >= min(features, 16) or (not resident and width >= 1):
                # The kernel computes columns in powers of two.
                return cls(1 << (width.bit_length() - 1) if width < features else width, resident)
        raise SystemExit("the memory of the device is too small for one column")


def column_blocks(
    path: Path, bounds: list[int], plan: ColumnPlan, device: torch.device
) -> Iterator[Tensor]:
    """Yield blocks of columns in float16; the next one is read while the last one is used."""
    spans = list(pairwise(bounds))
    if plan.resident:
        whole = read_columns(path, 0, bounds[-1], device)
        for left, right in spans:
            yield whole[:, left:right]
        return

    def read(span: tuple[int, int]) -> Tensor:
        if device.type != "cuda":
            return read_columns(path, *span, device)
        with torch.cuda.stream(torch.cuda.Stream()):
            block = read_columns(path, *span, device)
            torch.cuda.current_stream().synchronize()
        return block

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(read, spans[0])
        for following in [*spans[1:], None]:
            block = ahead.result()
            if following is not None:
                ahead = thread.submit(read, following)
            yield block
            del block


def error_of_first_term(operator: ScaledLaplacian, x: Tensor, term: Tensor) -> float:
    """Return the largest relative error of 1000 rows of T_1 = -Â x, compared with float64."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(operator.num_nodes, (1000,), generator=generator).tolist()
    worst = 0.0
    largest = 0.0
    for row in rows:
        start = int(operator.indptr[row])
        stop = int(operator.indptr[row + 1])
        neighbours = operator.indices[start:stop].long()
        values = operator.scale[neighbours, None] * x[neighbours].double()
        exact = -operator.scale[row] * values.sum(0)
        worst = max(worst, float((term[row].double() - exact).abs().max()))
        largest = max(largest, float(exact.abs().max()))
    return worst / largest


def build_operator(data: Path, nodes: int, report: Report) -> ScaledLaplacian:
    """Read the edges and sort them on the device."""
    report.begin()
    edges = read_columns(data / "edges.npy", 0, 2, report.device)
    size = edges.numel() * edges.element_size() / 1e9
    seconds = report.end("edges to the device", f"{size:.1f} GB")
    report.add("rate of reading", f"{size / seconds:.2f} GB/s")
    report.begin()
    operator = csr_on_device(edges, nodes)
    degree = operator.indptr.diff()
    entries = operator.indices.numel()
    note = f"{entries:,} entries, largest degree {int(degree.max()):,}"
    report.end("edges sorted into the operator", note)
    return operator


def compute_terms(
    data: Path, operator: ScaledLaplacian, labelled: Tensor, K: int, features: int, report: Report
) -> Tensor:
    """Return the rows of labelled nodes, bfloat16 ``[rows, K + 1, features]`` on the device."""
    device = report.device
    nodes = operator.num_nodes
    entries = operator.indices.numel()
    rows = torch.empty((len(labelled), K + 1, features), dtype=torch.bfloat16, device=device)
    free = 1e12
    if device.type == "cuda":
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0]
    plan = ColumnPlan.of(nodes, features, entries, free)
    bounds = [*range(0, features, plan.width), features]
    chosen = labelled.to(device)
    basis = resolve_basis("chebyshev")
    products: list[float] = []
    error = 0.0
    report.begin()
    path = data / "node_features.npy"
    for block, half in enumerate(column_blocks(path, bounds, plan, device)):
        left = bounds[block]
        width = half.shape[1]
        x = half.float().contiguous()
        began = time.perf_counter()
        for k, term in enumerate(each_term(x, operator, basis, K)):
            if device.type == "cuda":
                torch.cuda.synchronize()
            # The first term of the first block prepares the graph and compiles the kernel.
            if k > 1 and width == plan.width:
                products.append(time.perf_counter() - began)
            if block == 0 and k == 1:
                error = error_of_first_term(operator, half, term)
            rows[:, k, left : left + width] = term.index_select(0, chosen)
            if device.type == "cuda":
                torch.cuda.synchronize()
            began = time.perf_counter()
        del x, term
        print(f"columns {left} to {left + width} done", flush=True)
    where = "resident in float16" if plan.resident else "read for every block"
    note = f"blocks of {plan.width} columns, features {where}"
    report.end("terms of all nodes, labelled rows kept", note)
    best = min(products)
    mean = sum(products) / len(products)
    floor = 4 * entries * (1 + plan.width) / BANDWIDTH
    report.add(
        "one sparse product, best and mean",
        f"{1e3 * best:.1f} ms, {1e3 * mean:.1f} ms",
        f"floor {1e3 * floor:.1f} ms, {100 * floor / best:.0f} % of it at best, "
        f"{100 * floor / mean:.0f} % in the mean",
    )
    report.add("error of T_1 against float64, 1000 rows", f"{error:.1e}")
    return rows


def write_rows(folder: Path, rows: Tensor, graph: PowerLawGraph, report: Report) -> None:
    """Write a store of rows that are on the device."""
    report.begin()
    y = graph.labels()
    nodes = (y >= 0).nonzero()[0]
    masks = {name: mask[nodes] for name, mask in graph.masks().items()}
    count, orders, features = rows.shape
    names = [str(number) for number in range(graph.num_classes)]
    with StoreWriter(folder, (count, orders, features), "bfloat16") as writer:
        for block in rows.split(writer.block_rows):
            writer.write(DTYPES["bfloat16"].encode(block))
        writer.finish(
            nodes, y[nodes], masks, num_nodes=graph.num_nodes, class_names=names, dataset="papers"
        )
    size = rows.numel() * rows.element_size() / 1e9
    seconds = report.end("store written, with checksums", f"{size:.2f} GB, {count:,} rows")
    report.add("rate of writing the store", f"{size / seconds:.2f} GB/s")


def train(name: str, model: Scalable, source: RowSource, store: Store, report: Report) -> None:
    """Train a model on rows of the store, and report its accuracy on the test rows."""
    args = report.args
    device = report.device
    parts = {}
    data = store.labels()
    for part in ("train", "val", "test"):
        parts[part] = data[f"{part}_mask"].nonzero().squeeze(1)
    config = TrainingConfig(
        epochs=args.epochs,
        patience=args.epochs,
        batch_size=args.batch_size,
        lr=args.lr,
        weight_decay=0.0,
        precision=args.precision,
    )
    report.begin()
    began = time.perf_counter()
    ends: list[float] = []
    history = fit_rows(
        model,
        RowTask(source, store.y, parts["train"], parts["val"]),
        config,
        0,
        on_epoch=lambda history: ends.append(time.perf_counter() - began),
        capture=args.capture,
    )
    report.end(f"{name}: training", f"{history.epochs} epochs, {len(parts['train']):,} rows")
    to_best = ends[history.best_epoch]
    report.add(f"{name}: to the best epoch", f"{to_best:.1f} s", f"epoch {history.best_epoch + 1}")
    rate = history.loading["rows_per_second"]
    waited = 100 * history.loading["waited"]
    report.add(f"{name}: loader", f"{rate:,.0f} rows/s", f"{waited:.1f} % of the time waited")
    right = 0
    model.eval()
    with torch.no_grad():
        for index in parts["test"].split(2**16):
            predicted = model.forward_rows(source.rows(index).to(device)).argmax(1).cpu()
            right += int((predicted == store.y[index]).sum())
    accuracy = right / len(parts["test"])
    chance = float(store.y.bincount().max()) / len(store.y)
    report.add(f"{name}: test accuracy", f"{100 * accuracy:.2f} %", f"chance {100 * chance:.2f} %")


def generate(graph: PowerLawGraph, data: Path, report: Report) -> None:
    """Write the graph, unless the folder has it."""
    report.begin()
    printed = time.perf_counter()

    def show(name: str, done: int, total: int) -> None:
        nonlocal printed
        if time.perf_counter() - printed > 5:
            printed = time.perf_counter()
            print(f"{name}: {100 * done / total:.0f} %", flush=True)

    graph.write(data, report.device, report=show)
    size = sum(file.stat().st_size for file in data.glob("*.npy")) / 1e9
    seconds = report.end("graph written", f"{size:.1f} GB")
    report.add("rate of writing", f"{size / seconds:.2f} GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of graph and store")
    parser.add_argument("--nodes", type=int, default=111_059_956)
    parser.add_argument("--edges", type=int, default=1_615_685_872)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=172)
    parser.add_argument("--labelled", type=int, default=1_546_782)
    parser.add_argument("--homophily", type=float, default=0.5)
    parser.add_argument("--signal", type=float, default=0.15, help="size of the class means")
    parser.add_argument("--K", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--capture", action="store_true", help="steps as CUDA graphs")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--skip-generate", action="store_true", help="use the files in --data")
    parser.add_argument("--only-generate", action="store_true", help="stop after the graph")
    parser.add_argument(
        "--out", type=Path, default=os.environ.get("OUT"), help="folder of papers100m.md"
    )
    args = parser.parse_args()
    report = Report(args, torch.device(args.device))
    sizes = (args.nodes, args.edges, args.features, args.classes, args.labelled)
    graph = PowerLawGraph(*sizes, homophily=args.homophily, signal=args.signal)
    folder = args.data / "graph"
    if not args.skip_generate:
        generate(graph, folder, report)
    if args.only_generate:
        return
    path = args.data / "store"
    if not (args.skip_generate and is_store(path)):
        shutil.rmtree(path, ignore_errors=True)
        began = time.perf_counter()
        operator = build_operator(folder, args.nodes, report)
        labelled = torch.from_numpy(graph.labels() >= 0).nonzero().squeeze(1)
        rows = compute_terms(folder, operator, labelled, args.K, args.features, report)
        del operator
        write_rows(path, rows, graph, report)
        del rows
        report.add("from the files to the store", f"{time.perf_counter() - began:.1f} s")
        if report.device.type == "cuda":
            torch.cuda.empty_cache()
    store = Store.open(path)
    torch.manual_seed(0)
    model = ScalableNFGNN(args.features, args.classes, args.hidden, K=args.K, dropout=0.2)
    train("ScalableNFGNN", model.to(report.device), store, store, report)
    # A polynomial of degree 0 does not read the edges: an MLP on the features.
    everything = torch.arange(store.manifest.num_rows)
    features = torch.cat([store.rows(part)[:, :1] for part in everything.split(2**16)])
    mlp = ScalableGPRGNN(args.features, args.classes, args.hidden, K=0, dropout=0.2)
    train("MLP", mlp.to(report.device), MemoryRows(features), store, report)


if __name__ == "__main__":
    main()
