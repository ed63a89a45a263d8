"""A deep residual network whose convolution is exchangeable."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nfgnn.errors import unknown_name
from nfgnn.nn.conv import PolynomialFilter
from nfgnn.nn.linear import Linear
from nfgnn.nn.node_model import Features, NodeModel
from nfgnn.nn.residual_block import DropoutStream, activate, linear, residual_norm
from nfgnn.spectral import CSR

JUMPING = ("last", "mean")


class BlockConv(nn.Module):
    """A convolution for residual blocks that is not a polynomial filter."""

    def reset_parameters(self) -> None:
        """Draw the weights."""
        raise NotImplementedError

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return ``[n, channels]``, without a bias."""
        raise NotImplementedError


class ResidualBlock(nn.Module):
    r"""One block: :math:`h ← h + \mathrm{drop}\big(\mathrm{drop}(\mathrm{gelu}(\mathrm{conv}(
    \mathrm{LayerNorm}(h))))\, W + b'\big)`.

    Args:
        conv: its ``forward(x, edge_index, edge_weight)`` returns ``[n, channels]``, without a bias.
        channels: width of the network.
    """

    def __init__(self, conv: PolynomialFilter | BlockConv, channels: int) -> None:
        super().__init__()
        self.conv = conv
        self.bias = nn.Parameter(torch.empty(channels))
        self.weight = nn.Parameter(torch.empty(1, channels, channels))
        self.out_bias = nn.Parameter(torch.empty(channels))
        self.gamma = nn.Parameter(torch.empty(channels))
        self.beta = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.weight.shape[-1] ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        for shift in (self.bias, self.out_bias, self.beta):
            nn.init.zeros_(shift)
        nn.init.ones_(self.gamma)
        self.conv.reset_parameters()


def _compute_block(
    block: ResidualBlock,
    number: int,
    h: Tensor,
    y: Tensor,
    norm: tuple[Tensor, Tensor],
    drop: DropoutStream,
    edge_index: Tensor,
    edge_weight: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the residual stream after a block, and its LayerNorm for the next one."""
    hidden = activate(block.conv(y, edge_index, edge_weight), block.bias, drop, 2 * number)
    branch = linear([hidden], block.weight)
    return residual_norm(h, branch, block.out_bias, *norm, drop, 2 * number + 1)


class ResidualStack(NodeModel):
    r"""Input projection, residual blocks, a last LayerNorm and a linear classifier.

    .. math::
        h = \mathrm{drop}\big(\mathrm{gelu}(X W_{in} + b_{in})\big), \qquad
        h ← h + f_l\big(\mathrm{LayerNorm}_l(h)\big), \qquad
        Z = \mathrm{LayerNorm}(h)\, W_{out} + b_{out}

    A subclass says which convolutions its blocks have. The residual stream h is float32 in every
    precision.

    Args:
        in_channels, out_channels, hidden_channels: number of features and classes, and the width.
        convs: the convolution of every block, see :class:`ResidualBlock`.
        dropout: dropout rate.
        jumping: what the classifier reads: ``"last"``, the output of the last block, or ``"mean"``,
            the mean over all blocks.
        recompute: whether the backward pass computes the blocks again instead of storing what they
            compute. Such a network is trained one run at a time.
    """

    batchable = True
    half_precision = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int,
        convs: Sequence[PolynomialFilter | BlockConv],
        dropout: float,
        jumping: str,
        recompute: bool,
    ) -> None:
        super().__init__()
        # Transformations such as vmap cannot go through recomputed blocks.
        self.batchable = self.batchable and not recompute
        self.recompute = recompute
        if jumping not in JUMPING:
            raise unknown_name("value of jumping", jumping, JUMPING)
        self.lin_in = Linear(in_channels, hidden_channels, bias=False)
        self.in_bias = nn.Parameter(torch.empty(hidden_channels))
        self.blocks = nn.ModuleList(ResidualBlock(conv, hidden_channels) for conv in convs)
        self.gamma = nn.Parameter(torch.empty(hidden_channels))
        self.beta = nn.Parameter(torch.empty(hidden_channels))
        self.lin_out = nn.Linear(hidden_channels, out_channels)
        self.dropout = dropout
        self.jumping = jumping
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin_in.reset_parameters()
        nn.init.zeros_(self.in_bias)
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)
        self.lin_out.reset_parameters()
        for block in self.residual_blocks():
            block.reset_parameters()

    def residual_blocks(self) -> list[ResidualBlock]:
        """Return the blocks in their order."""
        return [block for block in self.blocks if isinstance(block, ResidualBlock)]

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        drop = DropoutStream.start(self.dropout, self.training, self.in_bias.device)
        h = activate(self._project(x), self.in_bias, drop, 0).float()
        blocks = self.residual_blocks()
        norms = [(block.gamma, block.beta) for block in blocks]
        norms.append((self.gamma, self.beta))
        _, y = residual_norm(h, None, None, *norms[0], drop, 0)
        total = h
        for number, block in enumerate(blocks, start=1):
            arguments = (block, number, h, y, norms[number], drop, edge_index, edge_weight)
            if self.recompute and torch.is_grad_enabled():
                h, y = checkpoint(_compute_block, *arguments, use_reentrant=False)
            else:
                h, y = _compute_block(*arguments)
            if self.jumping == "mean":
                total = total + h
        if self.jumping == "mean":
            _, y = residual_norm(total / (len(blocks) + 1), None, None, *norms[-1], drop, 0)
        return linear([y], self.lin_out.weight.T[None]).float() + self.lin_out.bias

    def _project(self, x: Features) -> Tensor:
        """Return X W_in, in the precision of the weights."""
        weight = self.lin_in.weight
        if isinstance(x, Tensor) and x.layout == torch.strided:
            constant = not x.requires_grad
            return linear([x.to(weight.dtype)], weight.T[None], constant)
        matrix = x if isinstance(x, CSR) else CSR.from_tensor(x)
        return (matrix @ weight.T.to(matrix.values.dtype)).to(weight.dtype)
