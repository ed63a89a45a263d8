"""NFGNN with one filter for all nodes, after or before the MLP."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.spectral import Basis, LambdaMax, Response


@register_model("NFGNN with one global filter (w/o NF)", 2022, "O(nfh + Kmc)")
class PolyGNN(Decoupled):
    r""":class:`NFGNN` with one filter for the whole graph ("w/o NF" in the paper's ablation).

    .. math:: X^{(0)} = \mathrm{MLP}(X), \qquad Z = \sum_{k=0}^{K} γ_k\, p_k(\tilde L)\, X^{(0)}

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout, filter_dropout: see
            :class:`NFGNN`.
        K, basis, init, alpha, self_loops, lambda_max: see :class:`~nfgnn.nn.PolyConv`.
        link, num_nodes: see :class:`NFGNN`.
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
        basis: str | Basis = "chebyshev",
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        link: str = "none",
        num_nodes: int | None = None,
    ) -> None:
        prop = PolyConv(
            K=K,
            basis=basis,
            init=init,
            alpha=alpha,
            self_loops=self_loops,
            lambda_max=lambda_max,
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout, link, num_nodes)


@register_model("PolyGNN with the filter first", 2022, "O(Knf + nfh), once O(Kmf)", mini_batch=True)
class ScalablePolyGNN(Scalable):
    r""":class:`ScalableNFGNN` with one filter for the whole graph.

    .. math:: Z_i = \mathrm{MLP}\Big(\sum_{k=0}^{K} γ_k\, X^{(k)}_i\Big)

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout, batch_norm: see
            :class:`ScalableNFGNN`.
        K, basis, init, alpha, self_loops, lambda_max: see :class:`~nfgnn.nn.PolyConv`.
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
        prop = PolyConv(
            K=K,
            basis=basis,
            init=init,
            alpha=alpha,
            self_loops=self_loops,
            lambda_max=lambda_max,
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, batch_norm)
