"""NFNet, a deep residual network of spectral convolutions."""

from nfgnn.nn.argument_checks import check_counts, check_heads
from nfgnn.nn.conv import SpectralConv
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.residual_stack import ResidualStack
from nfgnn.spectral import Basis


@register_model(
    "Node-oriented Spectral Filtering for Graph Neural Networks (residual network)",
    2026,
    "O(nfh + L(Kmh + Knh²))",
)
class NFNet(ResidualStack):
    r"""A deep residual network of spectral blocks.

    Every block computes the K + 1 terms of its normalised input, with a matrix of its own for each
    order (:class:`~nfgnn.nn.SpectralConv`), then GELU, dropout, a linear map and the residual
    connection (:class:`ResidualStack`). With a gate, every node and head weighs the orders itself.

    .. math::
        H ← H + \mathrm{GELU}\Big(\sum_{k=0}^{K} (η_k ∘ p_k(M)\, \mathrm{norm}(H))\, W_k
        + b\Big)\, W + b'

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the network. (default: ``128``)
        num_layers (int): number of blocks. (default: ``4``)
        dropout (float): dropout rate, also on the projected input. (default: ``0.3``)
        K, basis, operator, gate, heads, self_loops: see :class:`~nfgnn.nn.SpectralConv`.
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
        K: int = 1,
        basis: str | Basis = "monomial",
        operator: str = "symmetric",
        gate: str = "none",
        heads: int = 8,
        self_loops: bool = False,
        jumping: str = "last",
        recompute: bool = False,
        norm: str = "layer",
        input_dropout: float = 0.0,
    ) -> None:
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        if gate != "none":
            check_heads(heads, hidden_channels=hidden_channels)
        convs = [
            SpectralConv(
                hidden_channels,
                hidden_channels,
                K=K,
                basis=basis,
                operator=operator,
                gate=gate,
                heads=heads,
                bias=False,
                self_loops=self_loops,
            )
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
