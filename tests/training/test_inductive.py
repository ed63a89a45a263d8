"""The inductive protocol: training does not see the unobserved nodes."""

import json

import pytest
import torch

from nfgnn import NodeClassifier, load_dataset, split


@pytest.fixture(scope="module")
def data():
    return split(load_dataset("mixed", num_nodes=400), "inductive", 3)


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


@pytest.mark.figures
def test_the_command_reports_both_accuracies(capsys, tmp_path, monkeypatch) -> None:
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
