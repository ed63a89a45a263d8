"""The contract of a gate with several heads."""

from collections.abc import Sequence

from torch import Tensor, nn

from nfgnn.spectral import ScaledLaplacian


class HeadGate(nn.Module):
    """Coefficients of every node, order and head.

    Args:
        channels: number of channels, a multiple of ``heads``.
        K: degree of the polynomials.
        heads: number of groups of channels.
    """

    def __init__(self, channels: int, K: int, heads: int) -> None:
        super().__init__()
        self.channels = channels
        self.K = K
        self.heads = heads

    def reset_parameters(self) -> None:
        """Draw the weights; all coefficients start near 1."""
        raise NotImplementedError

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        """Return the coefficients, ``[n, K + 1, heads]``.

        Args:
            terms: the K + 1 terms, ``[n, channels]`` each. The first is the input of the layer.
            operator: the graph.
            batch: the graph of every node in a batch of graphs, ``[n]``.
        """
        raise NotImplementedError
