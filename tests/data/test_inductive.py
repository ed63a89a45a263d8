"""The inductive protocol: what training must not see, it does not see."""

import json

import pytest
import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.data import observed_part


@pytest.fixture(scope="module")
def data():
    return split(load_dataset("mixed", num_nodes=400), "inductive", 3)


def test_it_is_semi_with_a_fifth_of_the_test_nodes_hidden(data) -> None:
    semi = split(data, "semi", 3)
    assert torch.equal(data.train_mask, semi.train_mask)
    assert torch.equal(data.val_mask, semi.val_mask)
    assert torch.equal(data.test_mask | data.unobserved_mask, semi.test_mask)
    assert not bool((data.test_mask & data.unobserved_mask).any())
    assert int(data.unobserved_mask.sum()) == int(semi.test_mask.sum()) - round(
        0.8 * int(semi.test_mask.sum())
    )
    assert torch.equal(data.unobserved_mask, split(data, "inductive", 3).unobserved_mask)
    assert not torch.equal(data.unobserved_mask, split(data, "inductive", 4).unobserved_mask)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_observed_part_is_the_graph_between_observed_nodes(data, sparse: bool) -> None:
    data = data.clone()
    dense = data.x
    data.x = data.x.to_sparse_csr() if sparse else data.x
    part = observed_part(data)
    nodes = [i for i in range(data.num_nodes) if not data.unobserved_mask[i]]
    place = {node: i for i, node in enumerate(nodes)}
    edges = {
        (place[a], place[b]) for a, b in data.edge_index.T.tolist() if a in place and b in place
    }
    assert {tuple(pair) for pair in part.edge_index.T.tolist()} == edges
    assert part.num_nodes == len(nodes)
    assert torch.equal(part.x.to_dense(), dense[nodes])
    assert torch.equal(part.y, data.y[nodes])
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(part[mask], data[mask][nodes])
    assert observed_part(split(data, "semi", 0)).num_nodes == data.num_nodes


def test_training_does_not_depend_on_unobserved_nodes_and_predicting_does(data) -> None:
    changed = data.clone()
    changed.x[data.unobserved_mask] = 100.0
    changed.edge_index = data.edge_index[:, ~data.unobserved_mask[data.edge_index].any(0)]
    one, other = (
        NodeClassifier("NFGNN", epochs=15, features="raw").fit(graph) for graph in (data, changed)
    )
    for a, b in zip(one.model_.parameters(), other.model_.parameters()):
        assert torch.equal(a, b)
    assert one.predict_proba(data).shape == (data.num_nodes, data.num_classes)
    assert not torch.allclose(one.predict_proba(data), one.predict_proba(changed))


def test_the_command_tells_both_accuracies(capsys, tmp_path, monkeypatch) -> None:
    from nfgnn.cli import app

    monkeypatch.chdir(tmp_path)
    app(
        ["train", "mixed", "--protocol", "inductive", "--runs", "2", "--set", "epochs=3", "--json"],
        standalone_mode=False,
    )
    summary = json.loads(capsys.readouterr().out)
    assert {"observed_accuracy", "unobserved_accuracy"} <= summary.keys()
    assert "test_accuracy" not in summary
    run = tmp_path / summary["run"]
    assert (run / "run.png").is_file()


def test_runs_of_several_graphs_are_fitted_one_by_one() -> None:
    from nfgnn.training import fit_together

    data = load_dataset("mixed", num_nodes=200)
    graphs = [split(data, "inductive", seed) for seed in range(2)]
    together = [NodeClassifier("APPNP", seed=seed, epochs=5) for seed in range(2)]
    fit_together(together, graphs)
    for seed, (classifier, graph) in enumerate(zip(together, graphs)):
        alone = NodeClassifier("APPNP", seed=seed, epochs=5).fit(graph)
        assert torch.equal(alone.predict_proba(graph), classifier.predict_proba(graph))
