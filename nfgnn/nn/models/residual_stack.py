"""A deep residual network whose convolution is exchangeable."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nfgnn.errors import UserError, unknown_name
from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.batch_norm import RunningStatistics, batch_norm
from nfgnn.nn.conv import SpectralConv
from nfgnn.nn.dropout import Rate, dropout
from nfgnn.nn.features import Features, as_csr, is_dense
from nfgnn.nn.linear import Linear
from nfgnn.nn.node_model import NodeModel
from nfgnn.nn.residual_block import (
    DropoutStream,
    activate,
    layer_norm,
    residual_add,
    residual_norm,
)
from nfgnn.nn.terms_linear import linear
from nfgnn.spectral import CSR, at_least_float32

JUMPING = ("last", "mean")
NORMS = ("layer", "batch", "none")


class BlockConv(nn.Module):
    """A convolution for residual blocks, beside :class:`~nfgnn.nn.SpectralConv`."""

    def reset_parameters(self) -> None:
        """Draw the weights."""
        raise NotImplementedError

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Return ``[n, channels]``, without a bias.

        ``batch``, the graph of every node ``[n]``, is only passed for a batch of graphs.
        """
        raise NotImplementedError


class ResidualBlock(nn.Module):
    r"""One block: :math:`h ← h + \mathrm{drop}\big(\mathrm{drop}(\mathrm{gelu}(\mathrm{conv}(
    \mathrm{norm}(h))))\, W + b'\big)`.

    Args:
        conv: a module with ``reset_parameters``, whose
            ``forward(x, edge_index, edge_weight, batch)`` returns ``[n, channels]`` without a bias.
        channels: width of the network.
        norm: see :class:`ResidualStack`.
    """

    def __init__(self, conv: SpectralConv | BlockConv, channels: int, norm: str) -> None:
        super().__init__()
        self.conv = conv
        self.bias = nn.Parameter(torch.empty(channels))
        self.weight = nn.Parameter(torch.empty(1, channels, channels))
        # Batch normalisation subtracts a constant again, so there is no bias before it.
        self.out_bias: nn.Parameter | None = None
        if norm != "batch":
            self.out_bias = nn.Parameter(torch.empty(channels))
        self.gamma = nn.Parameter(torch.empty(channels))
        self.beta = nn.Parameter(torch.empty(channels))
        self.statistics = RunningStatistics(channels) if norm == "batch" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.weight.shape[-1] ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        for shift in (self.bias, self.out_bias, self.beta):
            if shift is not None:
                nn.init.zeros_(shift)
        nn.init.ones_(self.gamma)
        if self.statistics is not None:
            self.statistics.reset()
        self.conv.reset_parameters()


def _compute_block(
    block: ResidualBlock,
    number: int,
    h: Tensor,
    y: Tensor,
    next_norm: tuple[Tensor, Tensor] | None,
    drop: DropoutStream,
    *graph: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Return the residual stream after a block, and its LayerNorm for the next one, if any.

    Args:
        block: the block.
        number: its number in the network, from 1.
        h: the residual stream.
        y: the normalised residual stream, which the convolution reads.
        next_norm: scale and shift of the LayerNorm after the block; ``None`` for other kinds.
        drop: the random numbers of the pass.
        graph: edge indices, edge weights, and the graph of every node in a batch of graphs.
    """
    hidden = activate(block.conv(y, *graph), block.bias, drop, 2 * number)
    branch = linear([hidden], block.weight)
    if next_norm is None:
        return residual_add(h, branch, block.out_bias, drop, 2 * number + 1), None
    assert block.out_bias is not None  # Only blocks with batch normalisation have none.
    return residual_norm(h, branch, block.out_bias, *next_norm, drop, 2 * number + 1)


class ResidualStack(NodeModel):
    r"""Input projection, residual blocks, a last normalisation and a linear classifier.

    .. math::
        h = \mathrm{drop}\big(\mathrm{gelu}(X W_{in} + b_{in})\big), \qquad
        h ← h + f_l\big(\mathrm{norm}_l(h)\big), \qquad
        Z = \mathrm{norm}(h)\, W_{out} + b_{out}

    A subclass defines the convolutions of its blocks. The residual stream h is at least float32 in
    every precision. With batch normalisation, the blocks have no bias b'.

    For a batch of graphs, pass ``batch``, the graph of every node, as the fourth argument or by
    keyword. The gates ``"agreement"``, ``"attention"`` and ``"cluster"`` of :class:`NFNet` need it;
    without it, all nodes count as one graph. Batch normalisation is over the whole batch.

    Args:
        in_channels, out_channels, hidden_channels: number of features and classes, and the width.
        convs: the convolution of every block, see :class:`ResidualBlock`.
        dropout: dropout rate.
        jumping: what the classifier reads: ``"last"``, the output of the last block, or ``"mean"``,
            the mean over the projected features and all blocks.
        recompute: whether the backward pass computes the blocks again instead of storing what they
            compute. Such a network is trained one run at a time.
        norm: ``"layer"`` (LayerNorm), ``"batch"`` (batch normalisation over the nodes of a step,
            with running statistics in evaluation), or ``"none"``, only a scale and a shift.
        input_dropout: dropout rate of the features.
    """

    batchable = True
    half_precision = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        convs: Sequence[SpectralConv | BlockConv],
        dropout: float,
        jumping: str,
        recompute: bool,
        norm: str,
        input_dropout: float,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_rates(dropout=dropout, input_dropout=input_dropout)
        # Transformations such as vmap cannot go through recomputed blocks.
        self.batchable = self.batchable and not recompute
        self.recompute = recompute
        if jumping not in JUMPING:
            raise unknown_name("value of jumping", jumping, JUMPING)
        if norm not in NORMS:
            raise unknown_name("norm", norm, NORMS)
        self.lin_in = Linear(in_channels, hidden_channels, bias=False)
        self.in_bias = nn.Parameter(torch.empty(hidden_channels))
        self.blocks = nn.ModuleList(ResidualBlock(conv, hidden_channels, norm) for conv in convs)
        self.gamma = nn.Parameter(torch.empty(hidden_channels))
        self.beta = nn.Parameter(torch.empty(hidden_channels))
        self.statistics = RunningStatistics(hidden_channels) if norm == "batch" else None
        self.lin_out = nn.Linear(hidden_channels, out_channels)
        self.dropout = dropout
        self.input_dropout: Rate = input_dropout
        self.jumping = jumping
        self.norm = norm
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin_in.reset_parameters()
        nn.init.zeros_(self.in_bias)
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)
        if self.statistics is not None:
            self.statistics.reset()
        self.lin_out.reset_parameters()
        for block in self.residual_blocks():
            block.reset_parameters()

    def residual_blocks(self) -> list[ResidualBlock]:
        """Return the blocks in their order."""
        return [block for block in self.blocks if isinstance(block, ResidualBlock)]

    def forward(
        self,
        x: Features,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """"""
        self._check_features(x)
        graph = (edge_index, edge_weight) if batch is None else (edge_index, edge_weight, batch)
        drop = DropoutStream.start(self.dropout, self.training, self.in_bias.device)
        x = dropout(x, self.input_dropout, self.training)
        h = at_least_float32(activate(self._project(x), self.in_bias, drop, 0))
        blocks = self.residual_blocks()
        # The end of a block and the LayerNorm of the next one are computed together.
        layer_norms = self._layer_norms()
        y: Tensor | None = None
        total = h
        for number, block in enumerate(blocks, start=1):
            if y is None:
                y = self._normalise(h, block)
            arguments = (block, number, h, y, layer_norms[number], drop, *graph)
            if self.recompute and torch.is_grad_enabled():
                h, y = checkpoint(_compute_block, *arguments, use_reentrant=False)
            else:
                h, y = _compute_block(*arguments)
            if self.jumping == "mean":
                total = total + h
        if self.jumping == "mean":
            h = total / (len(blocks) + 1)
            y = None
        if y is None:
            y = self._normalise(h, self)
        return at_least_float32(linear([y], self.lin_out.weight.T[None])) + self.lin_out.bias

    def _check_features(self, x: Any) -> None:
        """Refuse node features that are not a matrix with one column per input channel."""
        width = self.lin_in.in_features
        is_matrix = isinstance(x, Tensor | CSR) and len(x.shape) == 2
        if is_matrix and x.shape[1] == width:
            return
        found = list(x.shape) if isinstance(x, Tensor | CSR) else type(x).__name__
        raise UserError(
            f"{type(self).__name__} needs node features of shape [num_nodes, {width}], got {found}"
        )

    def _layer_norms(self) -> list[tuple[Tensor, Tensor] | None]:
        """Return scale and shift of every LayerNorm; ``None`` for other kinds."""
        owners: list[ResidualBlock | ResidualStack] = [*self.residual_blocks(), self]
        if self.norm != "layer":
            return [None] * len(owners)
        return [(owner.gamma, owner.beta) for owner in owners]

    def _normalise(self, h: Tensor, owner: "ResidualBlock | ResidualStack") -> Tensor:
        """Return the residual stream as the convolution of a block, or the classifier, reads it."""
        if self.norm == "layer":
            return layer_norm(h, owner.gamma, owner.beta)
        if owner.statistics is not None:
            # Outside of recomputed blocks, whose second pass would update the statistics again.
            return batch_norm(h, owner.gamma, owner.beta, owner.statistics, self.training)
        return h.to(owner.gamma.dtype) * owner.gamma + owner.beta

    def _project(self, x: Features) -> Tensor:
        """Return X W_in, in the precision of the weights."""
        weight = self.lin_in.weight
        if is_dense(x):
            constant = not x.requires_grad
            return linear([x.to(weight.dtype)], weight.T[None], constant)
        matrix = as_csr(x)
        return (matrix @ weight.T.to(matrix.values.dtype)).to(weight.dtype)
