"""Time of every kernel of an epoch at the size of pokec, compared with the bandwidth of a copy.

    python benchmarks/epoch_kernels.py    needs a GPU; writes benchmarks/results/epoch_kernels.md

NFGNN with K = 10, 64 hidden channels, 65 features and 2 classes on a generated graph of 1.6 million
nodes and 61 million directed edges. An epoch is captured once, as in training, and replayed under
the profiler of torch.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import torch
from epochs import config, random_graph
from gpu_check import copy_bandwidth
from torch.profiler import ProfilerActivity, profile

from nfgnn.training.batched import BatchedTrainer, Member, capture_cuda_graph

ORDER = {
    "_mlp_kernel": ["both layers, training and evaluation"],
    "_mlp_gradient_kernel": ["both layers, gradients"],
    "_filter_kernel": ["weighted sum, training", "weighted sum, evaluation"],
    "_filter_gradient_kernel": ["weighted sum, gradient"],
    "_scale_rows_kernel": ["into the recurrence", "into the adjoint"],
    "_loss_kernel": ["loss, accuracy, gradient"] * 2,
}
"""What the kernels of one name do, in the order in which an epoch calls them."""


def events(replay, repeats: int = 5) -> list[list[tuple[str, float]]]:  # type: ignore[no-untyped-def]
    """Return name and microseconds of every kernel, epoch by epoch."""
    replay()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(repeats):
            replay()
        torch.cuda.synchronize()
    kernels = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    kernels.sort(key=lambda event: event.time_range.start)
    length = len(kernels) // repeats
    names = [(event.name, event.device_time) for event in kernels]
    return [names[i * length : (i + 1) * length] for i in range(repeats)]


def labelled(epoch: list[tuple[str, float]], steps: int) -> dict[str, tuple[int, float]]:
    """Return launches and microseconds of the parts of an epoch.

    A step of a recurrence has two launches: one for long rows and one for short rows.
    """
    total: dict[str, list[float]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    for name, time in epoch:
        place = seen[name]
        seen[name] += 1
        if name == "_rows_kernel":
            label = "steps of the recurrence" if place < 2 * steps else "steps of the adjoint"
            total[label].append(time)
        elif name in ORDER and place < len(ORDER[name]):
            total[ORDER[name][place]].append(time)
        else:
            total["everything else"].append(time)
    return {label: (len(times), sum(times)) for label, times in total.items()}


def floors(n: int, m: int, F: int, H: int, C: int, K: int) -> dict[str, tuple[float, float]]:
    """Return bytes that are read and written once, and with a sector of 32 bytes per edge."""
    pattern = 4 * m + 8 * n
    forward = 4 * n * (4 * 2 * C + 2)
    adjoint = 4 * n * (4 * C + 2)
    once = {
        "both layers, training and evaluation": 4 * n * (F + H + 2 * C),
        "into the recurrence": 4 * n * (3 * 2 * C + 1),
        "steps of the recurrence": K * (pattern + forward),
        "weighted sum, training": 4 * n * C * (K + 2),
        "weighted sum, evaluation": 4 * n * C * (K + 2),
        "loss, accuracy, gradient": 2 * n * (4 * 2 * C + 4 + 8),
        "weighted sum, gradient": 4 * n * C * (2 * (K + 1) + 1),
        "into the adjoint": 4 * n * (2 * C + 1),
        "steps of the adjoint": K * (pattern + adjoint),
        "both layers, gradients": 4 * n * (F + H + C),
    }
    gathered = {"steps of the recurrence": K * 32 * m, "steps of the adjoint": K * 32 * m}
    return {
        label: (float(size), float(size + gathered.get(label, 0))) for label, size in once.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    n, F, C, K, H = 1_632_803, 65, 2, 10, 64
    data, setup = random_graph(n, 61_200_000, F, C, "cuda"), config("NFGNN", 100)
    bandwidth = copy_bandwidth()
    model = setup.build(F, C, n).cuda()
    with torch.no_grad():
        state = BatchedTrainer(
            [Member(model, data.train_mask, data.val_mask, setup.training)], data
        )
        state.epoch()
        state.epoch()
        epochs = [labelled(epoch, K) for epoch in events(capture_cuda_graph(state.epoch))]
    gpu = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    bytes_of = floors(n, data.edge_index.shape[1], F, H, C, K)
    lines = [
        f"# The kernels of an epoch at the size of pokec, {gpu}",
        "",
        "`python benchmarks/epoch_kernels.py`. Milliseconds of an epoch. Lower bounds at the",
        f"bandwidth of a copy, {bandwidth:.2f} TB/s: reading and writing everything once; and, if",
        "nothing came from a cache, a sector of 32 bytes for every edge as well.",
        "",
        "| what | launches | ms | once | ms / once | with sectors |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    whole = 0.0
    for label in [*bytes_of, "everything else"]:
        launches = epochs[0].get(label, (0, 0.0))[0]
        ms = sorted(epoch.get(label, (0, 0.0))[1] for epoch in epochs)[len(epochs) // 2] / 1000
        whole += ms
        once, sectors = (size / bandwidth / 1e9 for size in bytes_of.get(label, (0.0, 0.0)))
        shown = (f"{once:.3f}", f"{ms / once:.1f}", f"{sectors:.3f}") if once else ("–",) * 3
        lines.append(f"| {label} | {launches} | {ms:.3f} | {' | '.join(shown)} |")
    lines += [f"| all | {sum(count for count, _ in epochs[0].values())} | {whole:.3f} | | | |", ""]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "epoch_kernels.md").write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
