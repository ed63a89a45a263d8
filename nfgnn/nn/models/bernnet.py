"""Non-negative filters in the Bernstein basis."""

from torch import Tensor

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model


class NonNegative(PolyConv):
    """A global filter whose coefficients pass through a ReLU."""

    def coefficients(self) -> Tensor:
        return self.gamma.relu()


@register_model(
    "BernNet: Learning Arbitrary Graph Spectral Filters via Bernstein Approximation",
    2021,
    "O(nfh + Kmc)",
)
class BernNet(Decoupled):
    r"""An MLP, then a learned filter that is nowhere negative (`He et al. <https://arxiv.org/abs/2106.10994>`_).

    .. math:: Z = \sum_{k=0}^{K} \mathrm{ReLU}(θ_k)\, \frac{1}{2^K}\binom{K}{k} (2I - L)^{K-k} L^k\,
              \mathrm{MLP}(X)

    :math:`\mathrm{ReLU}(θ_k)` is about the filter's value at frequency :math:`2k/K`; all start at one, which
    passes everything. It takes K products with the graph (:class:`~nfgnn.spectral.bases.Bernstein`), where the sum as
    written takes O(K²).

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels, num_layers, dropout: of the :class:`MLP`. (default: ``64``, ``2``, ``0.5``)
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
        prop = NonNegative(K, "bernstein", "all-pass")
        super().__init__(
            prop, in_channels, out_channels, hidden_channels, num_layers, dropout, filter_dropout
        )
