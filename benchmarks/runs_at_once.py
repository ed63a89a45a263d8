"""Time of an epoch of ten runs at once, compared with a single run, and where it goes.

    python benchmarks/runs_at_once.py    on a GPU; writes results/runs_at_once.md

The network is that of deep_network.py on Minesweeper: ResidualSAGE with 15 blocks of width 128. An
epoch is a training step and an evaluation. The sparse product of ten runs has 1,280 columns; its
blocks (rows per program, entries read at a time, warps) are compared, alone and in an epoch. At the
end, ten runs at once are compared with ten single runs: the losses of the first epochs agree.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from deep_network import seconds
from epoch_kernels import events
from torch_geometric.data import Data

from nfgnn import load_dataset, split
from nfgnn.kernels import recurrence
from nfgnn.spectral import scaled_laplacian
from nfgnn.training import RunConfig
from nfgnn.training.batched import BatchedTrainer, Member, capture_cuda_graph, fit_batched

HERE = Path(__file__).parent / "results"
WIDTH = 128
DEPTH = 15
RUNS = 10
REPEATS = 7
PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32}
TOLERANCE = {"bfloat16": 0.05, "float32": 0.005}
Blocks = tuple[int, int, int] | None
FORMER: Blocks = None  # one program per row, as for narrow rows
BLOCKS: list[Blocks] = [
    FORMER,
    (8, 2, 4),
    (8, 2, 2),
    (8, 4, 4),
    (4, 4, 4),
    (16, 2, 4),
    (16, 2, 8),
]


def members(data: Data, precision: str, runs: range, epochs: int, dropout: float) -> list[Member]:
    """Return runs that differ in their seeds."""
    settings = {
        "hidden_channels": WIDTH,
        "num_layers": DEPTH,
        "precision": precision,
        "epochs": epochs,
        "patience": epochs,
        "dropout": dropout,
        "lr": 0.003,
    }
    config = RunConfig.resolve("ResidualSAGE", settings, None, None, "none").for_graph(data)
    found = []
    for seed in runs:
        torch.manual_seed(seed)
        model = config.build(data.num_features, data.num_classes).to(data.x.device)
        found.append(Member(model, data.train_mask, data.val_mask, config.training))
    return found


@torch.no_grad()
def captured_epoch(data: Data, precision: str, runs: int) -> Callable[[], None]:
    """Return an epoch of all runs as a CUDA graph."""
    state = BatchedTrainer(members(data, precision, range(runs), 1000, 0.3), data)
    state.epoch()
    state.epoch()
    replay = capture_cuda_graph(state.epoch)

    def epoch(owner: BatchedTrainer = state) -> None:
        # The graph writes to tensors of the trainer, which have to live as long.
        assert owner.rows
        replay()

    return epoch


def milliseconds(call: Callable[[], None], count: int) -> float:
    call()

    def repeat() -> None:
        for _ in range(count):
            call()

    return 1000 * seconds(repeat) / count


def set_blocks(blocks: Blocks, least_width: int) -> None:
    """Let products of at least this width have these blocks."""
    recurrence._WIDE = 10**9 if blocks is None else least_width
    if blocks is not None:
        recurrence._WIDE_BLOCKS = blocks


def product_us(data: Data, dtype: torch.dtype, width: int, blocks: Blocks) -> float:
    """Return the microseconds of one sparse product."""
    set_blocks(blocks, 0)
    operator = scaled_laplacian(data.edge_index, None, data.num_nodes)
    matrix = operator.mean_matrix(torch.float32)
    x = torch.randn(data.num_nodes, width, device=data.x.device).to(dtype)

    def products() -> None:
        for _ in range(20):
            recurrence.matmul(matrix, x)

    products()
    return 1000 * milliseconds(capture_cuda_graph(products), 10) / 20


def named(blocks: Blocks) -> str:
    return (
        "one program per row" if blocks is None else "{} rows, {} entries, {} warps".format(*blocks)
    )


def epochs_table(data: Data) -> list[str]:
    """Time an epoch of one run and of ten, in turn, and return the medians."""
    lines = ["| precision | 1 run, ms | 10 runs, ms | 10 runs / 1 run |", "|---|---:|---:|---:|"]
    for precision in PRECISIONS:
        epochs = {runs: captured_epoch(data, precision, runs) for runs in (1, RUNS)}
        times: dict[int, list[float]] = {runs: [] for runs in epochs}
        for _ in range(REPEATS):
            for runs, epoch in epochs.items():
                times[runs].append(milliseconds(epoch, 50))
        single = median(times[1])
        ten = median(times[RUNS])
        lines.append(f"| {precision} | {single:.3f} | {ten:.3f} | {ten / single:.2f} |")
        print(lines[-1], flush=True)
    return lines


def blocks_table(data: Data) -> list[str]:
    """Time every choice of blocks alone, and the fastest in an epoch of ten runs."""
    chosen = (recurrence._WIDE, recurrence._WIDE_BLOCKS)
    lines = [
        "| blocks | precision | 1,280 columns, µs | 128 columns, µs | epoch of 10 runs, ms |",
        "|---|---|---:|---:|---:|",
    ]
    for precision, dtype in PRECISIONS.items():
        wide = {blocks: product_us(data, dtype, RUNS * WIDTH, blocks) for blocks in BLOCKS}
        fastest = sorted(BLOCKS, key=lambda blocks: wide[blocks])[:2]
        for blocks in BLOCKS:
            narrow = product_us(data, dtype, WIDTH, blocks)
            whole = ""
            if blocks in (FORMER, chosen[1], *fastest):
                set_blocks(blocks, chosen[0])
                whole = f"{milliseconds(captured_epoch(data, precision, RUNS), 20):.3f}"
            lines.append(
                f"| {named(blocks)} | {precision} | {wide[blocks]:.1f} | {narrow:.1f} | {whole} |"
            )
            print(lines[-1], flush=True)
    recurrence._WIDE, recurrence._WIDE_BLOCKS = chosen
    return lines


def kernels_table(data: Data, precision: str, runs: int) -> list[str]:
    """Return the twelve kernels of an epoch that take longest."""
    (epoch,) = events(captured_epoch(data, precision, runs), repeats=1)
    times: dict[str, list[float]] = defaultdict(list)
    for name, microseconds in epoch:
        times[name].append(microseconds)
    total = sum(sum(values) for values in times.values())
    lines = [
        f"{precision}, {runs} run(s): {len(epoch)} kernels, {total:.0f} µs.",
        "",
        "| kernel | launches | µs per epoch |",
        "|---|---:|---:|",
    ]
    for name, values in sorted(times.items(), key=lambda item: -sum(item[1]))[:12]:
        shortened = name.replace("|", "/").replace("at::native::", "")[:110]
        lines.append(f"| `{shortened}` | {len(values)} | {sum(values):.0f} |")
    print("\n".join(lines), flush=True)
    return lines


def largest_difference(data: Data, precision: str, epochs: int = 4) -> float:
    """Return the largest relative difference of losses between runs at once and single runs."""
    together = fit_batched(members(data, precision, range(RUNS), epochs, 0.0), data)
    largest = 0.0
    for seed in range(RUNS):
        (single,) = fit_batched(members(data, precision, range(seed, seed + 1), epochs, 0.0), data)
        for name in ("train_loss", "val_loss"):
            expected = torch.tensor(getattr(single, name))
            found = torch.tensor(getattr(together[seed], name))
            largest = max(largest, float(((found - expected).abs() / expected.abs()).max()))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--root", help="folder of the raw data sets")
    arguments = parser.parse_args()
    data = split(load_dataset("minesweeper", root=arguments.root), "public", 0).to("cuda")
    lines = [
        "# Ten runs at once",
        "",
        f"`python benchmarks/runs_at_once.py`, {torch.cuda.get_device_name()}, torch "
        f"{torch.__version__}. ResidualSAGE",
        "with 15 blocks of width 128 on Minesweeper. An epoch is a training step and an",
        "evaluation.",
        "",
        *epochs_table(data),
        "",
        "## Blocks of the sparse product",
        "",
        *blocks_table(data),
        "",
        "## Kernels of an epoch",
        "",
        *kernels_table(data, "bfloat16", RUNS),
        "",
        *kernels_table(data, "bfloat16", 1),
        "",
        *kernels_table(data, "float32", RUNS),
        "",
        "## Ten runs at once and ten single runs",
        "",
    ]
    differences = {precision: largest_difference(data, precision) for precision in PRECISIONS}
    for precision, difference in differences.items():
        lines.append(
            f"- {precision}, without dropout: the losses of the first 4 epochs differ by at most "
            f"{difference:.1e}."
        )
    print("\n".join(lines[-2:]), flush=True)
    (arguments.out / "runs_at_once.md").write_text("\n".join(lines) + "\n")
    for precision, difference in differences.items():
        if difference > TOLERANCE[precision]:
            raise SystemExit(f"{precision}: ten runs at once differ from single runs")


if __name__ == "__main__":
    main()
