"""What every registered model keeps to; a new one is tested by existing."""

import copy
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import random_graph
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call, stack_module_state, vmap
from torch_geometric.data import Data

import nfgnn
from nfgnn import NodeClassifier, split
from nfgnn.errors import UserError
from nfgnn.nn import MODELS
from nfgnn.training import RunConfig
from nfgnn.training.presets import preset

N, FEATURES, CLASSES = 40, 7, 3
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(N, FEATURES, generator=generator) < 0.3).float()
    y = torch.arange(N) % CLASSES
    graph = Data(x=x, edge_index=random_graph(N, 0.2, 0), y=y, num_classes=CLASSES)
    return split(graph, "stratified", seed=0)


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    config = RunConfig.resolve(name, {}, None, None, "none")
    return config.build(FEATURES, CLASSES, N).eval()


@every_model
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_trains_and_comes_back_from_disk(
    name: str, layout: str, data: Data, tmp_path: Path
) -> None:
    if layout == "sparse":
        data.x = data.x.to_sparse_csr()
    classifier = NodeClassifier(name, device="cpu", epochs=2).fit(data)
    assert torch.isfinite(torch.tensor(classifier.history_.train_loss)).all()
    probabilities = classifier.predict_proba(data)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(N))
    classifier.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", device="cpu").predict_proba(data)
    assert torch.equal(again, probabilities)


@every_model
def test_edges_and_weights_may_have_any_type(name: str, data: Data) -> None:
    model = build(name)
    weight = torch.full((data.edge_index.shape[1],), 2.0)
    out = model(data.x, data.edge_index, weight)
    torch.testing.assert_close(model(data.x, data.edge_index.int(), weight.double()), out)


WRONG_EDGES = {
    "floats": torch.tensor([[0.0, 1.7], [1.0, 0.0]]),
    "three rows": torch.tensor([[0, 1], [1, 0], [1, 1]]),
    "one row": torch.tensor([0, 1]),
    "unknown node": torch.tensor([[0, N], [N, 0]]),
    "negative node": torch.tensor([[0, -1], [-1, 0]]),
    "list": [[0, 1], [1, 0]],
    "array": np.array([[0, 1], [1, 0]]),
}
WRONG_WEIGHTS = {
    "too few": torch.ones(3),
    "column": torch.ones(4, 1),
    "negative": -torch.ones(4),
    "nan": torch.tensor([1.0, torch.nan, 1.0, 1.0]),
    "list": [1.0, 1.0, 1.0, 1.0],
}
READ_EDGES = [name for name, entry in MODELS.items() if entry.model.reads_edges]
IGNORE_WEIGHTS = {"GAT", "ResidualGAT", "ResidualGATSep"}


@pytest.mark.parametrize("name", READ_EDGES)
def test_wrong_edges_are_refused(name: str, data: Data) -> None:
    model = build(name)
    for edge_index in WRONG_EDGES.values():
        with pytest.raises(UserError, match=r"^edge_index "):
            model(data.x, edge_index)


@pytest.mark.parametrize("name", [name for name in READ_EDGES if name not in IGNORE_WEIGHTS])
def test_wrong_edge_weights_are_refused(name: str, data: Data) -> None:
    model = build(name)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    for edge_weight in WRONG_WEIGHTS.values():
        with pytest.raises(UserError, match=r"^edge_weight "):
            model(data.x, edge_index, edge_weight)


INVALID = {
    "hidden_channels": (0, -1, 8.0),
    "num_layers": (0, -2),
    "heads": (0, "two"),
    "K": (-1, 1.5),
    "rank": (0,),
    "pretrain_epochs": (-1, 2.5),
}
INVALID_RATES = (-0.5, 1.0, 1.5, torch.nan, "a")


@every_model
def test_invalid_sizes_and_rates_are_refused(name: str) -> None:
    entry = MODELS[name]
    parameters = inspect.signature(entry.model).parameters
    sizes = {"num_nodes": N} if "num_nodes" in parameters else {}
    invalid = {name: INVALID_RATES for name in parameters if name.endswith("dropout")}
    invalid |= {name: INVALID[name] for name in INVALID.keys() & parameters.keys()}
    for setting, values in invalid.items():
        # Heads have no effect without a gate.
        others = {"gate": "term"} if name == "NFNet" and setting == "heads" else {}
        for value in values:
            with pytest.raises(UserError, match=f"^{setting} = {value!r} is not valid"):
                entry.model(FEATURES, CLASSES, **sizes, **others, **{setting: value})


@every_model
@pytest.mark.parametrize("value", [0, 5.0])
@pytest.mark.parametrize("argument", ["in_channels", "out_channels"])
def test_invalid_numbers_of_features_and_classes_are_refused(
    name: str, argument: str, value: float
) -> None:
    entry = MODELS[name]
    sizes: dict[str, Any] = {"in_channels": FEATURES, "out_channels": CLASSES, argument: value}
    if "num_nodes" in inspect.signature(entry.model).parameters:
        sizes["num_nodes"] = N
    if name == "LINK" and argument == "in_channels":
        entry.model(**sizes)  # It does not use features.
        return
    with pytest.raises(UserError, match=rf"channels = {value} is not valid"):
        entry.model(**sizes)


@every_model
def test_sparse_features_mean_the_same(name: str, data: Data) -> None:
    model = build(name)
    torch.testing.assert_close(
        model(data.x.to_sparse_csr(), data.edge_index), model(data.x, data.edge_index)
    )


@every_model
def test_every_parameter_is_trained(name: str, data: Data) -> None:
    model = build(name)
    if model.own_loss:
        loss = model.training_loss(data.x, data.edge_index, None, torch.arange(N), data.y)
    else:
        loss = model(data.x, data.edge_index).logsumexp(1).sum()
    loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@every_model
def test_features_and_edge_weights_have_their_gradients(name: str) -> None:
    """In float64, finite differences agree, or the model says that it has no gradient."""
    # A ring with chords: at a node without neighbours, some ReLUs are exactly at their kink.
    node = torch.arange(8)
    undirected = torch.cat([torch.stack([node, (node + step) % 8]) for step in (1, 3)], 1)
    both = torch.cat([undirected, undirected.flip(0)], 1)
    torch.manual_seed(0)
    config = RunConfig.resolve(name, {}, None, None, "none")
    model = config.build(FEATURES, CLASSES, len(node)).eval().double()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(len(node), FEATURES, generator=generator, dtype=torch.double)
    weight = 0.5 + torch.rand(undirected.shape[1], generator=generator, dtype=torch.double)

    def logits(x: Tensor, weight: Tensor) -> Tensor:
        return model(x, both, weight.repeat(2))

    changed = logits(x, 2 * weight.flip(0))
    ignores_weights = changed.equal(logits(x, weight))
    assert gradcheck(lambda x: logits(x, weight), x.requires_grad_())
    weight.requires_grad_()
    if name in ("LINK", "LINKX"):
        with pytest.raises(UserError, match=r"pass edge_weight\.detach\(\)"):
            logits(x, weight)
    elif not ignores_weights:
        assert gradcheck(lambda weight: logits(x.detach(), weight), weight)


@every_model
def test_autocast_computes_almost_the_same(name: str, data: Data) -> None:
    model = build(name)
    with torch.no_grad():
        exact = model(data.x, data.edge_index)
        with torch.autocast("cpu", torch.bfloat16):
            out = model(data.x, data.edge_index)
    torch.testing.assert_close(out.float(), exact, rtol=0.1, atol=0.05 * float(exact.abs().max()))


@every_model
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_graph_that_was_read_in_inference_mode_can_be_trained_on(
    name: str, layout: str, data: Data
) -> None:
    """What the evaluation has cached serves the backward pass, as with a graph never read."""
    if layout == "sparse":
        data.x = data.x.to_sparse_csr()
    fresh = data.clone()
    model = build(name)

    def gradients(graph: Data) -> list[Tensor]:
        out = model(graph.x, graph.edge_index)
        used = [p for p in model.parameters() if p.requires_grad]
        return list(torch.autograd.grad(out.square().sum(), used))

    with torch.inference_mode():
        model(data.x, data.edge_index)
    torch.testing.assert_close(gradients(data), gradients(fresh))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "name", ["NFNet", "ResidualGCN", "ResidualGAT", "NFGNN", "PolyFormer", "GAT", "FAGCN"]
)
def test_a_compiler_accepts_models(name: str, train: bool, data: Data) -> None:
    """Not in one graph: the compiler leaves out preparation and products where it must."""
    model = build(name).train(train)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager")
    out = compiled(data.x, data.edge_index)
    out.sum().backward()
    if not train:
        torch.testing.assert_close(out, model(data.x, data.edge_index))
        return
    # Dropout draws numbers of its own in every pass.
    assert torch.isfinite(out).all()
    assert not torch.equal(out, compiled(data.x, data.edge_index))


@pytest.mark.parametrize(
    "name", [name for name, entry in MODELS.items() if not entry.model.weights_per_node]
)
def test_the_order_of_nodes_does_not_matter(name: str, data: Data) -> None:
    model, order = build(name), torch.randperm(N, generator=torch.Generator().manual_seed(1))
    moved = torch.empty_like(order).scatter_(0, order, torch.arange(N))[data.edge_index]
    expected = model(data.x, data.edge_index)[order]
    torch.testing.assert_close(model(data.x[order], moved), expected, rtol=1e-4, atol=1e-5)


@every_model
def test_a_second_graph_is_not_seen_through_the_first(name: str, data: Data) -> None:
    model, other = build(name), random_graph(N, 0.3, 5)
    fresh = copy.deepcopy(model)
    model(data.x, data.edge_index)
    torch.testing.assert_close(model(data.x, other), fresh(data.x, other))


@every_model
def test_reset_parameters_starts_anew(name: str) -> None:
    model = build(name)

    def reset() -> list[Tensor]:
        torch.manual_seed(1)
        model.reset_parameters()  # type: ignore[operator]
        return [t.clone() for t in model.state_dict().values()]

    first = reset()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(1)
    assert all(torch.equal(a, b) for a, b in zip(first, reset()))


@pytest.mark.parametrize(
    "name", [name for name, entry in MODELS.items() if entry.model.shares_passes]
)
def test_shared_passes_equal_separate_ones(name: str, data: Data) -> None:
    """The logits of both passes, and the gradients of the training pass, with dropout."""
    torch.manual_seed(0)
    rates = RunConfig.resolve(name, {}, None, None, "none").settings().keys() & {
        "dropout",
        "filter_dropout",
    }
    config = RunConfig.resolve(name, dict.fromkeys(rates, 0.5), None, None, "none")
    model = config.build(FEATURES, CLASSES, N)
    factor = torch.randn(N, CLASSES)

    def gradients(logits: Tensor) -> list[Tensor]:
        used = [p for p in model.parameters() if p.requires_grad]
        return list(torch.autograd.grad((logits * factor).sum(), used))

    torch.manual_seed(1)
    training, evaluation = model.forward_pair(data.x, data.edge_index)
    shared = [training, *gradients(training)]
    torch.manual_seed(1)
    training = model.train()(data.x, data.edge_index)
    torch.testing.assert_close(shared, [training, *gradients(training)])
    torch.testing.assert_close(evaluation, model.eval()(data.x, data.edge_index))
    assert not evaluation.requires_grad
    assert not torch.equal(training, evaluation)


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.model.batchable])
def test_many_seeds_share_one_computation(name: str, data: Data) -> None:
    models = [build(name) for _ in range(3)]
    for model in models[1:]:
        model.reset_parameters()  # type: ignore[operator]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]

    def call(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Any:
        return functional_call(models[0], (parameters, buffers), (data.x, data.edge_index))

    expected = torch.stack([model(data.x, data.edge_index) for model in models])
    torch.testing.assert_close(vmap(call)(parameters, buffers), expected)


@every_model
@pytest.mark.parametrize("protocol", ["full", "semi"])
@pytest.mark.parametrize("dataset", ["cora", "chameleon", "texas", "cornell-genuine", None])
def test_presets_are_settings_of_the_model(name: str, dataset: str | None, protocol: str) -> None:
    config = RunConfig.resolve(name, {}, dataset, protocol).settings()
    assert preset(name, dataset, protocol).items() <= config.items()


TOY = """
from torch import nn
from nfgnn.nn import NodeModel
from nfgnn.nn.models import register_model

@register_model("A toy", 2024, "O(nc)")
class Toy(NodeModel):
    def __init__(self, in_channels, out_channels, gain=1.0):
        super().__init__()
        self.lin, self.gain = nn.Linear(in_channels, out_channels), gain

    def forward(self, x, edge_index, edge_weight=None):
        return self.gain * self.lin(x.to_dense())
"""
USE = """
from nfgnn import NodeClassifier, load_dataset, split
data = split(load_dataset("karate"), "stratified", seed=0)
classifier = NodeClassifier("toy", device="cpu").fit(data)
assert classifier.config_.hyper == {"gain": 2.0}, classifier.config_
assert classifier.config_.training.lr == 0.5, classifier.config_
assert classifier.history_.epochs == 3
import sys
from nfgnn.cli import main
sys.argv = ["nfgnn", "models", "Toy", "--json"]
main()
"""


def test_a_new_model_is_one_file_and_one_preset(tmp_path: Path) -> None:
    package = tmp_path / "nfgnn"
    shutil.copytree(
        Path(nfgnn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "nn" / "models" / "toy.py").write_text(TOY)
    (package / "training" / "presets" / "toy.toml").write_text(
        "[default]\ngain = 2.0\nlr = 0.5\nepochs = 3\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '"Toy"' in done.stdout
