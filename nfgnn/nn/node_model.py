"""The contract between models and trainers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nfgnn.errors import UserError
from nfgnn.nn.features import Features


class NodeModel(nn.Module):
    """Base class of all models for node classification.

    A subclass implements :meth:`forward`. The other methods have defaults, which a model overrides
    where it can do better. A trainable filter is a submodule called ``prop``: its parameters form a
    group of their own in the optimizer.
    """

    batchable: bool = False
    """Whether several runs can be trained as one computation (:func:`torch.vmap` over weights)."""

    shares_passes: bool = False
    """Whether the model overrides :meth:`forward_pair`. Others are evaluated first, and their best
    weights stored, before the next training pass, which may change buffers."""

    own_loss: bool = False
    """Whether the model overrides :meth:`training_loss`."""

    weights_per_node: bool = False
    """Whether nodes have weights of their own, which ties a model to one graph."""

    reads_features: bool = True
    """Whether the logits depend on the features of the nodes."""

    reads_edges: bool = True
    """Whether the logits depend on the edges."""

    half_precision: bool = False
    """Whether the passes can be computed in bfloat16, with features and weights in any precision.
    The logits are float32."""

    has_coefficients: bool = False
    """Whether the model overrides :meth:`coefficients`."""

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Return the logits of all nodes, ``[n, out_channels]``.

        Args:
            x: node features ``[n, in_channels]``.
            edge_index: the edges ``[2, edges]``. Models that filter with :mod:`nfgnn.spectral` also
                take a :class:`~nfgnn.spectral.ScaledLaplacian`.
            edge_weight: the weights of the edges ``[edges]``.
        """
        raise NotImplementedError

    def forward_pair(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the logits in training mode and, without gradient, those in evaluation mode.

        The default is two passes. Models that can share work between them override it.
        """
        with torch.no_grad():
            evaluated: Tensor = self.eval()(x, edge_index, edge_weight)
        return self.train()(x, edge_index, edge_weight), evaluated

    def training_loss(
        self,
        x: Features,
        edge_index: Any,
        edge_weight: Tensor | None,
        nodes: Tensor,
        y: Tensor,
        label_smoothing: float = 0.0,
        logits: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of one training step, by default the cross-entropy.

        Args:
            x, edge_index, edge_weight: see :meth:`forward`.
            nodes: indices of the training nodes.
            y: labels of these nodes.
            label_smoothing: share of the target that is spread over all classes.
            logits: logits of all nodes in training mode; computed if not given.
            weight: weights of the training nodes, whose mean is 1.
        """
        if logits is None:
            logits = self.train()(x, edge_index, edge_weight)
        return weighted_cross_entropy(logits.index_select(0, nodes), y, label_smoothing, weight)

    def pretraining(self) -> list[tuple["NodeModel", int]]:
        """Return the parts that are trained alone first, each with its number of epochs."""
        return []

    @property
    def filter(self) -> nn.Module | None:
        """The filter, i.e. the submodule ``prop``, or ``None`` for models without one."""
        return self._modules.get("prop")

    def coefficients(
        self, x: Features, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Return Ψ, the filter coefficients of all nodes, ``[n, K + 1]``."""
        raise UserError(
            f"{type(self).__name__} has no polynomial filter at its output, so there are no "
            "coefficients to return"
        )


class _Adapter(NodeModel):
    """Wrap any module whose ``forward(x, edge_index, edge_weight)`` returns logits."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Features, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        logits: Tensor = self.module(x, edge_index, edge_weight)
        return logits

    @property
    def filter(self) -> nn.Module | None:
        return self.module._modules.get("prop")


def as_node_model(module: nn.Module) -> NodeModel:
    """Return a :class:`NodeModel` unchanged, and wrap any other module in an adapter."""
    return module if isinstance(module, NodeModel) else _Adapter(module)


def has_weights_per_node(model: nn.Module) -> bool:
    """Whether a model or a part of it is tied to the nodes of one graph."""
    return any(isinstance(part, NodeModel) and part.weights_per_node for part in model.modules())


def weighted_cross_entropy(
    logits: Tensor, y: Tensor, label_smoothing: float = 0.0, weight: Tensor | None = None
) -> Tensor:
    """Return the mean over the nodes of weight times cross-entropy.

    Args:
        logits: ``[n, classes]``.
        y: labels, ``[n]``.
        label_smoothing: share of the target that is spread over all classes.
        weight: ``[n]``, with mean 1; ``None`` weighs all nodes alike.
    """
    if weight is None:
        return F.cross_entropy(logits, y, label_smoothing=label_smoothing)
    losses = F.cross_entropy(logits, y, reduction="none", label_smoothing=label_smoothing)
    return (weight * losses).mean()
