"""Personalised propagation of neural predictions."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model


@register_model(
    "Predict then Propagate: Graph Neural Networks meet Personalized PageRank", 2019, "O(nfh + Kmc)"
)
class APPNP(Decoupled):
    r"""An MLP whose scores are propagated by personalised PageRank
    (`Gasteiger et al. <https://arxiv.org/abs/1810.05997>`_).

    .. math:: Z^{(0)} = \mathrm{MLP}(X), \quad Z^{(k+1)} = (1-α)\,\hat A Z^{(k)} + α Z^{(0)}, \qquad
              \hat A = D^{-1/2}(A + I)D^{-1/2}

    K steps are the fixed polynomial :math:`\sum_{k<K} α(1-α)^k \hat A^k + (1-α)^K \hat A^K`.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout: see :class:`MLP`. (default: ``64``, ``2``, ``0.5``)
        filter_dropout (float): dropout between MLP and propagation. (default: ``0.0``)
        K (int): number of steps. (default: ``10``)
        alpha (float): restart probability. (default: ``0.1``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        filter_dropout: float = 0.0,
        K: int = 10,
        alpha: float = 0.1,
    ) -> None:
        prop = PolyConv(
            K=K, basis="monomial", init="ppr", alpha=alpha, self_loops=True, learnable=False
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout)
