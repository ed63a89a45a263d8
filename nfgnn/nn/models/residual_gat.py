"""Deep residual networks of graph attention."""

import torch
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_heads
from nfgnn.nn.attention import attend
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.residual_stack import BlockConv, ResidualStack
from nfgnn.nn.terms_linear import linear
from nfgnn.spectral import scaled_laplacian


@register_model("Graph Attention Networks (residual)", 2024, "O(nfh + L(mh + nh²))")
class ResidualGAT(ResidualStack):
    r"""GAT with residual connections, normalisation, dropout and many layers.

    The convolution of a block is that of :class:`GAT`, attention over a node and its neighbours,
    with concatenated heads; see :class:`ResidualStack`. Edge weights are not used.

    .. math:: X'_i = \sum_{j ∈ N(i) ∪ \{i\}} α_{ij} W X_j + b

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the network, a multiple of ``heads``. (default: ``128``)
        num_layers (int): number of blocks. (default: ``4``)
        heads (int): number of heads. (default: ``8``)
        dropout (float): dropout rate, also on the projected input. (default: ``0.3``)
        jumping (str): what the classifier reads: ``"last"``, the output of the last block, or
            ``"mean"``, the mean over the projected features and all blocks.
            (default: ``"last"``)
        recompute (bool): whether the backward pass computes the blocks again instead of storing
            what they compute: less memory, about a third more time. (default: ``False``)
        norm (str): normalisation before every block and the classifier: ``"layer"``, ``"batch"``
            or ``"none"``. (default: ``"layer"``)
        input_dropout (float): dropout rate of the features. (default: ``0.0``)
    """

    separate = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 128,
        num_layers: int = 4,
        heads: int = 8,
        dropout: float = 0.3,
        jumping: str = "last",
        recompute: bool = False,
        norm: str = "layer",
        input_dropout: float = 0.0,
    ) -> None:
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        check_heads(heads, hidden_channels=hidden_channels)
        convs = [_AttentionConv(hidden_channels, heads, self.separate) for _ in range(num_layers)]
        super().__init__(
            in_channels,
            out_channels,
            hidden_channels,
            convs,
            dropout=dropout,
            jumping=jumping,
            recompute=recompute,
            norm=norm,
            input_dropout=input_dropout,
        )


@register_model(
    "A Critical Look at the Evaluation of GNNs under Heterophily", 2023, "O(nfh + L(mh + nh²))"
)
class ResidualGATSep(ResidualGAT):
    r"""GAT-sep: attention over the neighbours only, and a matrix of its own for the node.

    The convolution of a block is :math:`X W_0 + \mathrm{attention}(X) W_1` (`Platonov et al.
    <https://arxiv.org/abs/2302.11640>`_); otherwise it is :class:`ResidualGAT`.
    """

    separate = True


class _AttentionConv(BlockConv):
    def __init__(self, channels: int, heads: int, separate: bool) -> None:
        super().__init__()
        self.heads = heads
        self.separate = separate
        self.weight = nn.Parameter(torch.empty(1, channels, channels))
        self.out_weight = None
        if separate:
            self.out_weight = nn.Parameter(torch.empty(2, channels, channels))
        self.source = nn.Parameter(torch.empty(heads, channels // heads))
        self.target = nn.Parameter(torch.empty(heads, channels // heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight[0])
        nn.init.xavier_uniform_(self.source)
        nn.init.xavier_uniform_(self.target)
        if self.out_weight is not None:
            bound = (2 * self.weight.shape[-1]) ** -0.5
            nn.init.uniform_(self.out_weight, -bound, bound)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        # Attention replaces edge weights, so they are ignored.
        operator = scaled_laplacian(edge_index, None, x.shape[0], self_loops=not self.separate)
        graph = operator.adjacency(torch.float32)
        values = linear([x], self.weight).unflatten(-1, self.source.shape)
        source = (values * self.source.to(values.dtype)).sum(-1)
        target = (values * self.target.to(values.dtype)).sum(-1)
        attended = attend(source, target, values, graph).flatten(-2)
        if self.out_weight is None:
            return attended
        return linear([x, attended], self.out_weight)
