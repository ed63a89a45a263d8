"""A deep residual network of GraphSAGE's convolution."""

from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.conv import SpectralConv
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.residual_stack import ResidualStack


@register_model("Inductive Representation Learning on Large Graphs", 2017, "O(nfh + L(mh + nh²))")
class ResidualSAGE(ResidualStack):
    r"""GraphSAGE with residual connections, normalisation, dropout and many layers.

    The convolution of a block is :math:`X W_0 + D^{-1} A X W_1`, a matrix for a node and one for
    the mean over its neighbours (`Hamilton et al. <https://arxiv.org/abs/1706.02216>`_); see
    :class:`ResidualStack`.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the network. (default: ``128``)
        num_layers (int): number of blocks. (default: ``4``)
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
        dropout: float = 0.3,
        jumping: str = "last",
        recompute: bool = False,
        norm: str = "layer",
        input_dropout: float = 0.0,
    ) -> None:
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        convs = [
            SpectralConv(hidden_channels, hidden_channels, operator="mean", bias=False)
            for _ in range(num_layers)
        ]
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
