"""NFGNN without node orientation."""

from nfgnn.nn.conv import PolyConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.spectral import Basis, LambdaMax, Response


@register_model("NFGNN with one global filter (w/o NF)", 2022, "O(nfh + Kmc)")
class PolyGNN(Decoupled):
    r"""The same as :class:`NFGNN` with one filter for the whole graph ("w/o NF" in the paper's ablation).

    .. math:: X^{(0)} = \mathrm{MLP}(X), \qquad Z = \sum_{k=0}^{K} γ_k\, p_k(\tilde L)\, X^{(0)}

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the MLP. (default: ``64``)
        num_layers (int): linear maps in the MLP. (default: ``2``)
        dropout (float): dropout in the MLP, on input and hidden layer. (default: ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.0``)
        K, basis, init, alpha, self_loops, lambda_max: of :class:`~nfgnn.nn.PolyConv`.
        link (str): ``"raw"`` or ``"row"``: the rows of the adjacency matrix, as they are or summing to one, go into the
            MLP's hidden layer too; ``"scores"``: they go into its scores. The model then knows the nodes of one graph
            only. (default: ``"none"``)
        num_nodes (int): number of nodes, needed for ``link`` only; the trainer fills it in.
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
        prop = PolyConv(K, basis, init, alpha, self_loops, lambda_max)
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout, link, num_nodes)
