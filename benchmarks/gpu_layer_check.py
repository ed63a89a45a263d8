"""Check NFConv and PolyConv on a GPU, for every gate and basis.

    python benchmarks/gpu_layer_check.py          writes benchmarks/results/gpu_layer_check.md

Output and gradients in float32, bfloat16, float16, under autocast and compiled are compared with
float64 on the CPU: of a batch of graphs with one-way edges and weights that require a gradient. The
table has the largest error, relative to the largest value of the output or of all gradients.
The column "compiled" is relative to float32 in eager mode.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.utils import erdos_renyi_graph

from nfgnn import NFConv, PolyConv
from nfgnn.nn import GATES
from nfgnn.spectral import BASES

N, CHANNELS = 2_000, 16
LIMITS = {
    "float32": 1e-4,
    "compiled": 1e-5,
    "autocast": 1e-4,
    "bfloat16": 0.05,
    "compiled bfloat16": 0.05,
    "float16": 0.01,
}


def make_layer(kind: str, basis: str) -> nn.Module:
    torch.manual_seed(0)
    if kind == "global":
        return PolyConv(K=5, basis=basis, symmetrize=True)
    return NFConv(CHANNELS, K=5, rank=2, basis=basis, gate=kind, symmetrize=True)


def results(
    layer: nn.Module, call: Callable[..., Tensor], x: Tensor, weight: Tensor
) -> list[Tensor]:
    """Return the output and all gradients, in float64 on the CPU."""
    layer.zero_grad()
    x = x.detach().clone().requires_grad_()
    weight = weight.detach().clone().requires_grad_()
    out = call(x, weight)
    out.float().square().mean().backward()
    tensors = [out, x.grad, weight.grad, *(p.grad for p in layer.parameters())]
    return [t.detach().double().cpu() for t in tensors]


def error(found: list[Tensor], exact: list[Tensor]) -> float:
    scale = max(float(t.abs().max()) for t in exact[1:])
    output = float((found[0] - exact[0]).abs().max() / exact[0].abs().max())
    gradients = [float((a - b).abs().max()) / scale for a, b in zip(found[1:], exact[1:])]
    return max(output, *gradients)


def check(kind: str, basis: str) -> str:
    torch._dynamo.reset()
    edges = erdos_renyi_graph(N, 0.002)
    edges = edges[:, edges[0] < edges[1]]
    graph = torch.arange(N) * 4 // N  # four graphs
    edges = edges[:, graph[edges[0]] == graph[edges[1]]]
    weight = torch.rand(edges.shape[1]) + 0.5
    x = torch.randn(N, CHANNELS)
    exact_layer = make_layer(kind, basis).double()
    cells = []
    eager: list[Tensor] = []

    def compare(
        name: str, dtype: torch.dtype, compiled: bool, context: AbstractContextManager
    ) -> None:
        layer = copy.deepcopy(exact_layer).to("cuda", dtype)
        form = torch.compile(layer, fullgraph=True) if compiled else layer
        edge_index = edges.cuda()
        batch = graph.cuda()

        def call(x: Tensor, weight: Tensor) -> Tensor:
            with context:
                return form(x, edge_index, weight, batch)

        found = results(layer, call, x.to("cuda", dtype), weight.cuda())
        # The same parameters and features, after rounding to the precision.
        rounded = copy.deepcopy(layer).double().cpu()
        exact = results(
            rounded, lambda x, w: rounded(x, edges, w, graph), x.to(dtype).double(), weight.double()
        )
        if name == "float32":
            eager.extend(found)
        value = error(found, eager if name == "compiled" else exact)
        passed = value < LIMITS[name]
        cells.append(f"{value:.0e}" if passed else f"**{value:.0e}**")

    compare("float32", torch.float32, False, nullcontext())
    compare("compiled", torch.float32, True, nullcontext())
    compare("autocast", torch.float32, False, torch.autocast("cuda", torch.bfloat16))
    compare("bfloat16", torch.bfloat16, False, nullcontext())
    compare("compiled bfloat16", torch.bfloat16, True, nullcontext())
    compare("float16", torch.float16, False, nullcontext())
    return f"| {kind} | {basis} | {' | '.join(cells)} |"


def main() -> None:
    names = list(LIMITS)
    lines = [f"| gate | basis | {' | '.join(names)} |", "|---|---|" + "---:|" * len(names)]
    for kind in (*GATES, "global"):
        for basis in BASES:
            lines.append(check(kind, basis))
            print(lines[-1], flush=True)
    failed = sum("**" in line for line in lines)
    title = (
        "# Layers on a GPU\n\n`python benchmarks/gpu_layer_check.py`, "
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}. Largest errors of output and "
        "gradients relative to float64 on the CPU; bold: above the limit.\n\n"
    )
    path = Path(__file__).parent / "results" / "gpu_layer_check.md"
    path.write_text(title + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{failed} of {len(lines) - 2} rows above the limits")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
