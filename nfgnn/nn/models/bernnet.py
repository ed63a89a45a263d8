"""Non-negative filters in the Bernstein basis, after or before the MLP."""

from torch import Tensor

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable


class BernConv(PolyConv):
    """A filter in the Bernstein basis whose coefficients pass through a ReLU."""

    def __init__(self, K: int) -> None:
        super().__init__(K=K, basis="bernstein", init="all-pass")

    def coefficients(self) -> Tensor:
        return self.gamma.relu()


@register_model(
    "BernNet: Learning Arbitrary Graph Spectral Filters via Bernstein Approximation",
    2021,
    "O(nfh + Kmc)",
)
class BernNet(Decoupled):
    r"""An MLP, then a learned filter that is nowhere negative
    (`He et al. <https://arxiv.org/abs/2106.10994>`_).

    .. math:: Z = \sum_{k=0}^{K} \mathrm{ReLU}(θ_k)\, \frac{1}{2^K}\binom{K}{k}
              (2I - L)^{K-k} L^k\, \mathrm{MLP}(X)

    :math:`\mathrm{ReLU}(θ_k)` is close to the filter's value at frequency :math:`2k/K`. All start
    at one, the identity. The filter takes K products with the graph
    (:class:`~nfgnn.spectral.Bernstein`) instead of O(K²) for the sum as written.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout: see :class:`MLP`. (default: ``64``, ``2``, ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.5``)
        K (int): degree of the filter. (default: ``10``)
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
    ) -> None:
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(BernConv(K), *sizes, dropout, filter_dropout)


@register_model("BernNet with the filter first", 2021, "O(Knf + nfh), once O(Kmf)", mini_batch=True)
class ScalableBernNet(Scalable):
    r"""The filter of :class:`BernNet` on the raw features, then an MLP.

    .. math:: Z = \mathrm{MLP}\Big(\sum_{k=0}^{K} \mathrm{ReLU}(θ_k)\, b_k(\tilde L)\, X\Big)

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm: see
            :class:`ScalableNFGNN`.
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
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(BernConv(K), *sizes, dropout, batch_norm)
