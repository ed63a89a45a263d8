"""Soft selection among features of several hops."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.nn.argument_checks import check_counts
from nfgnn.nn.features import Features, as_csr, is_dense
from nfgnn.nn.linear import Linear
from nfgnn.nn.models.mlp import MLP
from nfgnn.nn.models.registry import register_model
from nfgnn.nn.node_model import NodeModel
from nfgnn.nn.propagated_features import computed_once
from nfgnn.spectral import ScaledLaplacian, derived_laplacian


@register_model(
    "Simplifying Approach to Node Classification in Graph Neural Networks",
    2022,
    "O(Knfh), once O(Kmf)",
)
class FSGNN(NodeModel):
    r"""A linear map for the features of every hop, with and without self-loops
    (`Maurya et al. <https://arxiv.org/abs/2111.06748>`_).

    .. math::
        X_0 = X, \quad X_k = \hat A^k X, \quad X_{K+k} = \hat A_I^k X \quad (k = 1 … K), \qquad
        \hat A = D^{-1/2} A D^{-1/2}, \quad \hat A_I = D_I^{-1/2}(A + I)D_I^{-1/2}

    .. math::
        H_j = \mathrm{norm}(X_j W_j + b_j), \qquad
        Z = \mathrm{MLP}\big(\mathrm{ReLU}([α_0 H_0 ‖ … ‖ α_{2K} H_{2K}])\big), \qquad
        α = \mathrm{softmax}(a)

    where ``norm`` divides every row by its length. The hops of dense features have no parameters
    and are computed once. Those of sparse features would be dense, so :math:`\hat A^k (X W)` takes
    the place of :math:`(\hat A^k X) W`.

    Args:
        in_channels (int): number of features.
        out_channels (int): number of classes.
        hidden_channels (int): width of every hop. (default: ``64``)
        num_layers (int): number of layers of the MLP. (default: ``1``)
        K (int): number of hops. (default: ``3``)
        dropout (float): dropout on the input of every layer of the MLP. (default: ``0.5``)
        normalize (bool): whether the rows of every hop are normalised. (default: ``True``)
    """

    batchable = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 1,
        K: int = 3,
        dropout: float = 0.5,
        normalize: bool = True,
    ) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, out_channels=out_channels)
        check_counts(hidden_channels=hidden_channels)
        check_counts(least=0, K=K)
        count = 2 * K + 1
        self.lins = nn.ModuleList(Linear(in_channels, hidden_channels) for _ in range(count))
        self.prop = _SoftSelection(count)
        width = count * hidden_channels
        self.mlp = MLP(width, out_channels, hidden_channels, num_layers, dropout)
        self.K = K
        self.normalize = normalize

    def reset_parameters(self) -> None:
        for lin in self.linear_maps():
            lin.reset_parameters()
        self.prop.reset_parameters()
        self.mlp.reset_parameters()

    def linear_maps(self) -> list[Linear]:
        return [lin for lin in self.lins if isinstance(lin, Linear)]

    def forward(
        self,
        x: Features,
        edge_index: Tensor | ScaledLaplacian,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """"""
        plain = derived_laplacian(edge_index, edge_weight, x.shape[0])
        looped = derived_laplacian(edge_index, edge_weight, x.shape[0], self_loops=True)
        if is_dense(x):
            hops = computed_once(
                x, (plain, looped), self.K, lambda: _hops(x, plain, looped, self.K)
            )
            transformed = [lin(hop) for lin, hop in zip(self.linear_maps(), (x, *hops))]
        else:
            transformed = self._transformed_first(x, plain, looped)
        h = torch.stack(transformed, -2)
        if self.normalize:
            h = F.normalize(h, dim=-1)
        out: Tensor = self.mlp(F.relu(self.prop(h).flatten(-2)))
        return out

    def _transformed_first(
        self, x: Features, plain: ScaledLaplacian, looped: ScaledLaplacian
    ) -> list[Tensor]:
        """Return the hops of sparse features after their linear maps."""
        maps = self.linear_maps()
        weight = torch.cat([lin.weight for lin in maps])
        own, *others = (as_csr(x) @ weight.T).chunk(len(maps), -1)
        hops = [own]
        hops += _powers(others[: self.K], plain)
        hops += _powers(others[self.K :], looped)
        return [hop + lin.bias for lin, hop in zip(maps, hops)]


class _SoftSelection(nn.Module):
    """Weights of the hops that sum to one."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)

    def forward(self, hops: Tensor) -> Tensor:
        return torch.softmax(self.weight, 0)[:, None] * hops


def _powers(signals: list[Tensor], operator: ScaledLaplacian) -> list[Tensor]:
    r"""Return :math:`\hat A^k Y_k` of signals :math:`Y_1, Y_2, …` of the same width."""
    powers = []
    while signals:
        # A product reads the graph once for all signals that take part in it.
        rest = torch.cat(signals, -1)
        product = operator.propagate(rest)
        done, *signals = product.chunk(len(signals), -1)
        powers.append(done)
    return powers


def _hops(x: Tensor, plain: ScaledLaplacian, looped: ScaledLaplacian, K: int) -> tuple[Tensor, ...]:
    """Return the hops of dense features from 1 on, first those without self-loops."""
    hops = []
    for operator in (plain, looped):
        hop = x
        for _ in range(K):
            hop = operator.propagate(hop)
            hops.append(hop)
    return tuple(hops)
