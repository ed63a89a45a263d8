"""Deep residual networks against the same networks written with PyG's layers."""

import copy

import pytest
import torch
import torch.nn.functional as F
from conftest import random_graph
from helpers import triton_on_cpu  # noqa: F401  before any kernel is defined
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

import nfgnn
from nfgnn.errors import UserError
from nfgnn.kernels import residual_block as kernels_of_blocks
from nfgnn.nn import (
    HEAD_GATES,
    attention,
    batch_norm,
    dropout,
    find_model,
    residual_block,
    terms_linear,
)
from nfgnn.nn.conv import spectral_conv
from nfgnn.nn.models.residual_stack import BlockConv, ResidualStack
from nfgnn.training import RunConfig, fit
from nfgnn.training.batched import Member, fit_batched

N = 24
WIDTH = 16


def plain_network(model: nn.Module, convs: list[nn.Module], x: Tensor, edges: Tensor) -> Tensor:
    """The residual network in evaluation, with the weights of ``model``."""
    h = F.gelu(model.lin_in(x) + model.in_bias)
    states = [h]
    for block, conv in zip(model.blocks, convs):
        y = plain_norm(model.norm, h, block)
        hidden = F.gelu(conv(y, edges) + block.bias)
        h = h + hidden @ block.weight[0]
        if block.out_bias is not None:
            h = h + block.out_bias
        states.append(h)
    if model.jumping == "mean":
        h = torch.stack(states).mean(0)
    return model.lin_out(plain_norm(model.norm, h, model))


def plain_norm(kind: str, h: Tensor, owner: nn.Module) -> Tensor:
    if kind == "layer":
        return F.layer_norm(h, (WIDTH,), owner.gamma, owner.beta)
    if kind == "none":
        return h * owner.gamma + owner.beta
    running = (owner.statistics.mean, owner.statistics.var)
    return F.batch_norm(h, *running, owner.gamma, owner.beta, training=owner.training)


def randomised(name: str, **settings: object) -> nn.Module:
    torch.manual_seed(0)
    model = find_model(name).model(5, 3, hidden_channels=WIDTH, num_layers=3, **settings).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def sage_layers(model: nn.Module) -> list[nn.Module]:
    """PyG's layers with the weights of the blocks."""
    convs = []
    for block in model.blocks:
        conv = SAGEConv(WIDTH, WIDTH, bias=False)
        conv.lin_r.weight.data = block.conv.weight[0].T
        conv.lin_l.weight.data = block.conv.weight[1].T
        convs.append(conv)
    return convs


def test_the_networks_are_public() -> None:
    assert nfgnn.NFNet is find_model("NFNet").model
    for name in ("NFNet", "ResidualGCN", "ResidualSAGE", "ResidualGAT", "ResidualGATSep"):
        assert getattr(nfgnn.nn, name) is find_model(name).model
        assert name in nfgnn.nn.__all__


@pytest.mark.parametrize("jumping", ["last", "mean"])
def test_sage_and_nfnet_equal_pyg(jumping: str) -> None:
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    model = randomised("ResidualSAGE", jumping=jumping)
    expected = plain_network(model, sage_layers(model), x, edges)
    torch.testing.assert_close(model(x, edges), expected, rtol=1e-4, atol=1e-4)
    same = randomised("NFNet", operator="mean", jumping=jumping)
    same.load_state_dict(model.state_dict())
    torch.testing.assert_close(same(x, edges), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("jumping", ["last", "mean"])
@pytest.mark.parametrize("norm", ["batch", "none"])
def test_other_norms_equal_pyg(norm: str, jumping: str, recompute: bool) -> None:
    """Training passes with their gradients and running statistics, then an evaluation."""
    edges = random_graph(N, 0.1, 0)
    settings = {"norm": norm, "jumping": jumping, "dropout": 0.0}
    model = randomised("ResidualSAGE", recompute=recompute, **settings).train()
    plain = randomised("ResidualSAGE", **settings).train()
    for seed in range(2):
        torch.manual_seed(seed)
        x = torch.randn(N, 5)
        logits = model(x, edges)
        expected = plain_network(plain, sage_layers(plain), x, edges)
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
        gradient = torch.autograd.grad(logits.square().sum(), model.lin_in.weight)
        expected_gradient = torch.autograd.grad(expected.square().sum(), plain.lin_in.weight)
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-3, atol=1e-3)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(model.named_buffers())[name], buffer)
    expected = plain_network(plain.eval(), sage_layers(plain), x, edges)
    torch.testing.assert_close(model.eval()(x, edges), expected, rtol=1e-4, atol=1e-4)
    assert bool(list(model.buffers())) is (norm == "batch")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *(("NFNet", {"gate": gate, "heads": 4}) for gate in ("none", *HEAD_GATES)),
        ("NFNet", {"gate": "agreement", "heads": 4, "recompute": True}),
        *((name, {}) for name in ("ResidualGCN", "ResidualSAGE", "ResidualGAT", "ResidualGATSep")),
    ],
    ids=str,
)
def test_graphs_of_a_batch_do_not_meet(name: str, settings: dict[str, object]) -> None:
    first, second = random_graph(N, 0.2, 0), random_graph(N, 0.5, 1)
    model = randomised(name, K=2, **settings) if name == "NFNet" else randomised(name, **settings)
    model.double()
    x = torch.randn(2 * N, 5, dtype=torch.double)
    batch = torch.arange(2 * N) // N
    edges = torch.cat([first, second + N], dim=1)
    together = model(x, edges, batch=batch)
    alone = torch.cat([model(x[:N], first), model(x[N:], second)])
    torch.testing.assert_close(together, alone)
    mixes = settings.get("gate") in ("agreement", "attention", "cluster")
    assert torch.allclose(model(x, edges), alone) is not mixes


@pytest.mark.parametrize(
    "name", ["NFNet", "ResidualGCN", "ResidualSAGE", "ResidualGAT", "ResidualGATSep"]
)
@pytest.mark.parametrize(
    ("argument", "value", "remedy"),
    [
        ("in_channels", 0, "pass a whole number of at least 1"),
        ("hidden_channels", 0, "pass a whole number of at least 1"),
        ("num_layers", 0, "pass a whole number of at least 1"),
        ("num_layers", 2.5, "pass a whole number of at least 1"),
        ("dropout", 1.5, "pass a number from 0 to 1"),
        ("input_dropout", -0.1, "pass a number from 0 to 1"),
    ],
)
def test_wrong_numbers_are_refused(name: str, argument: str, value: float, remedy: str) -> None:
    arguments = {"in_channels": 5, "out_channels": 3, argument: value}
    with pytest.raises(UserError, match=f"^{argument} = {value} is not valid: {remedy}"):
        find_model(name).model(**arguments)


@pytest.mark.parametrize(("name", "settings"), [("NFNet", {"gate": "term"}), ("ResidualGAT", {})])
def test_heads_must_divide_the_width(name: str, settings: dict[str, object]) -> None:
    message = "heads = 7 does not divide hidden_channels = 128: choose a divisor, such as heads = 8"
    with pytest.raises(UserError, match=message):
        find_model(name).model(5, 3, heads=7, **settings)


def test_settings_of_a_network_may_be_positional() -> None:
    """Networks of other packages, which were written for 0.2.0, pass them so."""

    class Mean(BlockConv):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, WIDTH)

        def reset_parameters(self) -> None:
            self.conv.reset_parameters()

        def forward(
            self,
            x: Tensor,
            edge_index: Tensor,
            edge_weight: Tensor | None = None,
            batch: Tensor | None = None,
        ) -> Tensor:
            return self.conv(x, edge_index)

    network = ResidualStack(3, 2, WIDTH, [Mean()], 0.1, "mean", False, "none", 0.2)
    assert network.dropout == 0.1
    assert network.jumping == "mean"
    assert network.norm == "none"
    assert network.input_dropout == 0.2
    assert network(torch.randn(N, 3), random_graph(N, 0.3, 0)).shape == (N, 2)


def test_an_unknown_norm_is_refused() -> None:
    with pytest.raises(UserError, match="norm 'bach'"):
        randomised("NFNet", norm="bach")
    with pytest.raises(UserError, match="unknown norm None: choose one of layer, batch, none"):
        randomised("NFNet", norm=None)


@pytest.mark.parametrize("name", ["NFNet", "ResidualGCN", "ResidualGAT"])
def test_features_of_another_shape_are_refused(name: str) -> None:
    model = randomised(name)
    edge_index = random_graph(N, 0.2, 0)
    x = torch.rand(N, 5)
    for wrong, found in [
        (x[:, :4], rf"\[{N}, 4\]"),
        (x[None], rf"\[1, {N}, 5\]"),
        (x[0], r"\[5\]"),
        (x[:, :4].to_sparse_csr(), rf"\[{N}, 4\]"),
        ((x, x), "tuple"),
    ]:
        with pytest.raises(UserError, match=rf"{name} needs .* \[num_nodes, 5\], got {found}$"):
            model(wrong, edge_index)


def test_new_weights_forget_the_statistics() -> None:
    model = randomised("NFNet", norm="batch").train()
    model(torch.randn(N, 5), random_graph(N, 0.1, 0))
    assert float(model.statistics.mean.abs().sum()) > 0
    model.reset_parameters()
    for name, buffer in model.named_buffers():
        expected = torch.zeros(WIDTH) if name.endswith("mean") else torch.ones(WIDTH)
        assert torch.equal(buffer, expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_input_dropout_is_the_dropout_of_the_features(sparse: bool) -> None:
    """The logits are those of a network without it on features with dropout."""
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    features = x.to_sparse_csr() if sparse else x
    model = randomised("NFNet", dropout=0.0, input_dropout=0.5)
    without = randomised("NFNet", dropout=0.0)
    assert torch.equal(model(features, edges), without(features, edges))
    torch.manual_seed(1)
    logits = model.train()(features, edges)
    torch.manual_seed(1)
    dropped = dropout(features, 0.5, training=True)
    assert torch.equal(logits, without(dropped, edges))
    assert not torch.equal(logits, without(features, edges))


def test_batch_norm_compiles() -> None:
    """A compiled network has the logits and the running statistics of the eager one."""
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    torch.manual_seed(0)
    eager = find_model("NFNet").model(5, 3, 16, num_layers=1, norm="batch", dropout=0.0)
    model = copy.deepcopy(eager)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x, edges), eager(x, edges))
    torch.testing.assert_close(model.state_dict(), eager.state_dict())


class ConvAndLinear(nn.Module):
    """PyG's GCNConv, plus a linear map of the node itself if it has one."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, WIDTH, bias=False)
        self.conv.lin.weight.data = weight[0].T
        self.root = weight[1:]

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        out = self.conv(x, edges)
        for own in self.root:
            out = out + x @ own
        return out


@pytest.mark.parametrize("root_weight", [False, True])
def test_gcn_equals_pyg(root_weight: bool) -> None:
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    model = randomised("ResidualGCN", root_weight=root_weight)
    convs = [ConvAndLinear(block.conv.weight.detach()) for block in model.blocks]
    expected = plain_network(model, convs, x, edges)
    torch.testing.assert_close(model(x, edges), expected, rtol=1e-4, atol=1e-4)


def test_dropout_is_on_in_training_only() -> None:
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    model = randomised("NFNet", dropout=0.5)
    assert torch.equal(model(x, edges), model(x, edges))
    model.train()
    assert not torch.equal(model(x, edges), model(x, edges))


def small_data() -> Data:
    torch.manual_seed(0)
    y = torch.arange(N) % 2
    x = torch.randn(N, 5) + y[:, None]
    train = torch.arange(N) < N // 2
    edges = random_graph(N, 0.1, 0)
    return Data(
        x=x, edge_index=edges, y=y, num_classes=2, train_mask=train, val_mask=~train, name="small"
    )


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("name", ["NFNet", "PolyFormer"])
def test_half_precision_trains_almost_as_float32(name: str, at_once: bool) -> None:
    data = small_data()
    losses = {}
    for precision in ("float32", "bfloat16"):
        settings = {"hidden_channels": WIDTH, "epochs": 15, "patience": 15, "dropout": 0.0}
        settings |= {"precision": precision, "lr": 0.01}
        if name == "PolyFormer":
            settings |= {"filter_dropout": 0.0}
        config = RunConfig.resolve(name, settings, None, None, "none")
        torch.manual_seed(0)
        models = [config.build(5, 2), config.build(5, 2)]
        if at_once:
            members = [
                Member(model, data.train_mask, data.val_mask, config.training) for model in models
            ]
            histories = fit_batched(members, data)
        else:
            histories = [fit(model, data, config.training) for model in models]
        weights = [weight for model in models for weight in model.parameters()]
        assert {weight.dtype for weight in weights} == {torch.float32}
        losses[precision] = histories[0].train_loss
    assert losses["float32"] != losses["bfloat16"]
    assert losses["bfloat16"][-1] < 0.5 * losses["bfloat16"][0]
    torch.testing.assert_close(
        torch.tensor(losses["bfloat16"][:3]),
        torch.tensor(losses["float32"][:3]),
        rtol=0.1,
        atol=0.1,
    )


def test_passes_that_share_work_are_in_half_precision() -> None:
    data = small_data()
    settings = {"hidden_channels": WIDTH, "epochs": 3, "precision": "bfloat16"}
    config = RunConfig.resolve("PolyFormer", settings, None, None, "none")
    model = config.build(5, 2)
    types: list[torch.dtype] = []

    def note_type(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        types.append(output.dtype)

    model.get_submodule("mlp").register_forward_hook(note_type)
    fit(model, data, config.training)
    assert set(types) == {torch.bfloat16}


def test_models_without_half_precision_refuse_it() -> None:
    config = RunConfig.resolve("GCN", {"precision": "bfloat16"}, None, None, "none")
    with pytest.raises(UserError, match="supports only float32"):
        config.build(5, 2)


@pytest.mark.parametrize("name", ["NFNet", "ResidualGCN", "ResidualGATSep"])
def test_recomputed_blocks_have_the_same_gradients_and_store_less(name: str) -> None:
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    gradients = []
    stored = []
    for recompute in (False, True):
        model = randomised(name, dropout=0.4, recompute=recompute)
        assert model.batchable is not recompute
        sizes: dict[int, int] = {}

        def note(tensor: Tensor, sizes: dict[int, int] = sizes) -> Tensor:
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            loss = model.train()(x, edges).square().mean()
        loss.backward()
        gradients.append([p.grad for p in model.parameters()])
        stored.append(sum(sizes.values()))
    for plain, again in zip(*gradients):
        torch.testing.assert_close(plain, again)
    assert stored[1] < 0.5 * stored[0]


NETWORKS = [
    ("NFNet", {"K": 2, "basis": "chebyshev", "operator": "mean", "jumping": "mean"}),
    *(("NFNet", {"gate": gate, "heads": 4}) for gate in HEAD_GATES),
    ("ResidualGCN", {}),
    ("ResidualGATSep", {"heads": 4}),
    ("ResidualSAGE", {"norm": "batch", "jumping": "mean"}),
    ("ResidualGCN", {"norm": "none"}),
]


WITH_KERNELS = [
    ("NFNet", {"K": 2}),
    ("ResidualGATSep", {"heads": 4}),
    ("ResidualSAGE", {"norm": "batch"}),
]


@pytest.mark.parametrize(
    ("name", "settings", "kernels"),
    [*((*network, False) for network in NETWORKS), *((*network, True) for network in WITH_KERNELS)],
    ids=str,
)
def test_autocast_is_close_to_float32(
    name: str, settings: dict[str, object], kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the GPU's kernels, which do not take part in autocast, and without."""
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5)
    model = randomised(name, dropout=0.0, **settings)
    expected = gradients(model, x, edges)
    if kernels:
        for module in (residual_block, terms_linear, batch_norm, attention, spectral_conv):
            monkeypatch.setattr(module, "is_fused", lambda x: x.dtype != torch.float64)
        # Triton's interpreter has no products of bfloat16.
        monkeypatch.setattr(kernels_of_blocks, "weight_gradient", weight_gradient)
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients(model, x, edges)
    # Gradients that cancel out are compared on the scale of the others.
    largest = max(gradient.norm() for gradient in expected.values())
    for key, gradient in expected.items():
        assert found[key].dtype == torch.float32
        error = (found[key] - gradient).norm() / max(gradient.norm(), 0.05 * largest)
        assert error < 0.1, (key, float(error))


def weight_gradient(grad: Tensor, terms: list[Tensor], dtype: torch.dtype) -> Tensor:
    """Return T_kᵀ G of every run and order."""
    products = [torch.einsum("nri,nro->rio", term.float(), grad.float()) for term in terms]
    return torch.stack(products, 1).to(dtype)


def gradients(model: nn.Module, x: Tensor, edges: Tensor) -> dict[str, Tensor]:
    """Return the logits and the gradients of all parameters."""
    model.zero_grad()
    logits = model(x, edges)
    logits.square().mean().backward()
    found = {key: value.grad for key, value in model.named_parameters() if value.grad is not None}
    return {"logits": logits.detach(), **found}


@pytest.mark.parametrize(("name", "settings"), NETWORKS, ids=str)
def test_runs_at_once_on_a_gpu_equal_single_runs(
    name: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs as one computation of the GPU's kernels, and each run in plain torch in float64."""
    for module in (residual_block, terms_linear, batch_norm, attention, spectral_conv):
        monkeypatch.setattr(module, "is_fused", lambda x: x.dtype == torch.float32)
    edges = random_graph(N, 0.1, 0)
    x = torch.randn(N, 5, dtype=torch.double)
    model = randomised(name, dropout=0.0, **settings)
    model(x.float(), edges)  # the trainer, too, prepares the graph before any transformation
    model.double()
    runs = [
        {key: torch.randn_like(value) * 0.2 for key, value in model.named_parameters()}
        for _ in range(2)
    ]

    def loss(weights: dict[str, Tensor]) -> Tensor:
        features = x.to(next(iter(weights.values())))
        logits: Tensor = functional_call(model, weights, (features, edges))
        return logits.square().mean()

    stacked = {key: torch.stack([run[key] for run in runs]).float() for key in runs[0]}
    found, _ = vmap(grad_and_value(loss))(stacked)
    for number, run in enumerate(runs):
        expected, _ = grad_and_value(loss)(run)
        for key, gradient in expected.items():
            scale = gradient.abs().max().clamp(min=1e-3)
            error = (found[key][number].double() - gradient).abs().max() / scale
            assert error < 2e-3, (key, float(error))
