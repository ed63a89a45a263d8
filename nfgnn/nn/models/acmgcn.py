"""Adaptive channel mixing: a low-pass, a high-pass and an identity channel."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.adjacency_features import adjacency_features
from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import CSR, ScaledLaplacian, scaled_laplacian


@register_model("Revisiting Heterophily for Graph Neural Networks", 2022, "O(nfh + mh)")
class ACMGCN(NodeModel):
    r"""Every node mixes a low-pass, a high-pass and an identity channel
    (`Luan et al. <https://arxiv.org/abs/2210.07606>`_).

    .. math::
        H_L = \mathrm{ReLU}(P X W_L), \quad H_H = \mathrm{ReLU}((I - P) X W_H), \quad
        H_I = \mathrm{ReLU}(X W_I), \quad P = D^{-1}(A + I)

    .. math::
        α_i = \mathrm{softmax}\big(σ([w_L^⊤ H_{L,i}, w_H^⊤ H_{H,i}, w_I^⊤ H_{I,i}])\,W / 3\big),
        \qquad X'_i = 3\,(α_{iL} H_{L,i} + α_{iH} H_{H,i} + α_{iI} H_{I,i})

    in every layer, also in the last, with dropout before each. The factor 3 is that of the
    published code.

    ``structure`` adds a fourth channel :math:`H_S = \mathrm{ReLU}(A W_S)` with a weight for every
    node, so that the model can only be applied to the graph that it was trained on. As in ACM-GCN+
    the channels then pass a layer normalisation before α is computed, 4 replaces the 3 in the
    softmax, and the sum has no factor.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the hidden layers. (default: ``64``)
        num_layers (int): number of layers. (default: ``2``)
        dropout (float): dropout on the input of every layer. (default: ``0.5``)
        structure (bool): whether to add the channel of the adjacency matrix. (default: ``False``)
        num_nodes (int): number of nodes, needed for ``structure`` only. The trainer sets it.
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        structure: bool = False,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        if structure and num_nodes is None:
            raise ValueError("structure needs num_nodes")
        self.weights_per_node = structure
        self.num_nodes = num_nodes if structure else None
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        check_rates(dropout=dropout)
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(_Mixture(a, b, self.num_nodes) for a, b in pairwise(widths))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for layer in self.layers:
            if isinstance(layer, _Mixture):
                layer.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        n = x.shape[0]
        operator = scaled_laplacian(edge_index, edge_weight, n, self_loops=True)
        dtype = next(self.parameters()).dtype
        rows = None
        if self.num_nodes is not None:
            rows = adjacency_features(edge_index, edge_weight, n, self.num_nodes, dtype)
        first, *others = self.layers
        out: Tensor = first(dropout(x, self.dropout, self.training), operator, rows)
        for layer in others:
            out = layer(dropout(out, self.dropout, self.training), operator, rows)
        return out


class _Mixture(nn.Module):
    """A layer: three or four channels and their mixture, chosen by every node."""

    def __init__(self, in_channels: int, out_channels: int, num_nodes: int | None) -> None:
        super().__init__()
        self.lin = Linear(in_channels, 3 * out_channels, bias=False)
        self.structure: Linear | None = None
        self.norms = nn.ModuleList()
        channels = 3
        if num_nodes is not None:
            self.structure = Linear(num_nodes, out_channels, bias=False)
            self.norms.extend(nn.LayerNorm(out_channels) for _ in range(4))
            channels = 4
        self.score = nn.Parameter(torch.empty(channels, out_channels))
        self.mixing = nn.Parameter(torch.empty(channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.score.shape[1] ** -0.5
        nn.init.uniform_(self.lin.weight, -bound, bound)
        if self.structure is not None:
            nn.init.uniform_(self.structure.weight, -bound, bound)
        for norm in self.norms:
            if isinstance(norm, nn.LayerNorm):
                norm.reset_parameters()
        nn.init.uniform_(self.score, -1.0, 1.0)
        bound = len(self.mixing) ** -0.5
        nn.init.uniform_(self.mixing, -bound, bound)

    def forward(self, x: Features, operator: ScaledLaplacian, rows: CSR | None) -> Tensor:
        transformed = self.lin(x)
        width = self.score.shape[1]
        _, high, own = transformed.chunk(3, -1)
        # One product with the graph serves the low-pass and the high-pass.
        low_mean, high_mean = operator.means(transformed[..., : 2 * width]).chunk(2, -1)
        channels = [low_mean, high - high_mean, own]
        if self.structure is not None and rows is not None:
            channels.append(self.structure(rows))
        h = F.relu(torch.stack(channels, -2))
        compared = h
        if self.structure is not None:
            normed = [norm(h[..., i, :]) for i, norm in enumerate(self.norms)]
            compared = torch.stack(normed, -2)
        scores = torch.sigmoid((compared * self.score).sum(-1))
        share = torch.softmax(scores @ self.mixing / len(channels), -1)
        mixture = (share[..., None] * h).sum(-2)
        return mixture if self.structure is not None else 3 * mixture
