"""Convolutions with auto-regressive moving average filters."""

import torch
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout, dropout_dense
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.spectral import ScaledLaplacian, scaled_laplacian


@register_model("Graph Neural Networks with Convolutional ARMA Filters", 2021, "O(Knfh + Kmh)")
class ARMA(NodeModel):
    r"""Two ARMA layers (`Bianchi et al. <https://arxiv.org/abs/1901.01343>`_): rational filters.

    .. math:: X_s^{(k+1)} = σ\big(\hat A X_s^{(k)} W_s + X V_s + b_s\big), \qquad
              X' = \frac1S \sum_{s=1}^{S} X_s^{(K)}

    σ is ReLU in the first layer and the identity in the last. The first step has its own
    :math:`W_s`, because it maps features to hidden channels; the other steps share theirs. On
    graphs without self-loops, it computes the same as a stack of
    :class:`torch_geometric.nn.ARMAConv` with ``shared_weights``, but one product with the graph
    serves all S stacks and the features may be sparse.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width between the layers. (default: ``16``)
        num_stacks (int): number S of parallel filters. (default: ``3``)
        K (int): number of iterations. (default: ``2``)
        dropout (float): dropout on the input of both layers. (default: ``0.5``)
        skip_dropout (float): further dropout on the X that :math:`V_s` maps. (default: ``0.25``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 16,
        num_stacks: int = 3,
        K: int = 2,
        dropout: float = 0.5,
        skip_dropout: float = 0.25,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels, num_stacks=num_stacks, K=K)
        check_rates(dropout=dropout, skip_dropout=skip_dropout)
        self.first = _Stacks(in_channels, hidden_channels, num_stacks, K, skip_dropout, nn.ReLU())
        self.last = _Stacks(
            hidden_channels, out_channels, num_stacks, K, skip_dropout, nn.Identity()
        )
        self.dropout = dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.first.reset_parameters()
        self.last.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        operator = scaled_laplacian(edge_index, edge_weight, x.shape[0])
        hidden = self.first(dropout(x, self.dropout, self.training), operator)
        out: Tensor = self.last(dropout_dense(hidden, self.dropout, self.training), operator)
        return out


class _Stacks(nn.Module):
    """One layer: S recursions as columns of one matrix, then their mean."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_stacks: int,
        K: int,
        dropout: float,
        act: nn.Module,
    ) -> None:
        super().__init__()
        self.init = Linear(in_channels, num_stacks * out_channels, bias=False)
        self.root = Linear(in_channels, num_stacks * out_channels, bias=False)
        self.weight = nn.Parameter(torch.empty(num_stacks, out_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(num_stacks * out_channels))
        self.K = K
        self.dropout = dropout
        self.act = act

    def reset_parameters(self) -> None:
        stacks = len(self.weight)
        first = self.init.weight.chunk(stacks)
        root = self.root.weight.chunk(stacks)
        # Each stack is drawn on its own, because the scale depends on the shape.
        for block in (*first, *root, *self.weight):
            nn.init.xavier_uniform_(block)
        nn.init.zeros_(self.bias)

    def forward(self, x: Features, operator: ScaledLaplacian) -> Tensor:
        shape = self.weight.shape[:2]
        out: Tensor = self.init(x)
        for step in range(self.K):
            if step:
                stacks = out.unflatten(-1, shape)
                out = torch.einsum("nsi,sij->nsj", stacks, self.weight).flatten(-2)
            root = self.root(dropout(x, self.dropout, self.training)) + self.bias
            out = self.act(operator.propagate(out) + root)
        mean: Tensor = out.unflatten(-1, shape).mean(-2)
        return mean
