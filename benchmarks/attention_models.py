"""Time GAT and FAGCN next to the same networks of PyTorch Geometric's layers, in turn.

    python benchmarks/attention_models.py [--device cuda] [--rounds 5]

A step is forward and backward pass with dropout, on random graphs with the numbers of nodes and
edges of three datasets. The networks are GAT with 8 heads of 8 channels, and FAGCN with two layers
of width 64. Times are the minimum over all rounds in one process. Without dropout, both
implementations must compute the same logits. Writes
benchmarks/results/attention_models_<device>.md.
"""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from compiled_layer import milliseconds
from torch import Tensor, nn
from torch_geometric.nn import FAConv, GATConv
from torch_geometric.utils import coalesce, to_undirected

from nfgnn.nn import find_model
from nfgnn.training.device import machine_name

FEATURES = 64
CLASSES = 5
DROPOUT = 0.5
GRAPHS = {
    "Minesweeper": (10_000, 39_402),
    "Computers": (13_752, 245_861),
    "Tolokers": (11_758, 519_000),
}
"""Nodes and undirected edges."""


class PygGAT(nn.Module):
    """GAT of PyG's layers, with the parameters of nfgnn's model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.first = GATConv(FEATURES, 8, heads=8, dropout=DROPOUT)
        self.last = GATConv(64, CLASSES, heads=1, dropout=DROPOUT)
        weights = dict(model.named_parameters())
        for name, layer in (("first", self.first), ("last", self.last)):
            copy(layer.lin.weight, weights[f"{name}.lin.weight"])
            copy(layer.att_src, weights[f"{name}.att_src"][None])
            copy(layer.att_dst, weights[f"{name}.att_dst"][None])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(F.dropout(x, DROPOUT, self.training), edge_index)
        return self.last(F.dropout(F.elu(x), DROPOUT, self.training), edge_index)


class PygFAGCN(nn.Module):
    """FAGCN of PyG's layers, with the parameters of nfgnn's model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.lin1 = nn.Linear(FEATURES, 64)
        self.lin2 = nn.Linear(64, CLASSES)
        self.convs = nn.ModuleList()
        for _ in range(2):
            self.convs.append(FAConv(64, eps=0.3, dropout=DROPOUT, add_self_loops=False))
        weights = dict(model.named_parameters())
        for name, own in self.named_parameters():
            copy(own, weights[name])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = F.relu(self.lin1(F.dropout(x, DROPOUT, self.training)))
        first = F.dropout(first, DROPOUT, self.training)
        hidden = first
        for conv in self.convs:
            hidden = conv(hidden, first, edge_index)
        return self.lin2(hidden)


def copy(target: Tensor, source: Tensor) -> None:
    with torch.no_grad():
        target.copy_(source)


def network(name: str) -> tuple[nn.Module, nn.Module]:
    """Return a model of nfgnn and the same network of PyG's layers."""
    kind = find_model(name).model
    if name == "GAT":
        model = kind(FEATURES, CLASSES, hidden_channels=8, heads=8, dropout=DROPOUT)
        return model, PygGAT(model)
    model = kind(FEATURES, CLASSES, hidden_channels=64, K=2, dropout=DROPOUT)
    return model, PygFAGCN(model)


def compare(name: str, graph: str, device: str, rounds: int) -> str:
    """Return a row of the table."""
    torch.manual_seed(0)
    nodes, num_edges = GRAPHS[graph]
    edges = torch.randint(nodes, (2, num_edges))
    edge_index = coalesce(to_undirected(edges[:, edges[0] != edges[1]])).to(device)
    x = torch.randn(nodes, FEATURES, device=device)
    model, pyg = network(name)
    forms = {"PyG": pyg.to(device), "nfgnn": model.to(device)}

    logits = [form.eval()(x, edge_index) for form in forms.values()]
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-4)

    def step(form: nn.Module) -> None:
        form.train().zero_grad()
        form(x, edge_index).square().mean().backward()

    best = dict.fromkeys(forms, float("inf"))
    for form in forms.values():
        step(form)
    for _ in range(rounds):
        for key, form in forms.items():
            best[key] = min(best[key], milliseconds(lambda form=form: step(form), device))
    ratio = best["PyG"] / best["nfgnn"]
    return f"| {name} | {graph} | {best['PyG']:.1f} | {best['nfgnn']:.1f} | {ratio:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    lines = [
        "# Models with a weight per edge",
        "",
        f"`python benchmarks/attention_models.py --device {options.device}`, {machine_name()}.",
        "Milliseconds of a training step.",
        "",
        "| model | graph of the size of | PyG: ms | nfgnn: ms | PyG / nfgnn |",
        "|---|---|---:|---:|---:|",
    ]
    for name in ("GAT", "FAGCN"):
        for graph in GRAPHS:
            lines.append(compare(name, graph, options.device, options.rounds))
            print(lines[-1], flush=True)
    folder = Path(__file__).parent / "results"
    (folder / f"attention_models_{options.device}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
