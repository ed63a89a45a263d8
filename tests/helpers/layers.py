"""Every kind of filter layer: all gates and the global filter, in all bases."""

import pytest
import torch

from nfgnn.nn import GATES, NFConv, PolyConv
from nfgnn.nn.conv import PolynomialFilter
from nfgnn.spectral import BASES

KINDS = [*GATES, "global"]
every_layer = pytest.mark.parametrize(
    ("kind", "basis"), [(kind, basis) for kind in KINDS for basis in BASES]
)


def make_layer(
    kind: str, basis: str = "chebyshev", channels: int = 4, **settings
) -> PolynomialFilter:
    """Return a layer whose nodes have different filters."""
    torch.manual_seed(0)
    if kind == "global":
        return PolyConv(K=4, basis=basis, **settings)
    conv = NFConv(channels, K=4, rank=2, basis=basis, gate=kind, **settings)
    torch.nn.init.normal_(conv.gate.gamma, std=0.3)
    return conv


def output_and_gradients(
    layer: PolynomialFilter, call, x: torch.Tensor, **others: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the output of ``call`` and the gradients of a loss for x, others and parameters."""
    layer.zero_grad()
    inputs = {name: value.clone().requires_grad_() for name, value in {"x": x, **others}.items()}
    out = call(**inputs)
    (out.float() * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    found = {"out": out.detach()}
    found |= {name: value.grad for name, value in inputs.items()}
    found |= {name: value.grad for name, value in layer.named_parameters()}
    return found
