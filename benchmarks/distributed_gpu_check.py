"""Compare distributed training on one GPU with training in a single process.

    python benchmarks/distributed_gpu_check.py --out benchmarks/results/distributed_gpu_check.md
    python benchmarks/distributed_gpu_check.py --device cpu

The same model with batch normalisation is trained on the rows of a small generated store, with the
same batches and without dropout:

- ``nccl, 1 process``: DistributedDataParallel over NCCL, with SyncBatchNorm in the model;
- ``gloo, 2 processes on one GPU``: NCCL refuses two processes on one GPU, gloo accepts them. Only
  here are the statistics of SyncBatchNorm sums over processes: with a single process, torch does
  not communicate them;
- ``no torch.distributed``: the reference, on the GPU and on the CPU.

On the GPU all rows come through windows in pinned memory. With ``--device cpu`` the backend is gloo
and the layers are BatchNorm1d, because SyncBatchNorm needs a GPU.

The table has the largest differences from the reference: of the training and validation losses of
all epochs, relative; of the weights; and of the predicted probabilities of all rows. The bias of a
layer that is followed by batch normalisation does not change the output. Its gradient is rounding
noise, so it is not compared.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.modules._functions import SyncBatchNorm as SyncBatchNormFunction

from nfgnn.data import split
from nfgnn.nn import ScalableNFGNN
from nfgnn.store import RowLoader, Store, write_store
from nfgnn.training import TrainingConfig
from nfgnn.training.minibatch import MinibatchTrainer, RowTask
from nfgnn.training.trainer import train

ROWS, K, FEATURES, CLASSES, HIDDEN = 3_000, 3, 16, 4, 32
BATCH_SIZE = 250
WINDOW_BATCHES = 2
CONFIG = TrainingConfig(epochs=8, patience=8, batch_size=BATCH_SIZE, lr=0.01)
SAME_DEVICE = 1e-5
"""Largest difference of one process, with or without torch.distributed, on the same device."""
OTHER_SUMS = 1e-3
"""Largest difference where sums are taken in another order: other device, other processes."""


def make_store(path: Path) -> Store:
    """Write random rows whose classes are the signs of two projections."""
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(ROWS, K + 1, FEATURES, generator=generator)
    projection = torch.randn(FEATURES, 2, generator=generator)
    signs = (terms.mean(1) @ projection > 0).long()
    return write_store(path, terms, 2 * signs[:, 0] + signs[:, 1], dataset="generated")


class WindowTrainer(MinibatchTrainer):
    """Reads rows in small windows, although all of them would fit on the device."""

    def _loader(self, index: Tensor, seed: int | None) -> RowLoader:
        row_bytes = 4 * (K + 1) * FEATURES
        return RowLoader(
            self.task.source,
            self.task.y,
            index,
            BATCH_SIZE,
            seed,
            self.device,
            self.group.rank,
            self.group.size,
            window_bytes=WINDOW_BATCHES * BATCH_SIZE * row_bytes,
            keep=False,
        )


def trained(store_path: Path, device: str) -> dict[str, Any]:
    """Train in this process, alone or as a part of its process group."""
    store = Store.open(store_path)
    data = split(store.labels(), "random", seed=0)
    task = RowTask(store, store.y, *(data[f"{p}_mask"].nonzero()[:, 0] for p in ("train", "val")))
    torch.manual_seed(0)
    model = ScalableNFGNN(FEATURES, CLASSES, HIDDEN, K=K, dropout=0.0, batch_norm=True).to(device)
    trainer = WindowTrainer(model, task, CONFIG, 0, None)
    assert trainer.train_loader.steps > trainer.train_loader.window_batches  # several windows
    try:
        history = train(trainer, CONFIG.epochs)[0]
    finally:
        trainer.close()
    model.eval()
    with torch.no_grad():
        rows = store.rows(torch.arange(ROWS)).to(device)
        probabilities = model.forward_rows(rows).softmax(-1).cpu()
    cancelled = {f"mlp.lins.{i}.bias" for i in range(len(model.norms))}
    weights = {
        name: value.detach().cpu()
        for name, value in model.named_parameters()
        if name not in cancelled
    }
    return {
        "losses": torch.tensor([*history.train_loss, *history.val_loss]),
        "weights": weights,
        "probabilities": probabilities,
        "norm": type(model.norms[0]).__name__,
        "accuracy": history.val_accuracy[-1],
    }


def sync_batch_norm_difference(device: str) -> float:
    """Return how far a layer whose statistics go through the backend is from BatchNorm1d."""
    torch.manual_seed(0)
    x = torch.randn(BATCH_SIZE, HIDDEN, device=device)
    plain = nn.BatchNorm1d(HIDDEN, device=device)
    sync = nn.BatchNorm1d(HIDDEN, device=device)
    plain_x = x.clone().requires_grad_()
    sync_x = x.clone().requires_grad_()
    expected = plain(plain_x)
    # The module skips the communication if there is only one process; its function does not.
    found = SyncBatchNormFunction.apply(
        sync_x,
        sync.weight,
        sync.bias,
        sync.running_mean,
        sync.running_var,
        sync.eps,
        sync.momentum,
        dist.group.WORLD,
        1,
    )
    for result in (expected, found):
        result.square().mul(x).mean().backward()
    pairs = [
        (expected, found),
        (plain_x.grad, sync_x.grad),
        (plain.weight.grad, sync.weight.grad),
        (plain.running_var, sync.running_var),
    ]
    return max(float((a - b).abs().max()) for a, b in pairs)


def work(rank: int, size: int, backend: str, device: str, store: Path, scratch: Path) -> None:
    """Train as one process of a group; the first one saves the result."""
    if device != "cpu":
        torch.cuda.set_device(device)
    rendezvous = (scratch / f"{backend}-{size}").as_uri()
    dist.init_process_group(backend, init_method=rendezvous, rank=rank, world_size=size)
    try:
        result = trained(store, device)
        if backend == "nccl":
            result["sync"] = sync_batch_norm_difference(device)
    finally:
        dist.destroy_process_group()
    if rank == 0:
        torch.save(result, scratch / "result.pt")


def trained_by_group(size: int, backend: str, device: str, store: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        mp.spawn(work, (size, backend, device, store, scratch), nprocs=size)
        result: dict[str, Any] = torch.load(scratch / "result.pt")
    return result


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[float]:
    losses = (found["losses"] / expected["losses"] - 1).abs().max()
    weights = max(
        (found["weights"][name] - value).abs().max() for name, value in expected["weights"].items()
    )
    probabilities = (found["probabilities"] - expected["probabilities"]).abs().max()
    return [float(losses), float(weights), float(probabilities)]


def row(name: str, found: dict[str, Any], expected: dict[str, Any], limit: float) -> str:
    """Return a line of the table; values above the limit are bold."""
    cells = []
    for value in differences(found, expected):
        cells.append(f"{value:.0e}" if value <= limit else f"**{value:.0e}**")
    cells.append(f"{limit:.0e}")
    return f"| {name} | {found['norm']} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0", help="cuda:0 or cpu")
    parser.add_argument("--out", type=Path, help="file of the table")
    arguments = parser.parse_args()
    device = arguments.device
    gpu = device != "cpu"
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder) / "store").path
        reference = trained(store, device)
        backend = "nccl" if gpu else "gloo"
        group = trained_by_group(1, backend, device, store)
        lines = [row(f"{backend}, 1 process", group, reference, SAME_DEVICE)]
        if gpu:
            pair = trained_by_group(2, "gloo", device, store)
            lines.append(row("gloo, 2 processes on one GPU", pair, reference, OTHER_SUMS))
            cpu = trained(store, "cpu")
            lines.append(row("no torch.distributed, CPU", cpu, reference, OTHER_SUMS))
            gloo = trained_by_group(1, "gloo", "cpu", store)
            lines.append(row("gloo, 1 process, CPU", gloo, reference, OTHER_SUMS))
    heading = [
        "# Distributed training on one GPU",
        "",
        f"`python benchmarks/distributed_gpu_check.py --device {device}`, {machine(gpu)}, torch "
        f"{torch.__version__}.",
        f"{ROWS:,} rows, batches of {BATCH_SIZE}, windows of {WINDOW_BATCHES} batches, "
        f"{CONFIG.epochs} epochs; validation accuracy {reference['accuracy']:.3f}.",
        "Differences from training without torch.distributed on the same device; bold: above the "
        "limit.",
        "",
        "| | normalisation | losses | weights | probabilities | limit |",
        "|---|---|---:|---:|---:|---:|",
    ]
    failed = any("**" in line for line in lines)
    if gpu:
        sync = group["sync"]
        failed |= sync > SAME_DEVICE
        lines += [
            "",
            f"A SyncBatchNorm layer whose statistics go through NCCL differs by {sync:.0e} from "
            f"BatchNorm1d in output, gradients and running variance (limit {SAME_DEVICE:.0e}).",
        ]
    text = "\n".join([*heading, *lines]) + "\n"
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")
    raise SystemExit(failed)


def machine(gpu: bool) -> str:
    return torch.cuda.get_device_name() if gpu else "CPU"


if __name__ == "__main__":
    main()
