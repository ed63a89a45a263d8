"""Compare a product that streams its operator from disk with reading the same files.

A product of n nodes, m entries and w columns reads the operator (8m bytes) and two terms (8nw), and
writes one (4nw). The same bytes are then read and written without any arithmetic, with the same
calls and block sizes. Both start with files that are not in the page cache
(``POSIX_FADV_DONTNEED``) and alternate, so that other work on the machine concerns both.

Other work takes processor time from the product, but hardly from the disk. The time without the
share in which the only thread was ready to run and waited for a core (``/proc/self/schedstat``) is
that of an idle core, save for the caches and the memory that cores share.

Run: ``python benchmarks/streamed_product.py --scratch FOLDER [--out FILE.md]``.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import recurrence_step, recurrence_table, resolve_basis
from nfgnn.store import disk_backend, return_freed_memory
from nfgnn.store.disk_laplacian import DiskLaplacian

ROWS = 2**16  # rows of a graph that are generated at a time


def write_array(path: Path, rows: np.ndarray) -> None:
    with NpyFile.create(path, rows.dtype, rows.shape) as file:
        file.write(0, rows)
        file.finish()


def write_operator(folder: Path, nodes: int, degree: int) -> None:
    """Write a random graph in which every row has the same number of entries."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    write_array(folder / "indptr.npy", np.arange(0, nodes * degree + 1, degree))
    with NpyFile.create(folder / "indices.npy", np.int32, (nodes * degree,)) as file:
        for first in range(0, nodes, ROWS):
            count = min(ROWS, nodes - first)
            columns = np.sort(rng.integers(0, nodes, (count, degree), np.int32), axis=1)
            file.write(first * degree, columns.reshape(-1))
        file.finish()
    operator = DiskLaplacian(folder)
    operator.write_scale()
    operator.write_values()


def drop_from_cache(files: list[Path]) -> None:
    """Ask the system to read these files from disk the next time."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def sequential(operator: DiskLaplacian, terms: list[Path], target: Path) -> None:
    """Read the operator and two terms and write a term, without any arithmetic."""
    buffer = np.empty(operator.block_entries * 4, np.uint8)
    for path in (operator.folder / "indices.npy", operator.folder / "values.npy", *terms):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer.data):
                pass
    with NpyFile.open(terms[0]) as shape, NpyFile.create(target, np.float32, shape.shape) as out:
        rows = np.zeros((ROWS, shape.shape[1]), np.float32)
        for first in range(0, len(shape), ROWS):
            out.write(first, rows[: len(shape) - first])
        out.finish()


@dataclass(frozen=True)
class Seconds:
    """Times of one piece of work."""

    wall: float
    own: float
    """Without waiting for a core."""
    processor: float


def timed(work: Callable[[], object]) -> Seconds:
    """Measure a call in this thread."""
    start = time.perf_counter()
    processor, waited = _scheduled()
    work()
    wall = time.perf_counter() - start
    processor_end, waited_end = _scheduled()
    return Seconds(wall, wall - (waited_end - waited), processor_end - processor)


def _scheduled() -> tuple[float, float]:
    """Return the seconds that the main thread has run, and those that it waited for a core."""
    running, waiting, _ = Path("/proc/self/schedstat").read_text().split()
    return int(running) / 1e9, int(waiting) / 1e9


def in_memory(operator: DiskLaplacian, x: Tensor) -> Seconds:
    """Measure the product without a disk, the best of three."""
    matrix = operator.load(2.0, torch.device("cpu")).adjacency(torch.float32).tensor
    out = torch.zeros_like(x)
    times = [
        timed(lambda: recurrence_step(matrix, x, -2.0, 0.0, out, -1.0, out=out)) for _ in range(3)
    ]
    return min(times, key=lambda seconds: seconds.own)


def measure(args: argparse.Namespace, width: int) -> dict[str, float]:
    folder = args.scratch / "operator"
    work = args.scratch / f"terms-{width}"
    work.mkdir(parents=True, exist_ok=True)
    x = work / "x.npy"
    rng = np.random.default_rng(width)
    copy = work / "copy.npy"
    for path in (x, copy):
        write_array(path, rng.standard_normal((args.nodes, width), dtype=np.float32))
    operator = DiskLaplacian(folder, args.block_entries)
    table = recurrence_table(resolve_basis("chebyshev"), args.products, 2.0)
    streamed = disk_backend.each_term(x, operator, table, work)
    next(streamed)
    plain = []
    products = []
    for _ in range(args.products):
        files = [*folder.glob("*.npy"), *work.glob("*.npy")]
        drop_from_cache(files)
        plain.append(timed(lambda: sequential(operator, [x, copy], work / "written.part")))
        drop_from_cache(files)
        products.append(timed(lambda: next(streamed)))
    streamed.close()
    moved = 8 * args.nodes * args.degree + 12 * args.nodes * width
    memory = in_memory(operator, torch.from_numpy(np.load(x)))
    for path in work.iterdir():
        path.unlink()
    pairs = list(zip(products, plain))
    return {
        "width": width,
        "moved": moved / 1e9,
        "sequential": median(other.own for other in plain),
        "rate": moved / 1e9 / median(other.own for other in plain),
        "product": median(product.own for product in products),
        "ratio": median(product.own / other.own for product, other in pairs),
        "processor": median(product.processor for product in products),
        "memory": memory.own,
        "sequential, wall": median(other.wall for other in plain),
        "product, wall": median(product.wall for product in products),
        "ratio, wall": median(product.wall / other.wall for product, other in pairs),
    }


def lines(args: argparse.Namespace, rows: list[dict[str, float]]) -> list[str]:
    head = "| columns | moved: GB | sequential: s | GB/s | streamed product: s | ratio "
    head += "| of it processor: s | product in memory: s "
    head += "| wall: sequential: s | streamed product: s | ratio |"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    out = [
        f"{args.nodes:,} nodes, {args.nodes * args.degree:,} entries, blocks of "
        f"{args.block_entries:,} entries, medians of {args.products} products. Load averages at "
        f"the end: {load}; one thread, torch {torch.__version__}, "
        f"Python {platform.python_version()}.",
        "",
        f"Command: `python benchmarks/streamed_product.py {' '.join(sys.argv[1:])}`",
        "",
        head,
        "|" + "---|" * (head.count("|") - 1),
    ]
    for row in rows:
        cells = [f"{row['width']:.0f}", *(f"{row[key]:.2f}" for key in list(row)[1:])]
        out.append(f"| {' | '.join(cells)} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2_500_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--products", type=int, default=5)
    parser.add_argument("--block-entries", type=int, default=700_000)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    return_freed_memory()
    write_operator(args.scratch / "operator", args.nodes, args.degree)
    text = "\n".join(lines(args, [measure(args, width) for width in args.widths]))
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
