"""Every baseline against a second implementation: PyG, the eigenbasis, or its dense formula."""

from math import comb
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from conftest import random_graph
from helpers.dense import adjacency, normalised
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import remove_self_loops

from nfgnn.errors import UserError
from nfgnn.nn.models import find_model
from nfgnn.nn.models.fagcn import _SignedAttention
from nfgnn.spectral import scaled_laplacian

N, FEATURES, CLASSES = 30, 6, 3


@pytest.fixture(autouse=True)
def _float64() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def graph() -> tuple[Tensor, Tensor]:
    return torch.randn(N, FEATURES), random_graph(N, 0.25, 1)


def baseline(name: str, **hyper: Any) -> Any:
    """A model in evaluation mode whose parameters, also those that start at zero, are random."""
    model = find_model(name).model(FEATURES, CLASSES, **hyper).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.normal_()
    return model


def copy(weights: dict[Tensor, Tensor]) -> None:
    with torch.no_grad():
        for target, source in weights.items():
            target.copy_(source.reshape(target.shape))


def test_gcn_is_a_stack_of_gcn_conv(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index)
    model = baseline("GCN", num_layers=3)
    convs = [pyg.GCNConv(FEATURES, 64), pyg.GCNConv(64, 64), pyg.GCNConv(64, CLASSES)]
    hidden = x
    for layer, (conv, lin, bias) in enumerate(zip(convs, model.lins, model.biases)):
        copy({conv.lin.weight: lin.weight, conv.bias: bias})
        hidden = conv(F.relu(hidden) if layer else hidden, edge_index, weight)
    torch.testing.assert_close(model(x, edge_index, weight), hidden)


def directed(edge_index: Tensor) -> Tensor:
    """Return a part of the edges, a self-loop and a repeated edge; node 0 has no edges."""
    part = edge_index[:, ::3]
    return torch.cat([part, torch.tensor([[4], [4]]), part[:, :1]], 1)


def assert_same_gradients(
    out: Tensor, expected: Tensor, ours: list[Tensor], theirs: list[Tensor]
) -> None:
    """Compare two outputs and their gradients, each for its own tensors."""
    torch.testing.assert_close(out, expected)
    factor = torch.randn_like(out)
    found = torch.autograd.grad(out, ours, factor)
    for a, b in zip(found, torch.autograd.grad(expected, theirs, factor), strict=True):
        torch.testing.assert_close(a, b.reshape(a.shape))


@pytest.mark.parametrize("is_directed", [False, True])
def test_gat_is_a_stack_of_gat_conv(graph: tuple[Tensor, Tensor], is_directed: bool) -> None:
    x, edge_index = graph
    x.requires_grad_()
    if is_directed:
        edge_index = directed(edge_index)
    model = baseline("GAT", out_heads=2)
    convs = pyg.GATConv(FEATURES, 8, heads=8), pyg.GATConv(64, CLASSES, heads=2, concat=False)
    ours = [x]
    theirs = [x]
    for conv, layer, bias in zip(convs, (model.first, model.last), (model.bias, model.out_bias)):
        copy({conv.lin.weight: layer.lin.weight, conv.bias: bias})
        copy({conv.att_src: layer.att_src, conv.att_dst: layer.att_dst})
        ours += [layer.lin.weight, layer.att_src, layer.att_dst, bias]
        theirs += [conv.lin.weight, conv.att_src, conv.att_dst, conv.bias]
    expected = convs[1](F.elu(convs[0](x, edge_index)), edge_index)
    assert_same_gradients(model(x, edge_index), expected, ours, theirs)


@pytest.mark.parametrize("K", [0, 1, 2, 5])
def test_chebnet_is_a_stack_of_cheb_conv(graph: tuple[Tensor, Tensor], K: int) -> None:
    x, edge_index = graph
    model = baseline("ChebNet", K=K)
    convs = pyg.ChebConv(FEATURES, 32, K=K + 1), pyg.ChebConv(32, CLASSES, K=K + 1)
    for conv, lin, bias in zip(convs, model.lins, model.biases):
        copy(
            {conv.bias: bias}
            | dict(zip([term.weight for term in conv.lins], lin.weight.chunk(K + 1)))
        )
    torch.testing.assert_close(
        model(x, edge_index), convs[1](F.relu(convs[0](x, edge_index)), edge_index)
    )


def test_sgc_is_sg_conv(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model, conv = baseline("SGC", K=3), pyg.SGConv(FEATURES, CLASSES, K=3)
    copy({conv.lin.weight: model.lin.weight, conv.lin.bias: model.bias})
    torch.testing.assert_close(model(x, edge_index), conv(x, edge_index))


def test_appnp_is_pygs_without_edge_dropout(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model = baseline("APPNP", K=7, alpha=0.2)
    torch.testing.assert_close(model(x, edge_index), pyg.APPNP(7, 0.2)(model.mlp(x), edge_index))


@pytest.mark.parametrize("K", [1, 3])
def test_arma_is_a_stack_of_arma_conv(graph: tuple[Tensor, Tensor], K: int) -> None:
    x, edge_index = graph
    model = baseline("ARMA", K=K, num_stacks=2)
    kind = {"num_stacks": 2, "num_layers": K, "shared_weights": True}
    convs = pyg.ARMAConv(FEATURES, 16, **kind), pyg.ARMAConv(16, CLASSES, act=nn.Identity(), **kind)
    for conv, layer in zip(convs, (model.first, model.last)):
        copy({conv.weight: layer.weight, conv.bias: layer.bias})
        copy({conv.init_weight: torch.stack([w.T for w in layer.init.weight.chunk(2)])})
        copy({conv.root_weight: torch.stack([w.T for w in layer.root.weight.chunk(2)])})
    torch.testing.assert_close(model(x, edge_index), convs[1](convs[0](x, edge_index), edge_index))


@pytest.mark.parametrize("is_directed", [False, True])
def test_fagcn_is_a_stack_of_fa_conv(graph: tuple[Tensor, Tensor], is_directed: bool) -> None:
    x, edge_index = graph
    if is_directed:
        edge_index = directed(edge_index)
    x.requires_grad_()
    weight = torch.rand(edge_index.shape[1], requires_grad=True)
    model = baseline("FAGCN", K=3, eps=0.4)
    kept, norm = gcn_norm(*remove_self_loops(edge_index, weight), N, add_self_loops=False)
    hidden = first = F.relu(F.linear(x, model.lin1.weight, model.lin1.bias))
    shared = [x, weight, model.lin1.weight, model.lin1.bias, model.lin2.weight]
    ours = [*shared]
    theirs = [*shared]
    for layer in model.convs:
        conv = pyg.FAConv(32, eps=0.4, normalize=False)
        copy({conv.att_l.weight: layer.att_l.weight, conv.att_r.weight: layer.att_r.weight})
        ours += [layer.att_l.weight, layer.att_r.weight]
        theirs += [conv.att_l.weight, conv.att_r.weight]
        hidden = conv(hidden, first, kept, norm)
    assert_same_gradients(model(x, edge_index, weight), model.lin2(hidden), ours, theirs)


def test_fagcn_normalises_as_fa_conv(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model = baseline("FAGCN", K=1, eps=0.4)
    first = F.relu(model.lin1(x))
    conv = pyg.FAConv(32, eps=0.4, add_self_loops=False)
    conv.load_state_dict(model.convs[0].state_dict())
    torch.testing.assert_close(model(x, edge_index), model.lin2(conv(first, first, edge_index)))


def test_layers_of_fagcn_start_as_those_of_pyg() -> None:
    """The same seed gives the same weights, and leaves the generator in the same state."""
    started = []
    for make in (lambda: _SignedAttention(32, 0.3, 0.5), lambda: pyg.FAConv(32, 0.3, 0.5)):
        torch.manual_seed(0)
        layer = make()
        started.append({**layer.state_dict(), "next draw": torch.rand(1)})
    ours, theirs = started
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name])


@pytest.mark.parametrize("name", ["GPRGNN", "APPNP"])
def test_walks_are_a_polynomial_on_the_exact_eigenbasis(
    graph: tuple[Tensor, Tensor], name: str
) -> None:
    x, edge_index = graph
    model = baseline(name, K=6, alpha=0.3)
    s, U = torch.linalg.eigh(normalised(adjacency(edge_index, N) + torch.eye(N)))
    gamma = (
        [0.3 * 0.7**k for k in range(6)] + [0.7**6]
        if name == "APPNP"
        else model.prop.gamma.tolist()
    )
    response = sum(g * s**k for k, g in enumerate(gamma))
    torch.testing.assert_close(model(x, edge_index), U @ (response[:, None] * (U.T @ model.mlp(x))))


def test_gprgnn_starts_as_personalised_pagerank() -> None:
    gamma = find_model("GPRGNN").model(2, 2, K=3, alpha=0.2).prop.gamma  # type: ignore[union-attr]
    torch.testing.assert_close(gamma.data, torch.tensor([0.2, 0.16, 0.128, 0.512]))


def test_bernnet_is_bernsteins_polynomial_on_the_exact_eigenbasis(
    graph: tuple[Tensor, Tensor],
) -> None:
    x, edge_index = graph
    model = baseline("BernNet", K=8)
    theta = model.prop.gamma.relu().tolist()
    assert 0.0 in theta  # a negative coefficient is cut
    λ, U = torch.linalg.eigh(torch.eye(N) - normalised(adjacency(edge_index, N)))
    response = sum(t * comb(8, k) * (2 - λ) ** (8 - k) * λ**k / 2**8 for k, t in enumerate(theta))
    torch.testing.assert_close(model(x, edge_index), U @ (response[:, None] * (U.T @ model.mlp(x))))


def test_bernnet_starts_as_the_identity(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model: Any = find_model("BernNet").model(FEATURES, CLASSES).eval()
    torch.testing.assert_close(model(x, edge_index), model.mlp(x))


def test_bernnet_takes_K_products_forward_and_K_backward(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model = baseline("BernNet", K=10)
    model(x, edge_index)
    with SparseProducts() as forward:
        out = model(x, edge_index)
    with SparseProducts() as backward:
        out.sum().backward()
    assert (forward.count, backward.count) == (10, 10)


def test_link_is_linear_in_the_rows_of_the_adjacency(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index)
    model = baseline("LINK", num_nodes=N)
    for w in (None, weight):
        expected = adjacency(edge_index, N, w) @ model.lin.weight.T + model.lin.bias
        torch.testing.assert_close(model(x, edge_index, w), expected)


@pytest.mark.parametrize(
    ("name", "settings"), [("LINK", {}), ("LINKX", {}), ("ACMGCN", {"structure": True})]
)
def test_weights_per_node_belong_to_one_graph(name: str, settings: dict[str, Any]) -> None:
    model = baseline(name, num_nodes=N, **settings)
    assert model.weights_per_node
    with pytest.raises(UserError, match="it has 30 nodes, this graph has 10"):
        model(torch.randn(10, FEATURES), random_graph(10, 0.5, 0))


@pytest.mark.parametrize("layers", [(1, 1, 1), (3, 2, 3)])
def test_linkx_is_pygs(graph: tuple[Tensor, Tensor], layers: tuple[int, int, int]) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index)
    final, edge, node = layers
    depths = {"num_layers": final, "num_edge_layers": edge, "num_node_layers": node}
    model = baseline("LINKX", num_nodes=N, hidden_channels=5, **depths)
    # PyG's normalisation uses the statistics of the present graph in training only.
    other = pyg.LINKX(N, FEATURES, 5, CLASSES, dropout=0.0, **depths).train()
    maps = [*other.node_mlp.lins, *other.final_mlp.lins]
    norms = [norm.module for norm in [*other.node_mlp.norms, *other.final_mlp.norms]]
    copy({other.edge_lin.weight: model.edge_mlp.lins[0].weight.T})
    copy({other.edge_lin.bias: model.edge_mlp.lins[0].bias})
    if edge > 1:
        maps = [*other.edge_mlp.lins, *maps]
        inner = [norm.module for norm in other.edge_mlp.norms]
        norms = [other.edge_norm, *inner, *norms]
    ours = [*model.edge_mlp.lins[1:], *model.node_mlp.lins, *model.final_mlp.lins]
    for target, source in zip(maps, ours, strict=True):
        copy({target.weight: source.weight, target.bias: source.bias})
    ours = [*model.edge_mlp.norms, *model.node_mlp.norms, *model.final_mlp.norms]
    for target, source in zip(norms, ours, strict=True):
        copy({target.weight: source.weight, target.bias: source.bias})
    of_edges, of_nodes = model.join.weight.chunk(2, 1)
    copy({other.cat_lin1.weight: of_edges, other.cat_lin2.weight: of_nodes})
    copy({other.cat_lin1.bias: model.join.bias, other.cat_lin2.bias: torch.zeros(5)})
    for w in (None, weight):
        torch.testing.assert_close(model(x, edge_index, w), other(x, edge_index, w))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("structure", [False, True])
def test_acmgcn_is_its_formula(
    graph: tuple[Tensor, Tensor], structure: bool, weighted: bool
) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index) if weighted else None
    sizes = {"hidden_channels": 5, "num_layers": 3}
    model = baseline("ACMGCN", structure=structure, num_nodes=N, **sizes)
    A = adjacency(edge_index, N, weight)
    low = (A + torch.eye(N)) / (A + torch.eye(N)).sum(1, keepdim=True)
    hidden = x
    for layer in model.layers:
        W_low, W_high, W_own = layer.lin.weight.chunk(3)
        channels = [
            (low @ hidden @ W_low.T).relu(),
            ((torch.eye(N) - low) @ hidden @ W_high.T).relu(),
            (hidden @ W_own.T).relu(),
        ]
        compared = channels
        if structure:
            channels.append((A @ layer.structure.weight.T).relu())
            compared = [norm(channel) for norm, channel in zip(layer.norms, channels)]
        scores = [(channel @ w).sigmoid() for channel, w in zip(compared, layer.score)]
        share = (torch.stack(scores, 1) @ layer.mixing / len(channels)).softmax(1)
        mixed = [share[:, [i]] * channel for i, channel in enumerate(channels)]
        hidden = sum(mixed) if structure else 3 * sum(mixed)
    torch.testing.assert_close(model(x, edge_index, weight), hidden)


@pytest.mark.parametrize("settings", [{"K": 3}, {"K": 0}, {"num_layers": 2, "normalize": False}])
@pytest.mark.parametrize("sparse", [False, True])
def test_fsgnn_is_its_formula(
    graph: tuple[Tensor, Tensor], settings: dict[str, Any], sparse: bool
) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index)
    model = baseline("FSGNN", hidden_channels=5, **settings)
    A = adjacency(edge_index, N, weight)
    hops = [x]
    for operator in (normalised(A), normalised(A + torch.eye(N))):
        hops += [torch.linalg.matrix_power(operator, k) @ x for k in range(1, model.K + 1)]
    share = model.prop.weight.exp() / model.prop.weight.exp().sum()
    parts = []
    for hop, lin, a in zip(hops, model.lins, share, strict=True):
        h = hop @ lin.weight.T + lin.bias
        parts.append(a * (h / h.square().sum(1, keepdim=True).sqrt() if model.normalize else h))
    hidden = torch.cat(parts, 1)
    for lin in model.mlp.lins:
        hidden = hidden.relu() @ lin.weight.T + lin.bias
    features = x.to_sparse_csr() if sparse else x
    torch.testing.assert_close(model(features, edge_index, weight), hidden)


def test_fsgnn_computes_the_hops_of_dense_features_once(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model = baseline("FSGNN", K=4)
    model(x.clone(), edge_index)  # prepares the graph
    with torch.inference_mode():
        expected = model(x, edge_index)
    with SparseProducts() as products:
        out = model(x, edge_index)
        out.sum().backward()
    assert products.count == 0
    torch.testing.assert_close(out, expected)
    x[0] += 1  # other features have other hops
    torch.testing.assert_close(model(x, edge_index), model(x.clone(), edge_index))


def test_fsgnn_has_a_gradient_for_the_features(graph: tuple[Tensor, Tensor]) -> None:
    x, edge_index = graph
    model = baseline("FSGNN", hidden_channels=4, K=2)
    model(x, edge_index)
    assert torch.autograd.gradcheck(model, (x.clone().requires_grad_(), edge_index))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("basis", ["monomial", "chebyshev", "bernstein"])
def test_polyformer_is_its_formula_node_by_node(
    graph: tuple[Tensor, Tensor], basis: str, sparse: bool
) -> None:
    x, edge_index = graph
    weight = random_symmetric_weight(edge_index)
    K, heads, width = 4, 2, 6
    sizes = {"hidden_channels": width, "heads": heads, "ffn_channels": 5, "num_layers": 2}
    model = baseline("PolyFormer", K=K, basis=basis, damping=1.5, **sizes)
    s, U = torch.linalg.eigh(normalised(adjacency(edge_index, N, weight) + torch.eye(N)))
    values = {
        "monomial": [s**k for k in range(K + 1)],
        "chebyshev": [torch.cos(k * torch.arccos(-s.clamp(-1, 1))) for k in range(K + 1)],
        "bernstein": [
            comb(K, k) * ((1 + s) / 2) ** (K - k) * ((1 - s) / 2) ** k for k in range(K + 1)
        ],
    }[basis]
    terms = torch.stack([U @ (value[:, None] * (U.T @ x)) for value in values])

    def layer_norm(token: Tensor, norm: nn.LayerNorm) -> Tensor:
        centred = token - token.mean()
        return centred / (centred.square().mean() + norm.eps).sqrt() * norm.weight + norm.bias

    def attend(tokens: list[Tensor], layer: Any) -> list[Tensor]:
        normed = [layer_norm(token, layer.norm) for token in tokens]
        updates = [torch.zeros(width) for _ in tokens]
        hidden = []
        for k, token in enumerate(normed):
            inner = (token @ layer.weight1[k] + layer.bias1[k, 0]).relu()
            hidden.append(inner @ layer.weight2[k] + layer.bias2[k, 0])
        for head in range(heads):
            part = slice(head * width // heads, (head + 1) * width // heads)
            for j, update in enumerate(updates):
                for k, value in enumerate(normed):
                    query = (layer.query.weight @ hidden[j])[part]
                    key = (layer.key.weight @ hidden[k])[part]
                    share = torch.tanh(query @ key / (width / heads) ** 0.5)
                    update[part] += share * layer.scale[head, k] / (k + 1) ** 1.5 * value[part]
        return [token + update for token, update in zip(tokens, updates)]

    expected = []
    with torch.no_grad():
        for node in range(N):
            tokens = [model.lin.weight @ terms[k, node] + model.lin.bias for k in range(K + 1)]
            for attention, feed_forward in zip(model.prop, model.feed_forwards):
                tokens = attend(tokens, attention)
                for k, token in enumerate(tokens):
                    inner = feed_forward.lin1(layer_norm(token, feed_forward.norm))
                    gelu = inner * (1 + torch.erf(inner / 2**0.5)) / 2
                    tokens[k] = token + feed_forward.lin2(gelu)
            first, last = model.mlp.lins
            expected.append(last(first(sum(tokens)).relu()))
        features = x.to_sparse_csr() if sparse else x
        out = model(features, edge_index, weight)
    torch.testing.assert_close(out, torch.stack(expected))


def test_polyformer_refuses_heads_that_do_not_divide_the_width() -> None:
    with pytest.raises(ValueError, match="heads = 3 does not divide hidden_channels = 64"):
        baseline("PolyFormer", hidden_channels=64, heads=3)


@pytest.mark.parametrize("self_loop", [0.0, 1.5])
def test_bmgcn_is_its_formula(graph: tuple[Tensor, Tensor], self_loop: float) -> None:
    x, edge_index = graph
    nodes, y = torch.arange(0, N, 3), torch.arange(N // 3) % CLASSES
    model = baseline("BMGCN", enhance=3.0, self_loop=self_loop, dropout=0.0, mlp_dropout=0.0)
    model.training_loss(x, edge_index, None, nodes, y)

    A = adjacency(edge_index, N) + self_loop * torch.eye(N)
    scores = model.mlp(x)
    B = scores.softmax(1)
    Y = B.clone()
    Y[nodes] = F.one_hot(y, CLASSES).double()
    H = (Y.T @ A @ Y) / (Y.T @ A @ torch.ones(N, 1))
    Q = H @ H.T * (1 + 2 * torch.eye(CLASSES))
    Q = Q / Q.sum(1, keepdim=True)
    linked = A > 0
    omega = torch.where(linked, (B @ Q @ B.T * A).exp(), 0.0)
    omega = omega / omega.sum(1, keepdim=True).where(linked.any(1, keepdim=True), 1.0)
    hidden = x
    for layer, (neighbours, own) in enumerate(zip(model.neighbours, model.selves)):
        hidden = hidden if layer == 0 else hidden.relu()
        hidden = omega @ hidden @ neighbours.weight.T + hidden @ own.weight.T + own.bias

    torch.testing.assert_close(model.block_matrix, H)
    torch.testing.assert_close(model(x, edge_index), hidden)
    for smoothing in (0.0, 0.3):
        loss = model.training_loss(x, edge_index, None, nodes, y, smoothing)
        expected = F.cross_entropy(hidden[nodes], y, label_smoothing=smoothing)
        expected = expected + F.cross_entropy(scores[nodes], y, label_smoothing=smoothing)
        torch.testing.assert_close(loss, expected)


class SparseProducts(TorchDispatchMode):
    """Counts the products with a sparse matrix."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        sparse = any(isinstance(a, Tensor) and a.layout == torch.sparse_csr for a in args)
        self.count += sparse and "mm" in func.__name__
        return func(*args, **kwargs or {})


def random_symmetric_weight(edge_index: Tensor) -> Tensor:
    weight = torch.rand(N, N)
    return (weight + weight.T)[edge_index[0], edge_index[1]]


@pytest.mark.parametrize(
    ("name", "settings", "self_loops"),
    [
        ("FSGNN", {}, False),
        ("FSGNN", {}, True),
        ("LINKX", {"num_nodes": N}, False),
        ("LINKX", {"num_nodes": N}, True),
        ("NFGNN", {"num_nodes": N, "link": "raw", "self_loops": True}, True),
        ("ScalableNFNet", {"two_hop": 4, "degree": True, "self_loops": True}, True),
    ],
)
def test_models_derive_the_other_form_of_a_prepared_operator(
    name: str, settings: dict[str, Any], self_loops: bool, graph: tuple[Tensor, Tensor]
) -> None:
    """All of them read the graph without self-loops, and some also with them."""
    x, edge_index = graph
    model = baseline(name, **settings)
    operator = scaled_laplacian(edge_index, None, N, self_loops=self_loops)
    torch.testing.assert_close(model(x, operator), model(x, edge_index))
