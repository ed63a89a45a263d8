"""Global filters in the scalable form: the same rows, one filter for all of them."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.bernnet import NonNegative
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.spectral import Basis, LambdaMax, Response

_COST = "O(Knf + nfh), once O(Kmf)"


@register_model("PolyGNN with the filter first", 2022, _COST, mini_batch=True)
class ScalablePolyGNN(Scalable):
    r"""The same as :class:`ScalableNFGNN` with one filter for the whole graph.

    .. math:: Z_i = \mathrm{MLP}\Big(\sum_{k=0}^{K} γ_k\, X^{(k)}_i\Big)

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout, batch_norm: of :class:`ScalableNFGNN`.
            (default: ``64``, ``2``, ``0.5``, ``False``)
        K, basis, init, alpha, self_loops, lambda_max: of :class:`~nfgnn.nn.PolyConv`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        batch_norm: bool = False,
        K: int = 10,
        basis: str | Basis = "chebyshev",
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
    ) -> None:
        prop = PolyConv(K, basis, init, alpha, self_loops, lambda_max)
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm
        )


@register_model("GPRGNN with the filter first", 2021, _COST, mini_batch=True)
class ScalableGPRGNN(Scalable):
    r"""The filter of :class:`~nfgnn.nn.models.gprgnn.GPRGNN` on the raw features, then an MLP.

    .. math:: Z = \mathrm{MLP}\Big(\sum_{k=0}^{K} γ_k \hat A^k X\Big), \qquad \hat A = D^{-1/2}(A + I)D^{-1/2}

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout, batch_norm: of :class:`ScalableNFGNN`.
            (default: ``64``, ``2``, ``0.5``, ``False``)
        K (int): length of the longest walk. (default: ``10``)
        alpha (float): restart probability of the initial weights. (default: ``0.1``)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        batch_norm: bool = False,
        K: int = 10,
        alpha: float = 0.1,
    ) -> None:
        prop = PolyConv(K, "monomial", "ppr", alpha, self_loops=True)
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm
        )


@register_model("BernNet with the filter first", 2021, _COST, mini_batch=True)
class ScalableBernNet(Scalable):
    r"""The filter of :class:`~nfgnn.nn.models.bernnet.BernNet` on the raw features, then an MLP.

    .. math:: Z = \mathrm{MLP}\Big(\sum_{k=0}^{K} \mathrm{ReLU}(θ_k)\, b_k(\tilde L)\, X\Big)

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout, batch_norm: of :class:`ScalableNFGNN`.
            (default: ``64``, ``2``, ``0.5``, ``False``)
        K (int): degree of the filter. (default: ``10``)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        batch_norm: bool = False,
        K: int = 10,
    ) -> None:
        prop = NonNegative(K, "bernstein", "all-pass")
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm
        )


@register_model("SGC with the filter first", 2019, "O(nfc), once O(Kmf)", mini_batch=True)
class ScalableSGC(Scalable):
    r"""One linear map of :math:`\hat A^K X`, as :class:`~nfgnn.nn.models.sgc.SGC`; the power is computed before.

    .. math:: Z = \hat A^K X W + b, \qquad \hat A = D^{-1/2}(A + I)D^{-1/2}

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        K (int): number of steps. (default: ``2``)
        dropout (float): dropout on the filtered features. (default: ``0.0``)
    """

    def __init__(
        self, in_channels: int, out_channels: int, K: int = 2, dropout: float = 0.0
    ) -> None:
        prop = PolyConv(K, "monomial", lambda t: (-t) ** K, self_loops=True, learnable=False)
        super().__init__(prop, in_channels, out_channels, 1, 1, dropout, batch_norm=False)
