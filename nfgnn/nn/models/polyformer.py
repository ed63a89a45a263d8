"""A transformer whose tokens are the polynomial terms of a node."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts, check_heads, check_rates
from nfgnn.nn.dropout import dropout_dense
from nfgnn.nn.features import Features, as_csr, is_dense
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.nn.propagated_features import computed_once
from nfgnn.spectral import (
    Basis,
    ScaledLaplacian,
    at_least_float32,
    polynomial_terms,
    resolve_basis,
    scaled_laplacian,
)


@register_model(
    "PolyFormer: Scalable Node-wise Filters via Polynomial Graph Transformer",
    2024,
    "O(Knfh + Knh² + K²nh), once O(Kmf)",
)
class PolyFormer(NodeModel):
    r"""Attention over the polynomial terms of every node
    (`Ma et al. <https://arxiv.org/abs/2407.14459>`_).

    A node has K + 1 tokens :math:`T_k = p_k(\tilde L) X W + b`. Every layer is a polynomial
    attention and a feed-forward network, both with layer normalisation and a residual connection:

    .. math::
        V = \mathrm{norm}(T), \qquad U_k = \mathrm{MLP}_k(V_k), \qquad
        S_{jk} = \tanh\Big(\frac{(U_j W_Q) (U_k W_K)^⊤}{\sqrt d}\Big) \frac{β_k}{(k + 1)^q}

    .. math::
        T ← T + S V, \qquad T ← T + W_2\,\mathrm{GELU}(W_1\,\mathrm{norm}(T)), \qquad
        Z = \mathrm{MLP}\Big(\sum_{k=0}^{K} T_k\Big)

    with S and β for every head of width d. The tokens of dense features have no parameters before
    W and are computed once. Sparse features are transformed first. The attention is the filter:
    it is trained with ``filter_lr`` and ``filter_weight_decay``.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the tokens, a multiple of ``heads``. (default: ``64``)
        num_layers (int): number of layers. (default: ``1``)
        heads (int): number of heads of the attention. (default: ``1``)
        ffn_channels (int): hidden width of the feed-forward networks. (default: ``128``)
        dropout (float): dropout on the input and the hidden layer of the last MLP.
            (default: ``0.2``)
        filter_dropout (float): dropout on S, and on the output of attention and feed-forward
            network. (default: ``0.5``)
        damping (float): the exponent q by which attention to higher orders is reduced.
            (default: ``1.0``)
        K, basis, self_loops: see :class:`~nfgnn.nn.NFConv`. (default: ``10``, ``"monomial"``,
            ``True``)
    """

    batchable = True
    shares_passes = True
    half_precision = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 1,
        heads: int = 1,
        ffn_channels: int = 128,
        dropout: float = 0.2,
        filter_dropout: float = 0.5,
        damping: float = 1.0,
        K: int = 10,
        basis: str | Basis = "monomial",
        self_loops: bool = True,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(
            hidden_channels=hidden_channels, num_layers=num_layers, ffn_channels=ffn_channels
        )
        check_heads(heads, hidden_channels=hidden_channels)
        check_counts(least=0, K=K)
        check_rates(dropout=dropout, filter_dropout=filter_dropout)
        self.lin = Linear(in_channels, hidden_channels)
        self.prop = nn.ModuleList(
            _PolynomialAttention(hidden_channels, K, heads, damping, filter_dropout)
            for _ in range(num_layers)
        )
        self.feed_forwards = nn.ModuleList(
            _FeedForward(hidden_channels, ffn_channels, filter_dropout) for _ in range(num_layers)
        )
        self.mlp = MLP(hidden_channels, out_channels, hidden_channels, 2, dropout)
        self.K = K
        self.basis = resolve_basis(basis)
        self.self_loops = self_loops

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        for attention, feed_forward in self._layers():
            attention.reset_parameters()
            feed_forward.reset_parameters()
        self.mlp.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        tokens = self._tokens(x, edge_index, edge_weight)
        return self._logits(tokens, self._first_scores(tokens))

    def forward_pair(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        # There is no dropout before the scores of the first layer, so one serves both passes.
        tokens = self._tokens(x, edge_index, edge_weight)
        scores = self._first_scores(tokens)
        self.eval()
        with torch.no_grad():
            evaluated = self._logits(tokens, scores)
        self.train()
        return self._logits(tokens, scores), evaluated

    def _first_scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        attention, _ = self._layers()[0]
        return attention.scores(tokens)

    def _logits(self, tokens: Tensor, first_scores: tuple[Tensor, Tensor]) -> Tensor:
        """Return the logits from the tokens and the scores of the first layer."""
        scores = first_scores
        for number, (attention, feed_forward) in enumerate(self._layers()):
            if number > 0:
                scores = attention.scores(tokens)
            tokens = feed_forward(attention(tokens, *scores))
        return at_least_float32(self.mlp(tokens.sum(0)))

    def _layers(self) -> list[tuple["_PolynomialAttention", "_FeedForward"]]:
        attentions = [layer for layer in self.prop if isinstance(layer, _PolynomialAttention)]
        others = [layer for layer in self.feed_forwards if isinstance(layer, _FeedForward)]
        return list(zip(attentions, others, strict=True))

    def _tokens(self, x: Features, edge_index: Any, edge_weight: Tensor | None) -> Tensor:
        """Return the tokens of all nodes, ``[K + 1, n, hidden_channels]``.

        They have the precision of the weights. Under autocast, those of dense features are in half
        precision.
        """
        operator = scaled_laplacian(edge_index, edge_weight, x.shape[0], self.self_loops)
        weight = self.lin.weight
        if not is_dense(x):
            matrix = as_csr(x)
            scores = (matrix @ weight.T.to(matrix.values.dtype)).to(weight.dtype)
            return polynomial_terms(scores, operator, self.basis, self.K) + self.lin.bias
        terms = computed_once(
            x,
            (operator,),
            (self.basis, self.K, weight.dtype),
            lambda: polynomial_terms(x, operator, self.basis, self.K).to(weight.dtype),
        )
        # As one matrix, because vmap would copy an input of three dimensions for every run.
        tokens: Tensor = self.lin(terms.flatten(0, 1)).unflatten(0, terms.shape[:2])
        return tokens


class _PolynomialAttention(nn.Module):
    """Attention between the tokens of a node, with an MLP for the tokens of every order."""

    damping: Tensor

    def __init__(
        self, channels: int, K: int, heads: int, damping: float, filter_dropout: float
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.weight1 = nn.Parameter(torch.empty(K + 1, channels, channels))
        self.bias1 = nn.Parameter(torch.empty(K + 1, 1, channels))
        self.weight2 = nn.Parameter(torch.empty(K + 1, channels, channels))
        self.bias2 = nn.Parameter(torch.empty(K + 1, 1, channels))
        self.query = nn.Linear(channels, channels, bias=False)
        self.key = nn.Linear(channels, channels, bias=False)
        self.scale = nn.Parameter(torch.empty(heads, K + 1))
        orders = torch.arange(1, K + 2, dtype=self.scale.dtype)
        self.register_buffer("damping", orders**-damping, persistent=False)
        self.heads = heads
        self.filter_dropout = filter_dropout
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.norm.reset_parameters()
        bound = self.weight1.shape[-1] ** -0.5
        for parameter in (self.weight1, self.bias1, self.weight2, self.bias2):
            nn.init.uniform_(parameter, -bound, bound)
        self.query.reset_parameters()
        self.key.reset_parameters()
        nn.init.ones_(self.scale)

    def scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return S, ``[n, heads, K + 1, K + 1]``, and V, ``[K + 1, n, channels]``."""
        normed: Tensor = self.norm(tokens)
        hidden = F.relu(normed @ self.weight1 + self.bias1) @ self.weight2 + self.bias2
        query = self._split(self.query(hidden))
        key = self._split(self.key(hidden))
        score = torch.einsum("jnhd,knhd->nhjk", query, key) * query.shape[-1] ** -0.5
        factor = (self.scale * self.damping).to(score.dtype)
        return torch.tanh(score) * factor[:, None, :], normed

    def forward(self, tokens: Tensor, score: Tensor, normed: Tensor) -> Tensor:
        """Return T + S V."""
        score = dropout_dense(score, self.filter_dropout, self.training)
        context = torch.einsum("nhjk,knhd->jnhd", score, self._split(normed)).flatten(-2)
        return tokens + dropout_dense(context, self.filter_dropout, self.training)

    def _split(self, x: Tensor) -> Tensor:
        """Return the channels of every head, ``[K + 1, n, heads, channels / heads]``."""
        parts: Tensor = x.unflatten(-1, (self.heads, -1))
        return parts


class _FeedForward(nn.Module):
    """Two linear maps with GELU between them."""

    def __init__(self, channels: int, hidden_channels: int, filter_dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.lin1 = nn.Linear(channels, hidden_channels)
        self.lin2 = nn.Linear(hidden_channels, channels)
        self.filter_dropout = filter_dropout

    def reset_parameters(self) -> None:
        for module in (self.norm, self.lin1, self.lin2):
            module.reset_parameters()

    def forward(self, tokens: Tensor) -> Tensor:
        update = self.lin2(F.gelu(self.lin1(self.norm(tokens))))
        return tokens + dropout_dense(update, self.filter_dropout, self.training)
