"""Train ScalableNFGNN on a large store: speed, waiting time, accuracy, peak memory.

    python benchmarks/train_store.py STORE --epochs 5 --threads 2
    python benchmarks/train_store.py STORE --cold                    read from the disk every epoch

The store is one of ``benchmarks/precompute_large.py`` or ``benchmarks/papers100m.py``. Rows are
read and trained on as by ``nfgnn train STORE``: 60 % of them for training, 20 % each for validation
and test, unless the store has masks. ``--cold`` lets the system drop the cached pages of the store
after every epoch, so that each epoch reads the disk.
"""

import argparse
import mmap
import os
import resource
from pathlib import Path

import numpy as np
import torch

from nfgnn.data import split
from nfgnn.nn import ScalableNFGNN
from nfgnn.store import Store
from nfgnn.training import TrainingConfig
from nfgnn.training.history import History
from nfgnn.training.minibatch import RowTask, fit_rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.005)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--capture", action="store_true", help="steps as CUDA graphs")
    parser.add_argument("--windows", action="store_true", help="do not keep the rows on the GPU")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cold", action="store_true", help="drop cached pages after every epoch")
    parser.add_argument("--out", type=Path, help="folder of train_store.md")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    store = Store.open(arguments.store)
    manifest = store.manifest
    data = store.labels()
    if not manifest.masks:
        data = split(data, "random", seed=0)
    parts = [data[f"{part}_mask"].nonzero().squeeze(1) for part in ("train", "val", "test")]
    torch.manual_seed(0)
    model = ScalableNFGNN(
        manifest.num_features, manifest.num_classes, arguments.hidden, K=manifest.K
    ).to(arguments.device)
    config = TrainingConfig(
        epochs=arguments.epochs,
        patience=arguments.epochs,
        batch_size=arguments.batch_size,
        lr=arguments.lr,
        precision=arguments.precision,
    )

    def drop_cache(history: History) -> None:
        if arguments.cold:
            drop_pages(store)

    drop_cache(History())
    keep = False if arguments.windows else None
    task = RowTask(store, store.y, parts[0], parts[1], keep)
    history = fit_rows(model, task, config, 0, on_epoch=drop_cache, capture=arguments.capture)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    accuracy = test_accuracy(model, store, parts[2], arguments.device)
    counts = store.y[store.y >= 0].bincount()
    row_bytes = store.terms[0].nbytes
    rate = history.loading["rows_per_second"]
    seconds = history.seconds / history.epochs
    options = f"--epochs {arguments.epochs} --batch-size {arguments.batch_size}"
    options += f" --hidden {arguments.hidden} --threads {arguments.threads}"
    options += f" --precision {arguments.precision}"
    for option in ("cold", "windows", "capture"):
        if vars(arguments)[option]:
            options += f" --{option}"
    rows = {
        "store": f"{manifest.num_rows:,} rows of {manifest.num_nodes:,} nodes, K = {manifest.K}, "
        f"{manifest.num_features} features, {manifest.dtype}: "
        f"{row_bytes * manifest.num_rows / 1e9:.2f} GB",
        "machine": machine(arguments),
        "epochs": f"{history.epochs}, {seconds:.1f} s each, validation included",
        "training rows per second": f"{rate:,.0f} ({rate * row_bytes / 1e6:,.0f} MB/s)",
        "time waited for rows": f"{100 * history.loading['waited']:.1f} %",
        "test accuracy": f"{100 * accuracy:.2f} %",
        "chance (largest class)": f"{100 * float(counts.max() / counts.sum()):.2f} %",
        "peak resident memory": f"{peak / 1e9:.2f} GB, mapped pages of the store included",
    }
    command = f"`python benchmarks/train_store.py STORE {options}`"
    lines = ["# Training on a large store", "", command, "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in rows.items()]
    text = "\n".join(lines) + "\n"
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "train_store.md").write_text(text, encoding="utf-8")
    print(text)


def drop_pages(store: Store) -> None:
    """Let the system drop the terms from its cache, and from the map of this process."""
    mapped: object = store.terms
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    assert isinstance(mapped, mmap.mmap)
    mapped.madvise(mmap.MADV_DONTNEED)
    descriptor = os.open(store.path / "terms.npy", os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


@torch.no_grad()
def test_accuracy(model: ScalableNFGNN, store: Store, index: torch.Tensor, device: str) -> float:
    model.eval()
    right = 0
    for part in index.split(2**15):
        predicted = model.forward_rows(store.rows(part).to(device)).argmax(1).cpu()
        right += int((predicted == store.y[part]).sum())
    return right / len(index)


def machine(arguments: argparse.Namespace) -> str:
    """Describe what the training ran on."""
    if arguments.device.startswith("cuda"):
        return f"{torch.cuda.get_device_name()}, {os.cpu_count()} cores"
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{arguments.threads} threads of an {processor}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
