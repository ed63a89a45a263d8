"""Generalised PageRank, after or before the MLP."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable


@register_model(
    "Adaptive Universal Generalized PageRank Graph Neural Network", 2021, "O(nfh + Kmc)"
)
class GPRGNN(Decoupled):
    r"""An MLP whose scores are propagated by walks with learned weights
    (`Chien et al. <https://arxiv.org/abs/2006.07988>`_).

    .. math:: Z = \sum_{k=0}^{K} γ_k \hat A^k\,\mathrm{MLP}(X), \qquad
              \hat A = D^{-1/2}(A + I)D^{-1/2}

    The weights start at those of personalised PageRank: :math:`γ_k = α(1-α)^k`,
    :math:`γ_K = (1-α)^K`.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout: see :class:`MLP`. (default: ``64``, ``2``, ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.5``)
        K (int): length of the longest walk. (default: ``10``)
        alpha (float): restart probability of the initial weights; 1 is the MLP alone.
            (default: ``0.1``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        filter_dropout: float = 0.5,
        K: int = 10,
        alpha: float = 0.1,
    ) -> None:
        prop = PolyConv(K=K, basis="monomial", init="ppr", alpha=alpha, self_loops=True)
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout)


@register_model("GPRGNN with the filter first", 2021, "O(Knf + nfh), once O(Kmf)", mini_batch=True)
class ScalableGPRGNN(Scalable):
    r"""The filter of :class:`GPRGNN` on the raw features, then an MLP.

    .. math:: Z = \mathrm{MLP}\Big(\sum_{k=0}^{K} γ_k \hat A^k X\Big)

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm: see
            :class:`ScalableNFGNN`.
        K, alpha: see :class:`GPRGNN`.
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
        prop = PolyConv(K=K, basis="monomial", init="ppr", alpha=alpha, self_loops=True)
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, batch_norm)
