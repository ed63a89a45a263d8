"""Time of an epoch of a deep residual network, compared with the same network of PyG's layers.

    python benchmarks/deep_network.py             on a GPU; writes results/deep_network.md
    python benchmarks/deep_network.py --check     only compares the kernels with torch

The network has 15 blocks of width 128 on Minesweeper: LayerNorm, GraphSAGE's convolution, GELU,
dropout, a linear map, dropout, residual connection. An epoch is a training step and an evaluation.
A second graph has the size of ogbn-arxiv (169,343 nodes, 1.2 million edges, generated); there
ResidualGCN is compared with PyG's GCN layers in the same network, in time and peak memory.
"""

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from epochs import random_graph
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

from nfgnn import load_dataset, split
from nfgnn.nn import residual_block
from nfgnn.nn.residual_block import DropoutStream
from nfgnn.nn.terms_linear import linear
from nfgnn.training import RunConfig
from nfgnn.training.batched import Member, fit_batched

HERE = Path(__file__).parent / "results"
Row = tuple[str, float, float]


class PygNetwork(nn.Module):
    """The residual network of :class:`nfgnn.nn.models.residual_stack.ResidualStack`, with PyG."""

    def __init__(
        self, conv: type[nn.Module], features: int, classes: int, width: int, depth: int
    ) -> None:
        super().__init__()
        self.lin_in = nn.Linear(features, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth + 1))
        self.convs = nn.ModuleList(conv(width, width) for _ in range(depth))
        self.lins = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.lin_out = nn.Linear(width, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(F.gelu(self.lin_in(x)), 0.3, self.training)
        for norm, conv, lin in zip(self.norms, self.convs, self.lins):
            hidden = F.dropout(F.gelu(conv(norm(h), edge_index)), 0.3, self.training)
            h = h + F.dropout(lin(hidden), 0.3, self.training)
        out: Tensor = self.lin_out(self.norms[-1](h))
        return out


def seconds(call: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def pyg_ms(model: nn.Module, data: Data, half: bool, epochs: int) -> float:
    """Return the milliseconds per epoch of the usual loop."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, fused=True)

    def run(count: int) -> None:
        for _ in range(count):
            model.train()
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                out = model(data.x, data.edge_index)
            F.cross_entropy(out.float()[data.train_mask], data.y[data.train_mask]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=half):
                out = model(data.x, data.edge_index).float()
            F.cross_entropy(out[data.val_mask], data.y[data.val_mask]).item()
            (out[data.val_mask].argmax(-1) == data.y[data.val_mask]).float().mean().item()

    run(5)
    return 1000 * seconds(lambda: run(epochs)) / epochs


def our_ms(name: str, data: Data, settings: dict[str, object], runs: int, epochs: int) -> float:
    """Return the milliseconds per epoch of all runs together, without one-time work."""

    def call(count: int) -> None:
        given = {**settings, "epochs": count, "patience": count, "dropout": 0.3, "lr": 0.003}
        config = RunConfig.resolve(name, given, None, None, "none").for_graph(data)
        members = []
        for seed in range(runs):
            torch.manual_seed(seed)
            model = config.build(data.num_features, data.num_classes).to(data.x.device)
            members.append(Member(model, data.train_mask, data.val_mask, config.training))
        fit_batched(members, data)

    few = max(5, epochs // 10)
    call(few)
    short = seconds(lambda: call(few))
    return 1000 * (seconds(lambda: call(epochs)) - short) / (epochs - few)


def peak_gib(measure: Callable[..., float], *arguments: object) -> tuple[float, float]:
    """Return the result of a measurement and its peak memory in GiB."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    result = measure(*arguments)
    return result, torch.cuda.max_memory_allocated() / 2**30


def minesweeper(width: int = 128, depth: int = 15, epochs: int = 100) -> list[Row]:
    data = split(load_dataset("minesweeper"), "public", 0).to("cuda")
    rows = []
    for half in (False, True):
        precision = "bfloat16" if half else "float32"
        torch.manual_seed(0)
        plain = PygNetwork(SAGEConv, data.num_features, data.num_classes, width, depth).cuda()
        ms, memory = peak_gib(pyg_ms, plain, data, half, 30)
        rows.append((f"PyG SAGEConv, {precision}", ms, memory))
        for runs in (1, 10):
            settings = {"hidden_channels": width, "num_layers": depth, "precision": precision}
            ms, memory = peak_gib(our_ms, "ResidualSAGE", data, settings, runs, epochs)
            rows.append((f"ResidualSAGE, {precision}, runs at once: {runs}", ms, memory))
            print(*rows[-1], flush=True)
    return rows


def arxiv_size(width: int = 256, depth: int = 5, epochs: int = 40) -> list[Row]:
    data = random_graph(169_343, 2_400_000, 128, 40, "cuda")
    rows = []
    for half in (False, True):
        precision = "bfloat16" if half else "float32"
        torch.manual_seed(0)
        plain = PygNetwork(GCNConv, 128, 40, width, depth).cuda()
        ms, memory = peak_gib(pyg_ms, plain, data, half, 10)
        rows.append((f"PyG GCNConv, {precision}", ms, memory))
        settings = {"hidden_channels": width, "num_layers": depth, "precision": precision}
        for name in ("ResidualGCN", "NFNet"):
            ms, memory = peak_gib(our_ms, name, data, settings, 1, epochs)
            rows.append((f"{name}, {precision}", ms, memory))
            print(*rows[-1], flush=True)
    return rows


def check() -> None:
    """Compare the kernels with torch in float64, without dropout, and their dropout with itself."""
    torch.manual_seed(0)
    off = DropoutStream(0.0, None, None)
    for width in (40, 128, 256):
        exact = [torch.randn(3000, width, dtype=torch.double, device="cuda") for _ in range(2)]
        shifts = [torch.randn(width, dtype=torch.double, device="cuda") for _ in range(3)]
        results = []
        for dtype in (torch.double, torch.float32):
            inputs = [value.to(dtype).requires_grad_() for value in (*exact, *shifts)]
            h, branch, bias, gamma, beta = inputs
            hidden = residual_block.activate(branch, bias, off, 0)
            out, y = residual_block.residual_norm(h, hidden, bias, gamma, beta, off, 1)
            product = linear([y, out], torch.ones(2, width, 3).to(y))
            gradients = torch.autograd.grad(product.square().mean(), inputs)
            results.append([product, *gradients])
        for found, expected in zip(results[1], results[0]):
            error = (found.double() - expected).abs().max() / expected.abs().max()
            assert error < 1e-4, (width, float(error))
    drop = DropoutStream.start(0.3, True, torch.device("cuda"))
    ones = torch.full((4000, 128), 5.0, device="cuda")
    zero = torch.zeros(128, device="cuda")
    kept = (residual_block.activate(ones, zero, drop, 3) > 0).float().mean()
    assert abs(float(kept) - 0.7) < 0.01, float(kept)
    print("the kernels agree with torch")


def table(title: str, rows: list[Row]) -> str:
    lines = [f"## {title}", "", "| | ms per epoch | peak memory, GiB |", "|---|---:|---:|"]
    lines += [f"| {name} | {ms:.2f} | {memory:.2f} |" for name, ms, memory in rows]
    return "\n".join(lines) + "\n"


def ratios(rows: list[Row]) -> str:
    """Return how the networks of the table of Minesweeper compare."""
    lines = []
    for start, precision in ((0, "float32"), (3, "bfloat16")):
        pyg, single, ten = (ms for _, ms, _ in rows[start : start + 3])
        lines.append(
            f"- {precision}: one run is {pyg / single:.1f} times as fast as PyG, and ten runs at "
            f"once take as long as {ten / single:.1f}\n  single runs."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare kernels with torch")
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    check()
    if arguments.check:
        return
    rows = minesweeper()
    parts = [
        "# Epochs of deep residual networks\n",
        f"`python benchmarks/deep_network.py`, {torch.cuda.get_device_name()}, torch "
        f"{torch.__version__}. An epoch is a training step and\nan evaluation. The networks of one "
        'table have the same blocks; "PyG" is the usual eager loop with\nPyG\'s layers, under '
        "autocast for bfloat16.\n",
        table("Minesweeper, 15 blocks of width 128", rows),
        ratios(rows),
        table("ogbn-arxiv's size, 5 blocks of width 256", arxiv_size()),
        "The graph has 169,343 nodes, 2.4 million directed edges, 128 features and 40 classes, "
        "generated.\nA block of ResidualGCN also has the linear map of the node itself, which "
        "PyG's network does not have.\n",
    ]
    text = "\n".join(parts)
    print(text)
    (arguments.out / "deep_network.md").write_text(text)


if __name__ == "__main__":
    main()
