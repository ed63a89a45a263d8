"""A deep residual network of GCN's convolution."""

import torch
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.residual_stack import BlockConv, ResidualStack
from nfgnn.nn.terms_linear import linear
from nfgnn.spectral import scaled_laplacian


@register_model(
    "Classic GNNs are Strong Baselines: Reassessing GNNs for Node Classification",
    2024,
    "O(nfh + L(mh + nh²))",
)
class ResidualGCN(ResidualStack):
    r"""GCN with residual connections, normalisation, dropout and many layers.

    The convolution of a block is that of :class:`GCN` plus a linear map of the node itself,
    :math:`\hat A X W + X W_0` with self-loops in :math:`\hat A`; see :class:`ResidualStack` and
    `Luo et al. <https://arxiv.org/abs/2406.08993>`_.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the network. (default: ``128``)
        num_layers (int): number of blocks. (default: ``4``)
        root_weight (bool): whether to add :math:`X W_0`. (default: ``True``)
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

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 128,
        num_layers: int = 4,
        root_weight: bool = True,
        dropout: float = 0.3,
        jumping: str = "last",
        recompute: bool = False,
        norm: str = "layer",
        input_dropout: float = 0.0,
    ) -> None:
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        convs = [_Convolution(hidden_channels, root_weight) for _ in range(num_layers)]
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


class _Convolution(BlockConv):
    def __init__(self, channels: int, root_weight: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1 + root_weight, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for own in self.weight:
            nn.init.xavier_uniform_(own)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        operator = scaled_laplacian(edge_index, edge_weight, x.shape[0], self_loops=True)
        terms = [operator.propagate(x), x]
        return linear(terms[: self.weight.shape[0]], self.weight)
