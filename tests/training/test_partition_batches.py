"""Mini-batches of graph partitions, compared with the whole graph."""

import copy
from dataclasses import replace
from itertools import chain, permutations
from typing import Any

import pytest
import torch
from conftest import random_graph
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import subgraph, to_dense_adj

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import kept_edges, mixed_graph, partition_graph
from nfgnn.errors import UserError
from nfgnn.nn import MODELS, NFGNN, NodeModel, Scalable
from nfgnn.nn.models.gcn import GCN
from nfgnn.nn.models.nfnet import NFNet
from nfgnn.training import Graph, RunConfig, RunSpec, TrainingConfig, batch_size, fit, fit_together
from nfgnn.training.class_weight import balanced_weights
from nfgnn.training.partition_batches import GraphParts, PartitionTrainer, edges_kept

COMPONENTS, SIZE = 4, 30
CONFIG = TrainingConfig(epochs=6, patience=50, lr=0.02, weight_decay=1e-3)


@pytest.fixture
def components() -> Data:
    """Return a graph of four connected components with numbers of training nodes that differ."""
    generator = torch.Generator().manual_seed(0)
    # A ring makes a component connected; other edges are random.
    ring = torch.stack([torch.arange(SIZE), (torch.arange(SIZE) + 1) % SIZE])
    edges = []
    for component in range(COMPONENTS):
        chords = torch.randint(SIZE, (2, SIZE), generator=generator)
        edges.append(torch.cat([ring, chords], 1) + component * SIZE)
    n = COMPONENTS * SIZE
    number = torch.randperm(n, generator=generator)
    x = torch.randn(n, 5, generator=generator)
    y = torch.randint(3, (n,), generator=generator)
    graph = Data(x=x, edge_index=number[torch.cat(edges, 1)], y=y)
    return split(load_dataset(graph), "random", seed=0)


@pytest.fixture
def karate() -> Data:
    data = split(load_dataset("karate"), "stratified", 0)
    data.x = data.x.to_dense()
    return data


def fitted(model: nn.Module, data: Data, config: TrainingConfig) -> tuple[Any, nn.Module]:
    model = copy.deepcopy(model)
    torch.manual_seed(3)
    return fit(model, data, config), model


def gradients(model: nn.Module) -> list[Tensor]:
    found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    return found


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("sort", [True, False])
def test_a_group_is_the_induced_subgraph_of_pyg(layout: str, sort: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    edge_index = random_graph(50, 0.2, seed=0)
    weight = torch.rand(edge_index.shape[1], generator=generator)
    if not sort:
        order = torch.randperm(edge_index.shape[1], generator=generator)
        edge_index, weight = edge_index[:, order], weight[order]
    dense = (torch.rand(50, 7, generator=generator) < 0.4).float()
    x = dense if layout == "dense" else dense.to_sparse_csr()
    part = torch.randint(6, (50,), generator=generator)
    parts = GraphParts(Data(x=x, edge_index=edge_index, edge_weight=weight), part)
    for group in ([2], [4, 0], [5, 1, 3, 0, 2, 4]):
        found = parts.subgraph(group)
        nodes = torch.isin(part, torch.tensor(group)).nonzero().flatten()
        expected, weights = subgraph(nodes, edge_index, weight, relabel_nodes=True, num_nodes=50)
        assert torch.equal(found.nodes, nodes)
        assert torch.equal(found.x.to_dense(), dense[nodes])
        assert found.edge_weight is not None
        adjacency = to_dense_adj(found.edge_index, None, found.edge_weight, len(nodes))
        assert torch.equal(adjacency, to_dense_adj(expected, None, weights, len(nodes)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["GCN", "NFGNN", "GAT"])
def test_weighted_gradients_of_components_add_up_to_that_of_the_graph(
    components: Data, name: str, weighted: bool
) -> None:
    data = components
    data.x = data.x.double()
    torch.manual_seed(0)
    model = MODELS[name].model(5, 3, dropout=0.0).double()
    nodes = data.train_mask.nonzero().flatten()
    weight = balanced_weights(data.y[nodes]).double() if weighted else None
    model.training_loss(
        data.x, data.edge_index, None, nodes, data.y[nodes], weight=weight
    ).backward()
    expected = gradients(model)
    config = replace(
        CONFIG,
        partitions=COMPONENTS,
        lr=0.0,
        filter_lr=0.0,
        weight_decay=0.0,
        class_weight="balanced" if weighted else "none",
    )
    trainer = PartitionTrainer(model, data, config)
    sums = [torch.zeros_like(gradient) for gradient in expected]
    sizes = []

    def step(epoch: int) -> None:
        share = sizes[-1] / len(nodes)
        for total, gradient in zip(sums, gradients(model)):
            total += share * gradient

    def training_loss(*args: Any, **kwargs: Any) -> Tensor:
        sizes.append(len(args[3]))
        return type(model).training_loss(model, *args, **kwargs)

    trainer.optimizer.step = step  # type: ignore[method-assign]
    model.training_loss = training_loss  # type: ignore[method-assign]
    trainer.run_epoch()
    assert len(sizes) == COMPONENTS
    assert len(set(sizes)) > 1
    for total, gradient in zip(sums, expected):
        assert torch.allclose(total, gradient, atol=1e-12, rtol=1e-6)


@pytest.mark.parametrize(("partitions", "per_batch"), [(1, 1), (5, 5), (4, 9)])
@pytest.mark.parametrize(
    "settings",
    [{}, {"class_weight": "balanced", "label_smoothing": 0.1, "metric": "macro_f1"}],
)
def test_one_group_of_all_parts_is_training_on_the_whole_graph(
    karate: Data, partitions: int, per_batch: int, settings: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    model = GCN(karate.num_features, karate.num_classes, dropout=0.5)
    config = replace(CONFIG, epochs=20, patience=3, **settings)
    on_parts = replace(config, partitions=partitions, partitions_per_batch=per_batch)
    expected, whole = fitted(model, karate, config)
    found, trained = fitted(model, karate, on_parts)
    assert found.val_loss == expected.val_loss
    assert found.val_metric == expected.val_metric
    assert found.train_loss == pytest.approx(expected.train_loss, rel=1e-12)
    assert all(map(torch.equal, whole.parameters(), trained.parameters()))


def test_one_part_equals_the_whole_graph_for_a_model_that_shares_passes(karate: Data) -> None:
    torch.manual_seed(0)
    model = NFGNN(karate.num_features, karate.num_classes, K=3, dropout=0.0)
    expected, _ = fitted(model, karate, CONFIG)
    found, _ = fitted(model, karate, replace(CONFIG, partitions=1))
    assert found.val_loss == pytest.approx(expected.val_loss, rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_deep_network_is_trained_on_parts_in_both_precisions(
    components: Data, precision: str
) -> None:
    torch.manual_seed(0)
    model = NFNet(5, 3, hidden_channels=16, dropout=0.2)
    config = replace(CONFIG, precision=precision)
    expected, whole = fitted(model, components, config)
    found, trained = fitted(model, components, replace(config, partitions=1))
    assert found.val_loss == expected.val_loss
    assert all(map(torch.equal, whole.parameters(), trained.parameters()))
    trainer = PartitionTrainer(trained, components, replace(config, partitions=COMPONENTS))
    assert torch.allclose(trainer._evaluate_groups(), trainer._evaluate(), atol=1e-5)


def test_groups_without_training_nodes_are_skipped(components: Data) -> None:
    part = partition_graph(components.edge_index, components.num_nodes, COMPONENTS)
    components.train_mask &= part < 3
    components.part = part
    trainer = PartitionTrainer(GCN(5, 3), components, replace(CONFIG, partitions=COMPONENTS))
    trainer.run_epoch()
    assert float(trainer.optimizer.groups[0]["step"][0]) == 3


def test_groups_are_drawn_anew_in_every_epoch_and_are_reproducible(components: Data) -> None:
    config = replace(CONFIG, partitions=12, partitions_per_batch=3)

    def groups(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        trainer = PartitionTrainer(GCN(5, 3), components, config)
        drawn = []
        subgraph_of = trainer.parts.subgraph

        def remember(parts: list[int]) -> Any:
            drawn.append(parts)
            return subgraph_of(parts)

        trainer.parts.subgraph = remember  # type: ignore[method-assign]
        trainer.run_epoch()
        trainer.run_epoch()
        return drawn

    drawn = groups(0)
    assert [len(group) for group in drawn] == [3] * 8
    for epoch in (drawn[:4], drawn[4:]):
        assert sorted(chain.from_iterable(epoch)) == list(range(12))
    assert drawn[:4] != drawn[4:]
    assert drawn == groups(0)
    assert drawn != groups(1)


def test_the_share_of_kept_edges_is_the_mean_over_all_groupings(components: Data) -> None:
    edge_index = components.edge_index
    part = partition_graph(edge_index, components.num_nodes, 5)
    for per_batch in (1, 2, 3, 5, 8):
        shares = []
        for order in permutations(range(5)):
            place = torch.empty(5, dtype=torch.long)
            place[list(order)] = torch.arange(5) // per_batch
            shares.append(kept_edges(edge_index, place[part]))
        assert edges_kept(edge_index, part, per_batch) == pytest.approx(sum(shares) / len(shares))


class LittleMemory(GCN):
    """A GCN that cannot be evaluated on more than one component."""

    def forward(self, x: Any, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        if x.shape[0] > SIZE:
            raise torch.OutOfMemoryError
        return super().forward(x, edge_index, edge_weight)


@pytest.mark.parametrize("per_batch", [1, 2])
def test_groups_are_evaluated_where_the_graph_exceeds_the_memory(
    components: Data, per_batch: int
) -> None:
    torch.manual_seed(0)
    models = [GCN(5, 3), LittleMemory(5, 3)]
    models[1].load_state_dict(models[0].state_dict())
    part = partition_graph(components.edge_index, components.num_nodes, COMPONENTS)
    if (
        per_batch == 2
    ):  # halves of components; groups of evaluation are parts that follow each other
        part = 2 * part + torch.arange(components.num_nodes) % 2
    components.part = part
    config = replace(CONFIG, partitions=COMPONENTS * per_batch, partitions_per_batch=per_batch)
    trainers = [PartitionTrainer(model, components, config) for model in models]
    assert torch.allclose(trainers[1]._evaluate(), trainers[0]._evaluate(), atol=1e-6)


def test_predictions_are_computed_on_the_cpu_where_the_gpu_is_too_small(
    karate: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf = NodeClassifier("NFGNN", epochs=3, partitions=3, device="cpu").fit(karate)
    shares = clf.predict_proba(karate)
    psi = clf.coefficients(karate)
    inputs = NodeClassifier._model_inputs

    def on_small_gpu(self: NodeClassifier, data: Data, device: str | None = None) -> Any:
        if device != "cpu":
            raise torch.OutOfMemoryError
        return inputs(self, data, device)

    monkeypatch.setattr(NodeClassifier, "_model_inputs", on_small_gpu)
    assert torch.equal(clf.predict_proba(karate), shares)
    assert torch.equal(clf.coefficients(karate), psi)
    whole = NodeClassifier("GCN", epochs=3, device="cpu").fit(karate)
    with pytest.raises(torch.OutOfMemoryError):
        whole.predict_proba(karate)


def test_accuracy_is_near_that_of_the_whole_graph() -> None:
    data = split(
        mixed_graph(2000, shares=(1.0, 0.0, 0.0), homophily=(0.8, 0.0), seed=3), "stratified", 0
    )
    scores = {}
    for partitions, per_batch in ((0, 1), (20, 4)):
        clf = NodeClassifier(
            "GCN",
            preset="none",
            epochs=60,
            partitions=partitions,
            partitions_per_batch=per_batch,
            device="cpu",
        )
        scores[partitions] = clf.fit(data).score(data)
    assert scores[0] > 0.8
    assert scores[20] > scores[0] - 0.02


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_trained_on_parts_or_refused(name: str, karate: Data) -> None:
    settings: dict[str, Any] = {"epochs": 2, "partitions": 3, "partitions_per_batch": 2}
    clf = NodeClassifier(name, preset="none", device="cpu", restarts=0, **settings)
    weights = [
        {key: value.shape for key, value in _build(name, size).state_dict().items()}
        for size in (20, 21)
    ]
    if weights[0] != weights[1]:
        with pytest.raises(UserError, match=f"^{name} has weights for every node"):
            clf.fit(karate)
    elif issubclass(MODELS[name].model, Scalable):
        with pytest.raises(UserError, match="set batch_size instead"):
            clf.fit(karate)
    else:
        clf.fit(karate)
        assert clf.history_.epochs == 2
        assert clf.predict(karate).shape == (34,)


def _build(name: str, num_nodes: int) -> NodeModel:
    return RunConfig.resolve(name, {}, None, None, "none").build(5, 3, num_nodes)


def test_settings_that_cannot_work_are_refused(karate: Data) -> None:
    with pytest.raises(UserError, match=r"NFGNN has weights .* a model or link without them"):
        NodeClassifier("NFGNN", link="raw", partitions=2, device="cpu").fit(karate)
    with pytest.raises(UserError, match="partitions = 35 exceeds the 34 nodes"):
        NodeClassifier("GCN", partitions=35, device="cpu").fit(karate)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (torch.arange(34) % 2, "part numbers 2 parts, but partitions = 3: set partitions = 2"),
        (torch.arange(34) % 4, "part numbers 4 parts, but partitions = 3: set partitions = 4"),
        (torch.arange(33) % 3, r"part has the shape \[33\], but .* of every node, \[34\]"),
    ],
)
def test_given_parts_must_be_those_of_the_settings(
    karate: Data, part: Tensor, message: str
) -> None:
    karate.part = part
    with pytest.raises(UserError, match=f"^{message}"):
        fit(GCN(karate.num_features, karate.num_classes), karate, replace(CONFIG, partitions=3))


def test_runs_on_parts_are_trained_one_by_one(
    karate: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig.resolve("GCN", {"epochs": 3, "partitions": 4}, None, None, "none")
    monkeypatch.setattr("nfgnn.training.execution.resolve_device", lambda _: torch.device("cuda"))
    assert batch_size(RunSpec(Graph.of(karate), "stratified", 0, config), "cuda") == 1
    together = [NodeClassifier.from_config(config, seed, "cpu") for seed in (0, 1)]
    fit_together(together, [karate, karate])
    for clf in together:
        alone = NodeClassifier.from_config(config, clf.seed, "cpu").fit(karate)
        assert clf.history_.val_loss == alone.history_.val_loss


def test_configurations_without_parts_stay_as_they_were() -> None:
    plain = RunConfig.resolve("GCN", {}, None, None, "none").to_dict()
    assert not {"partitions", "partitions_per_batch"} & plain.keys()
    assert RunConfig.from_dict(plain).training.partitions == 0
    on_parts = RunConfig.resolve("GCN", {"partitions": 8}, None, None, "none")
    assert RunConfig.from_dict(on_parts.to_dict()) == on_parts


def test_running_statistics_are_those_of_the_groups(components: Data) -> None:
    """Batch normalisation in training sees a group, in evaluation the running statistics."""
    torch.manual_seed(0)
    model = NFNet(5, 3, hidden_channels=8, num_layers=1, dropout=0.0, norm="batch")
    reference = copy.deepcopy(model)
    config = replace(CONFIG, epochs=1, lr=0.0, weight_decay=0.0, partitions=COMPONENTS)
    history, model = fitted(model, components, config)
    assert history.epochs == 1
    trainer = PartitionTrainer(reference, components, replace(config))
    groups = [trainer.parts.subgraph([part]) for part in range(COMPONENTS)]
    # With the learning rate 0 only the order of the groups is unknown.
    candidates = []
    for order in permutations(groups):
        again = copy.deepcopy(reference).train()
        for group in order:
            again(*group.inputs)
        candidates.append(again.statistics.mean)
    assert any(torch.allclose(model.statistics.mean, mean, atol=1e-6) for mean in candidates)
