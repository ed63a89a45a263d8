"""Time a network of two NFConv layers in eager mode and compiled, in turn.

    python benchmarks/compiled_layer.py [--device cuda] [--rounds 5]

A step is forward and backward pass of Linear, NFConv, ReLU, Linear, NFConv, with K = 10. Times are
the least of all rounds, of the same process. Writes benchmarks/results/compiled_layer_<device>.md.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import erdos_renyi_graph

from nfgnn import NFConv

SIZES = {
    "183 nodes": (183, 0.017),
    "2,708 nodes": (2_708, 0.00144),
    "13,752 nodes": (13_752, 0.0026),
}
"""Random graphs with the numbers of nodes and edges of Texas, Cora and Computers."""


class Net(nn.Module):
    """Two filters, each after a linear layer."""

    def __init__(self, gate: str) -> None:
        super().__init__()
        self.lin1 = nn.Linear(64, 64)
        self.conv1 = NFConv(64, K=10, rank=2, gate=gate)
        self.lin2 = nn.Linear(64, 8)
        self.conv2 = NFConv(8, K=10, rank=2, gate=gate)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.relu(self.conv1(self.lin1(x), edge_index))
        return self.conv2(self.lin2(x), edge_index)


def milliseconds(call: Callable[[], object], device: str) -> float:
    """Return the time of one call, from enough calls to last a quarter of a second."""
    # On a CPU one thread computes. Its own time does not depend on what else the machine does.
    clock = time.perf_counter if device == "cuda" else time.process_time
    calls = 0
    start = clock()
    while clock() - start < 0.25:
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        calls += 1
    return 1e3 * (clock() - start) / calls


def compare(gate: str, size: str, device: str, rounds: int) -> str:
    torch.manual_seed(0)
    torch._dynamo.reset()
    n, density = SIZES[size]
    edge_index = erdos_renyi_graph(n, density).to(device)
    x = torch.randn(n, 64, device=device)
    net = Net(gate).to(device)
    compiled = torch.compile(net, fullgraph=True)
    forms = {"eager": net, "compiled": compiled}

    def step(form: nn.Module) -> None:
        net.zero_grad()
        form(x, edge_index).square().mean().backward()

    for form in forms.values():
        step(form)
    difference = float((net(x, edge_index) - compiled(x, edge_index)).detach().abs().max())
    assert difference < 1e-5, difference
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(rounds):
        for name, form in forms.items():
            best[name] = min(best[name], milliseconds(lambda form=form: step(form), device))
    ratio = best["eager"] / best["compiled"]
    return f"| {size} | {gate} | {best['eager']:.2f} | {best['compiled']:.2f} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gates", nargs="+", default=["term", "agreement"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "| graph | gate | eager: ms | compiled: ms | eager / compiled |",
        "|---|---|---:|---:|---:|",
    ]
    for size in SIZES:
        for gate in options.gates:
            lines.append(compare(gate, size, options.device, options.rounds))
            print(lines[-1], flush=True)
    name = f"compiled_layer_{options.device}.md"
    command = (
        f"python benchmarks/compiled_layer.py --device {options.device} --rounds {options.rounds}"
    )
    title = f"# Eager and compiled layers\n\n`{command}`, torch {torch.__version__}.\n\n"
    text = title + "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
