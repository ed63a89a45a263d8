"""Graph attention: PyG's layer, and the GPU's kernels in Triton's interpreter."""

import pytest
import torch
from conftest import random_graph
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch_geometric.nn import GATConv

from nfgnn.nn import attention
from nfgnn.nn.attention import attend
from nfgnn.nn.models.residual_gat import _AttentionConv
from nfgnn.spectral import CSR, scaled_laplacian

N = 21
HEADS = 3
CHANNELS = 5
RUNS = 2


def pattern(self_loops: bool = False) -> CSR:
    edge_index = random_graph(N - 1, 0.3, 0)  # the last node has no neighbours
    return scaled_laplacian(edge_index, None, N, self_loops).adjacency(torch.float32)


def test_kernels_equal_plain_torch_for_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients of two runs as one computation, against single runs in float64."""
    monkeypatch.setattr(attention, "is_fused", lambda x: x.dtype == torch.float32)
    torch.manual_seed(0)
    graph = pattern()
    factor = torch.randn(N, HEADS, CHANNELS, dtype=torch.double)
    inputs = [
        torch.randn(RUNS, N, HEADS, dtype=torch.double),
        torch.randn(RUNS, N, HEADS, dtype=torch.double),
        torch.randn(RUNS, N, HEADS, CHANNELS, dtype=torch.double),
    ]

    def loss(source: Tensor, target: Tensor, values: Tensor) -> Tensor:
        return (attend(source, target, values, graph) * factor.to(values)).sum()

    mapped = vmap(grad_and_value(loss, argnums=(0, 1, 2)))
    gradients, value = mapped(*[part.float() for part in inputs])
    for run in range(RUNS):
        own = [part[run].clone().requires_grad_() for part in inputs]
        expected = loss(*own)
        expected.backward()
        assert value[run].item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-3)
        for found, part in zip(gradients, own):
            torch.testing.assert_close(found[run].double(), part.grad, rtol=1e-4, atol=1e-4)


def test_large_scores_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "is_fused", lambda x: True)
    graph = pattern()
    source = 1000 * torch.randn(N, HEADS)
    out = attend(source, source, torch.ones(N, HEADS, CHANNELS), graph)
    connected = graph.indptr.diff() > 0
    torch.testing.assert_close(out[connected], torch.ones_like(out[connected]))
    assert not out[~connected].any()


def test_convolution_equals_pyg() -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.3, 0)
    conv = _AttentionConv(HEADS * CHANNELS, HEADS, separate=False)
    layer = GATConv(HEADS * CHANNELS, CHANNELS, heads=HEADS, bias=False)
    with torch.no_grad():
        layer.lin.weight.copy_(conv.weight[0].T)
        layer.att_src.copy_(conv.source[None])
        layer.att_dst.copy_(conv.target[None])
    x = torch.randn(N, HEADS * CHANNELS)
    torch.testing.assert_close(conv(x, edge_index), layer(x, edge_index), rtol=1e-4, atol=1e-5)


def test_separate_convolution_equals_pyg_and_a_matrix_for_the_node() -> None:
    torch.manual_seed(0)
    edge_index = random_graph(N, 0.3, 0)
    width = HEADS * CHANNELS
    conv = _AttentionConv(width, HEADS, separate=True)
    layer = GATConv(width, CHANNELS, heads=HEADS, bias=False, add_self_loops=False)
    with torch.no_grad():
        layer.lin.weight.copy_(conv.weight[0].T)
        layer.att_src.copy_(conv.source[None])
        layer.att_dst.copy_(conv.target[None])
    x = torch.randn(N, width)
    expected = x @ conv.out_weight[0] + layer(x, edge_index) @ conv.out_weight[1]
    torch.testing.assert_close(conv(x, edge_index), expected, rtol=1e-4, atol=1e-5)
