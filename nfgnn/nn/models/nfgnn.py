"""NFGNN, the model of the paper."""

from nfgnn.nn.conv import NFConv
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.spectral import Basis, LambdaMax, Response


@register_model(
    "Node-oriented Spectral Filtering for Graph Neural Networks", 2022, "O(nfh + Kmc + Kncd)"
)
class NFGNN(Decoupled):
    r"""NFGNN (Algorithm 1 of `the paper <https://arxiv.org/abs/2212.03654>`_): an MLP, then the node-oriented filter.

    .. math::
        X^{(0)} = \mathrm{MLP}(X), \qquad X^{(k)} = p_k(\tilde L) X^{(0)}, \quad Z_i = \sum_{k=0}^{K} η_{ik}\, X^{(k)}_i

    ``forward`` returns logits.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the MLP. (default: ``64``)
        num_layers (int): linear maps in the MLP. (default: ``2``)
        dropout (float): dropout in the MLP, on input and hidden layer. (default: ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.0``)
        K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max: of :class:`~nfgnn.nn.NFConv`.
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
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
        link: str = "none",
        num_nodes: int | None = None,
    ) -> None:
        prop = NFConv(
            out_channels, K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout, link, num_nodes)
