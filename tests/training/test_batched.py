"""Many runs at once against the same runs one by one."""

import pytest
import torch
from torch_geometric.data import Data

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import FeatureScaling
from nfgnn.nn import propagated_features
from nfgnn.nn.models import MODELS
from nfgnn.training import RunConfig, fit
from nfgnn.training.batched import Member, bytes_per_run, fit_batched
from nfgnn.training.run import fit_together
from nfgnn.training.stacked_parameters import dropout_rates

SHARING = sorted(name for name, entry in MODELS.items() if entry.model.batchable)


@pytest.fixture(scope="module")
def graph() -> Data:
    data = load_dataset("mixed", num_nodes=150)
    data.x = FeatureScaling.fit(data.x, "standard").apply(data.x).double()
    return data


def runs(
    graph: Data, name: str, settings: list[dict]
) -> list[tuple[torch.nn.Module, Data, RunConfig]]:
    """A model, a split and a configuration for every seed."""
    out = []
    for seed, own in enumerate(settings):
        hyper = {"epochs": 60, "patience": 15, **own}
        if "hidden_channels" in RunConfig.resolve(name, {}, None, None, "none").hyper:
            hyper["hidden_channels"] = 16
        config = RunConfig.resolve(name, hyper, None, None, "none")
        torch.manual_seed(seed)
        model = config.build(graph.num_features, graph.num_classes, graph.num_nodes).double()
        for module in model.modules():  # dropout 0, so that nothing is random
            for rate in ("dropout", "filter_dropout"):
                if isinstance(getattr(module, rate, None), float) and rate not in own:
                    setattr(module, rate, 0.0)
        out.append((model, split(graph, "full", seed), config))
    return out


def test_prepared_values_do_not_belong_to_a_transformation(graph: Data) -> None:
    """In half precision the tokens of PolyFormer differ from those in float32."""
    data = split(graph, "full", 0)
    data.x = data.x.float()
    settings = {"epochs": 2, "precision": "bfloat16", "hidden_channels": 8}
    config = RunConfig.resolve("PolyFormer", settings, None, None, "none")
    members = []
    for _ in range(2):
        model = config.build(data.num_features, data.num_classes)
        members.append(Member(model, data.train_mask, data.val_mask, config.training))
    fit_batched(members, data)
    values = [entry.value for entry in propagated_features._CACHE._entries.values()]
    tokens = [value for value in values if torch.is_tensor(value) and value.is_floating_point()]
    halves = [value for value in tokens if value.dtype == torch.bfloat16]
    assert halves
    for value in halves:
        assert value.data_ptr()  # raises for a tensor of a transformation that has ended


def compare(graph: Data, name: str, settings: list[dict]) -> list[int]:
    together, alone = runs(graph, name, settings), runs(graph, name, settings)
    members = [
        Member(model, data.train_mask, data.val_mask, config.training)
        for model, data, config in together
    ]
    histories = fit_batched(members, graph)
    for history, (model, _, _), (reference, data, config) in zip(histories, together, alone):
        expected = fit(reference, data, config.training)
        assert history.epochs == expected.epochs
        assert history.val_loss == pytest.approx(expected.val_loss, abs=1e-8)
        assert history.train_loss == pytest.approx(expected.train_loss, abs=1e-8)
        assert history.val_accuracy == pytest.approx(expected.val_accuracy, abs=1e-6)
        for ours, theirs in zip(model.parameters(), reference.parameters()):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)
        for ours, theirs in zip(model.buffers(), reference.buffers()):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)
    return [history.epochs for history in histories]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", SHARING)
def test_members_equal_single_runs_to_eight_digits(graph: Data, name: str, sparse: bool) -> None:
    data = graph.clone()
    data.x = data.x.to_sparse_csr() if sparse else data.x
    compare(data, name, [{"epochs": 10}] * 3)


@pytest.mark.parametrize("name", ["GCN", "FAGCN"])
def test_members_share_edge_weights(graph: Data, name: str) -> None:
    data = graph.clone()
    value = torch.rand(data.num_nodes)
    data.edge_weight = value[data.edge_index].sum(0)
    compare(data, name, [{"epochs": 10}] * 3)


@pytest.mark.parametrize(
    "own",
    [
        {"gate": "agreement", "rank": 3},
        {"link": "raw"},
        {"link": "scores"},
        {"label_smoothing": 0.3},
    ],
)
def test_other_forms_of_the_model_too(graph: Data, own: dict) -> None:
    compare(graph, "NFGNN", [own, own, own])


@pytest.mark.parametrize("name", ["NFNet", "ResidualGATSep"])
def test_runs_have_running_statistics_of_their_own(graph: Data, name: str) -> None:
    """Some runs stop early and leave the computation; all keep the statistics of their best."""
    shape = {"norm": "batch", "num_layers": 2, "heads": 2, "patience": 8}
    rates = [{"lr": 0.002}, {"lr": 0.05}, {"lr": 0.2}, {"lr": 0.02}]
    epochs = compare(graph, name, [{**shape, **rate} for rate in rates])
    assert len(set(epochs)) > 1


def test_numeric_hyper_parameters_may_differ_and_each_run_stops_by_itself(graph: Data) -> None:
    settings = [
        {"lr": 0.01, "alpha": 0.1},
        {"lr": 0.2, "weight_decay": 0.1, "alpha": 0.9},
        {"filter_lr": 0.3, "filter_weight_decay": 0.01, "lr": 0.05, "label_smoothing": 0.2},
    ]
    epochs = compare(graph, "NFGNN", settings)
    assert len(set(epochs)) > 1


def test_dropout_rates_may_differ(graph: Data) -> None:
    """With rates 0 and 0.9 in one batch, the first is exact and the second as noisy as alone."""
    settings = [{"dropout": 0.0, "filter_dropout": 0.0}, {"dropout": 0.9, "filter_dropout": 0.5}]
    together, alone = runs(graph, "NFGNN", settings), runs(graph, "NFGNN", settings)
    histories = fit_batched(
        [Member(m, d.train_mask, d.val_mask, c.training) for m, d, c in together], graph
    )
    exact = fit(alone[0][0], alone[0][1], alone[0][2].training)
    noisy = fit(alone[1][0], alone[1][1], alone[1][2].training)
    assert histories[0].val_loss == pytest.approx(exact.val_loss, abs=1e-8)
    calm = fit(*(runs(graph, "NFGNN", [{}, {}])[1][i] for i in (0, 1)), alone[1][2].training)
    means = [sum(h.train_loss[:50]) / len(h.train_loss[:50]) for h in (histories[1], noisy, calm)]
    assert means[0] == pytest.approx(means[1], rel=0.05)
    assert means[0] > 1.1 * means[2]


@pytest.mark.parametrize(
    ("name", "places"),
    [("GAT", {"", "first", "last"}), ("FAGCN", {"", "convs.0", "convs.1"})],
)
def test_rates_of_attention_are_found(name: str, places: set[str]) -> None:
    model = RunConfig.resolve(name, {"dropout": 0.5}, None, None, "none").build(5, 2)
    rates = dropout_rates([model, model], torch.device("cpu"))
    assert rates.keys() == {f"{place}.dropout" for place in places}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["NFGNN", "GCN", "GAT", "FAGCN"])
def test_every_run_draws_its_own_dropout(graph: Data, name: str, sparse: bool) -> None:
    """Runs with the same seed, split and rates still draw different dropout masks."""
    data = graph.clone()
    data.x = data.x.to_sparse_csr() if sparse else data.x
    settings = {
        "NFGNN": {"num_layers": 1, "filter_dropout": 0.0},
        "GCN": {"num_layers": 1},
        "GAT": {},
        "FAGCN": {},
    }[name]
    config = RunConfig.resolve(name, {"epochs": 1, "dropout": 0.5, **settings}, None, None, "none")
    members = []
    for _ in range(3):
        torch.manual_seed(0)
        model = config.build(graph.num_features, graph.num_classes, graph.num_nodes).double()
        members.append(
            Member(
                model,
                *(split(graph, "full", 0)[m] for m in ("train_mask", "val_mask")),
                config.training,
            )
        )
    losses = [history.train_loss[0] for history in fit_batched(members, data)]
    assert len(set(losses)) == 3


@pytest.mark.parametrize("name", SHARING)
def test_every_model_takes_rates_that_differ(graph: Data, name: str) -> None:
    settings: list[dict] = [{"epochs": 5}, {"epochs": 5}]
    if "dropout" in RunConfig.resolve(name, {}, None, None, "none").hyper:
        settings[1]["dropout"] = 0.5
    members = [
        Member(m, d.train_mask, d.val_mask, c.training) for m, d, c in runs(graph, name, settings)
    ]
    assert all(len(history.val_loss) > 1 for history in fit_batched(members, graph))


def test_accuracies_with_dropout_are_those_of_single_runs() -> None:
    """Means over ten seeds, within three standard errors of their difference."""
    graph = load_dataset("mixed", num_nodes=300)
    splits = [split(graph, "full", seed) for seed in range(10)]
    together = [NodeClassifier("NFGNN", seed=seed, K=3, epochs=80) for seed in range(10)]
    fit_together(together, splits)
    alone = [
        NodeClassifier("NFGNN", seed=seed, K=3, epochs=80).fit(data)
        for seed, data in enumerate(splits)
    ]
    a, b = (
        torch.tensor([c.score(d) for c, d in zip(group, splits)]) for group in (together, alone)
    )
    assert abs(float((a - b).mean())) < 3 * float((a - b).std()) / 10**0.5 + 1e-6


def test_an_estimate_of_memory_grows_with_the_graph() -> None:
    sizes = []
    for n in (200, 400):
        data = load_dataset("mixed", num_nodes=n)
        model = RunConfig.resolve("NFGNN", {}, None, None, "none").build(
            data.num_features, data.num_classes, n
        )
        sizes.append(
            bytes_per_run(model, data) - 7 * 4 * sum(p.numel() for p in model.parameters())
        )
    assert sizes[1] == pytest.approx(2 * sizes[0], rel=0.1)


@pytest.mark.parametrize("name", ["MLP", "GCN", "NFGNN"])
def test_runs_may_differ_in_their_features(name: str) -> None:
    """``features = "auto"`` depends on the training nodes, which differ between the splits."""
    data = load_dataset("mixed", num_nodes=120)
    settings = {"features": "auto", "epochs": 12, "patience": 4, "dropout": 0.0, "device": "cpu"}
    if name == "NFGNN":
        settings["filter_dropout"] = 0.0
    graphs = [split(data, "stratified", seed) for seed in range(3)]
    together = [NodeClassifier(name, preset="none", seed=s, **settings) for s in range(3)]
    fit_together(together, graphs)
    assert not together[0].scaling_.equals(together[1].scaling_)
    for seed, (classifier, graph) in enumerate(zip(together, graphs)):
        single = NodeClassifier(name, preset="none", seed=seed, **settings).fit(graph)
        expected = single.predict_proba(graph)
        torch.testing.assert_close(classifier.predict_proba(graph), expected, rtol=0, atol=1e-5)
