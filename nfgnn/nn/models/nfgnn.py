"""NFGNN, the model of the paper, with the filter after or before the MLP."""

from nfgnn.nn.conv import NFConv
from nfgnn.nn.gates import GATES, find_gate
from nfgnn.nn.models.decoupled import Decoupled
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.models.scalable import Scalable
from nfgnn.spectral import Basis, LambdaMax, Response


@register_model(
    "Node-oriented Spectral Filtering for Graph Neural Networks", 2022, "O(nfh + Kmc + Kncd)"
)
class NFGNN(Decoupled):
    r"""NFGNN (Algorithm 1 of `the paper <https://arxiv.org/abs/2212.03654>`_): an MLP, then the
    node-oriented filter.

    .. math::
        X^{(0)} = \mathrm{MLP}(X), \qquad X^{(k)} = p_k(\tilde L) X^{(0)}, \qquad
        Z_i = \sum_{k=0}^{K} η_{ik}\, X^{(k)}_i

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the MLP. (default: ``64``)
        num_layers (int): number of linear maps in the MLP. (default: ``2``)
        dropout (float): dropout in the MLP, on input and hidden layers. (default: ``0.5``)
        filter_dropout (float): dropout between MLP and filter. (default: ``0.0``)
        K, rank, basis, gate, activation, init, alpha, self_loops, lambda_max: see
            :class:`~nfgnn.nn.NFConv`.
        link (str): ``"raw"`` or ``"row"``: the rows of the adjacency matrix, as they are or summing
            to one, also enter the hidden layer of the MLP; ``"scores"``: they enter its output. The
            model can then only be applied to the graph that it was trained on.
            (default: ``"none"``)
        num_nodes (int): number of nodes, needed for ``link`` only. The trainer sets it.
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
            out_channels,
            K=K,
            rank=rank,
            basis=basis,
            gate=gate,
            activation=activation,
            init=init,
            alpha=alpha,
            self_loops=self_loops,
            lambda_max=lambda_max,
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, filter_dropout, link, num_nodes)


@register_model(
    "NFGNN with the filter first (Algorithm 2)", 2022, "O(Knfd + nfh), once O(Kmf)", mini_batch=True
)
class ScalableNFGNN(Scalable):
    r"""Scalable NFGNN (Algorithm 2 of `the paper <https://arxiv.org/abs/2212.03654>`_): the
    node-oriented filter, then an MLP.

    .. math::
        X^{(k)} = p_k(\tilde L)\,X, \qquad η_{ik} = σ\big(X^{(k)}_i W\big) · Γ_k, \qquad
        Z_i = \mathrm{MLP}\Big(\sum_{k=0}^{K} η_{ik}\, X^{(k)}_i\Big)

    Unlike in :class:`NFGNN`, the filter is applied to the raw features. Its terms need no
    parameters and are computed before training.

    Args:
        in_channels, out_channels, hidden_channels, num_layers, dropout: see :class:`NFGNN`.
        batch_norm (bool): batch normalisation after every hidden linear map. (default: ``False``)
        K, rank, basis, activation, init, alpha, self_loops, lambda_max: see
            :class:`~nfgnn.nn.NFConv`.
        gate: see :class:`~nfgnn.nn.NFConv`. The gate must not depend on the graph.
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
        rank: int = 1,
        basis: str | Basis = "chebyshev",
        gate: str = "term",
        activation: str | None = None,
        init: str | Response = "ppr",
        alpha: float = 0.1,
        self_loops: bool = False,
        lambda_max: LambdaMax = 2.0,
    ) -> None:
        check_rowwise(gate)
        prop = NFConv(
            in_channels,
            K=K,
            rank=rank,
            basis=basis,
            gate=gate,
            activation=activation,
            init=init,
            alpha=alpha,
            self_loops=self_loops,
            lambda_max=lambda_max,
        )
        sizes = (in_channels, out_channels, hidden_channels, num_layers)
        super().__init__(prop, *sizes, dropout, batch_norm)


def check_rowwise(gate: str) -> None:
    """Refuse a gate that needs the graph."""
    gate_class = find_gate(gate)
    if gate_class is not None and not gate_class.rowwise:
        rowwise = ", ".join(name for name, other in GATES.items() if other.rowwise)
        raise ValueError(
            f"gate '{gate}' needs the graph, but a scalable model only sees rows: choose {rowwise}"
        )
