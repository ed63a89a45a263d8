"""Baselines of the timings: Algorithm 1 and models of PyTorch Geometric, written the plain way.

:class:`PlainNFGNN` follows the paper line by line with PyG's ``MessagePassing``: it normalises the
graph in every forward pass, gathers and scatters along edges in every step, and keeps dense
features. The training loop is the usual one: step, evaluation, ``.item()``.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, ChebConv, GCNConv, MessagePassing
from torch_geometric.utils import add_self_loops, get_laplacian


class PlainNFConv(MessagePassing):
    """The node-oriented filter as a message-passing layer."""

    def __init__(self, channels: int, K: int = 10, rank: int = 1) -> None:
        super().__init__(aggr="add")
        self.K = K
        self.weight = nn.Parameter(torch.randn(channels, rank) / channels**0.5)
        self.gamma = nn.Parameter(torch.full((K + 1, rank), 2.0 / (K + 1)))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        index, norm = get_laplacian(
            edge_index, normalization="sym", dtype=x.dtype, num_nodes=x.shape[0]
        )
        # L - I, which assumes λ_max = 2.
        index, norm = add_self_loops(index, norm, fill_value=-1.0, num_nodes=x.shape[0])
        terms = [x, self.propagate(index, x=x, norm=norm)]
        for _ in range(self.K - 1):
            terms.append(2 * self.propagate(index, x=terms[-1], norm=norm) - terms[-2])
        out = torch.zeros_like(x)
        for k, term in enumerate(terms):
            eta = torch.sigmoid(term @ self.weight) @ self.gamma[k]
            out = out + eta[:, None] * term
        return out

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm[:, None] * x_j


class PlainNFGNN(nn.Module):
    """(a) NFGNN as one would first write it."""

    def __init__(self, f: int, c: int, hidden: int = 64, K: int = 10) -> None:
        super().__init__()
        self.lin1 = nn.Linear(f, hidden)
        self.lin2 = nn.Linear(hidden, c)
        self.prop = PlainNFConv(c, K)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.relu(self.lin1(F.dropout(x, 0.5, self.training)))
        return self.prop(self.lin2(F.dropout(x, 0.5, self.training)), edge_index)


class PygNet(nn.Module):
    """(b) Two layers of a PyG convolution, 64 hidden; or an MLP and PyG's APPNP."""

    def __init__(self, kind: str, f: int, c: int, hidden: int = 64, K: int = 10) -> None:
        super().__init__()
        self.prop = None
        if kind == "GCN":
            self.first = GCNConv(f, hidden)
            self.second = GCNConv(hidden, c)
        elif kind == "ChebNet":
            self.first = ChebConv(f, hidden, K=3)
            self.second = ChebConv(hidden, c, K=3)
        else:
            self.first = nn.Linear(f, hidden)
            self.second = nn.Linear(hidden, c)
            self.prop = APPNP(K, 0.1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edges = () if self.prop is not None else (edge_index,)
        x = F.relu(self.first(F.dropout(x, 0.5, self.training), *edges))
        x = self.second(F.dropout(x, 0.5, self.training), *edges)
        return x if self.prop is None else self.prop(x, edge_index)


def train_epochs(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    train: Tensor,
    val: Tensor,
    epochs: int,
) -> None:
    """The usual loop: a training step and an evaluation in every epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index)[train], y[train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x, edge_index)
            F.cross_entropy(out[val], y[val]).item()
            (out[val].argmax(-1) == y[val]).float().mean().item()
