"""Convolutions guided by a block model."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops, softmax

from nfgnn.nn.argument_checks import check_counts, check_rates
from nfgnn.nn.dropout import dropout
from nfgnn.nn.features import Features
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel, weighted_cross_entropy
from nfgnn.spectral import check_edges


@register_model(
    "Block Modeling-Guided Graph Convolutional Neural Networks", 2022, "O(nfh + mh + nc²)"
)
class BMGCN(NodeModel):
    r"""Convolutions whose edge weights follow a block model of the classes
    (`He et al. <https://arxiv.org/abs/2112.13507>`_).

    The soft labels are :math:`B = \mathrm{softmax}(\mathrm{MLP}(X))`. In Y, those of training nodes
    are replaced by the true labels. The block matrix H has the shares of edges between classes, and
    Q is its similarity:

    .. math::
        H = \frac{Y^⊤ A Y}{Y^⊤ A \mathbf 1}, \qquad
        Q = \mathrm{rownorm}\big(H H^⊤ ⊙ (\mathbf 1 + (e - 1) I)\big), \qquad
        ω_{ij} = \mathrm{softmax}_{j ∈ N(i)}\big(A_{ij}\,B_i Q B_j^⊤\big)

        X^{(l+1)} = \mathrm{ReLU}\big(ω X^{(l)} W_1^{(l)} + X^{(l)} W_2^{(l)} + b^{(l)}\big)

    without ReLU in the last layer. A has weight s on its diagonal. ω is computed on edges only. The
    MLP has dropout before both linear maps; that of the published code has it between them.

    Training has two phases: the MLP alone (:meth:`pretraining`), then both with the sum of their
    losses (:meth:`training_loss`), which also updates H. Predictions need no labels, so the model
    can be applied to other graphs.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of the MLP and of the convolutions. (default: ``64``)
        num_layers (int): number of convolutions. (default: ``3``)
        mlp_dropout (float): dropout in the MLP. (default: ``0.5``)
        dropout (float): dropout on the input of every convolution but the last. (default: ``0.7``)
        enhance (float): factor e on the diagonal of Q. (default: ``2.0``)
        self_loop (float): weight s of self-loops; 0 stands for none. (default: ``0.0``)
        pretrain_epochs (int): maximum number of epochs of the first phase. (default: ``400``)
    """

    own_loss = True
    block_matrix: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 3,
        mlp_dropout: float = 0.5,
        dropout: float = 0.7,
        enhance: float = 2.0,
        self_loop: float = 0.0,
        pretrain_epochs: int = 400,
    ) -> None:
        super().__init__()
        check_counts(hidden_channels=hidden_channels, num_layers=num_layers)
        check_counts(least=0, pretrain_epochs=pretrain_epochs)
        check_rates(dropout=dropout, mlp_dropout=mlp_dropout)
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.mlp = MLP(in_channels, out_channels, hidden_channels, dropout=mlp_dropout)
        self.neighbours = nn.ModuleList(Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.selves = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.register_buffer("block_matrix", torch.eye(out_channels))
        self.dropout = dropout
        self.enhance = enhance
        self.self_loop = self_loop
        self.pretrain_epochs = pretrain_epochs
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.eye_(self.block_matrix)

    def forward(self, x: Features, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """"""
        soft = self.mlp(x).softmax(-1)
        edges = self._edges(x, edge_index, edge_weight)
        return self._convolve(x, soft, self.block_matrix, *edges)

    def pretraining(self) -> list[tuple[NodeModel, int]]:
        return [(self.mlp, self.pretrain_epochs)]

    def training_loss(
        self,
        x: Features,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        nodes: Tensor,
        y: Tensor,
        label_smoothing: float = 0.0,
        logits: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of the convolutions plus that of the MLP."""
        self.train()
        edges = self._edges(x, edge_index, edge_weight)
        scores = self.mlp(x)
        soft = scores.softmax(-1)
        truth = F.one_hot(y, soft.shape[-1]).to(soft)
        H = block_matrix(soft.index_copy(0, nodes, truth), *edges)
        # Evaluation uses the matrix of the last training pass, which knows the training labels.
        self.block_matrix.copy_(H.detach())
        logits = self._convolve(x, soft, H, *edges)
        loss = weighted_cross_entropy(logits[nodes], y, label_smoothing, weight)
        mlp_loss = weighted_cross_entropy(scores[nodes], y, label_smoothing, weight)
        return loss + mlp_loss

    def _edges(
        self, x: Features, edge_index: Tensor, edge_weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return edges and weights of A, with self-loops."""
        if not torch.compiler.is_compiling():
            check_edges(edge_index, edge_weight, x.shape[0])
        dtype = self.block_matrix.dtype
        if edge_weight is None:
            weight = torch.ones_like(edge_index[0], dtype=dtype)
        else:
            weight = edge_weight.to(dtype)
        if self.self_loop:
            edge_index, weight = add_self_loops(edge_index, weight, self.self_loop, x.shape[0])
        return edge_index, weight

    def _convolve(
        self, x: Features, soft: Tensor, H: Tensor, edge_index: Tensor, weight: Tensor
    ) -> Tensor:
        Q = H @ H.T
        Q = Q + (self.enhance - 1) * Q.diag().diag()
        Q = Q / Q.sum(1, keepdim=True)
        source, target = edge_index
        score = weight * ((soft @ Q)[target] * soft[source]).sum(-1)
        omega = softmax(score, target, num_nodes=len(soft))[:, None]
        *hidden, (neighbours, own) = zip(self.neighbours, self.selves)
        for of_neighbours, of_itself in hidden:
            x = dropout(x, self.dropout, self.training)
            sums = _add_messages(of_itself(x), target, omega * of_neighbours(x)[source])
            x = F.relu(sums)
        logits: Tensor = _add_messages(own(x), target, omega * neighbours(x)[source])
        return logits


def _add_messages(x: Tensor, target: Tensor, messages: Tensor) -> Tensor:
    """Return x plus the sum of the messages to every node."""
    # Under autocast, the softmax in the messages is float32.
    return x.index_add(0, target, messages.to(x.dtype))


def block_matrix(labels: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """Return H: the shares of the edges of every class by the class of the other end.

    The row of a class without edges is uniform.
    """
    source, target = edge_index
    of_neighbours = weight[:, None] * labels[source]
    edges = labels.T @ torch.zeros_like(labels).index_add(0, target, of_neighbours)
    total = edges.sum(1, keepdim=True)
    return torch.where(total > 0, edges / total.clamp(min=1e-12), 1 / edges.shape[0])
