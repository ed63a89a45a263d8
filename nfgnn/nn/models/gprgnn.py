"""Generalised PageRank."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model


@register_model(
    "Adaptive Universal Generalized PageRank Graph Neural Network", 2021, "O(nfh + Kmc)"
)
class GPRGNN(Decoupled):
    r"""An MLP whose scores are spread by walks of learned weight (`Chien et al. <https://arxiv.org/abs/2006.07988>`_).

    .. math:: Z = \sum_{k=0}^{K} γ_k \hat A^k\,\mathrm{MLP}(X), \qquad \hat A = D^{-1/2}(A + I)D^{-1/2}

    The weights start as personalised PageRank's: :math:`γ_k = α(1-α)^k`, :math:`γ_K = (1-α)^K`.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout: of the :class:`MLP`. (default: ``64``, ``2``, ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.5``)
        K (int): length of the longest walk. (default: ``10``)
        alpha (float): restart probability of the initial weights; 1 is the MLP alone. (default: ``0.1``)
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
        prop = PolyConv(K, "monomial", "ppr", alpha, self_loops=True)
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, filter_dropout
        )
