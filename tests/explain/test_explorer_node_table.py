"""The table of an explorer page against the run's own results."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.explorer_runs import awkward_graph, synthetic_table, train_run

from nfgnn.data import split
from nfgnn.explain import build_node_table, select_runs
from nfgnn.explain.explorer import homophily_bins
from nfgnn.explain.explorer.node_table import PARTS, Layout, class_rows
from nfgnn.training import load_run


@pytest.mark.parametrize("model", ["NFGNN", "PolyGNN", "MLP"])
def test_table_equals_the_run(model: str, tmp_path: Path) -> None:
    data = awkward_graph()
    run = train_run(tmp_path / "run", model, data, seeds=(3, 4))
    table = build_node_table(select_runs(run, seed=4), data)
    classifier = load_run(run, seed=4)
    probabilities = classifier.predict_proba(data)
    np.testing.assert_array_equal(table.runs[0].predicted, probabilities.argmax(-1))
    np.testing.assert_array_equal(table.runs[0].confidence, probabilities.max(-1).values)
    graph = split(data, "full", 4)
    assert table.accuracy(0) == pytest.approx(classifier.score(graph), abs=1e-12)
    for place, mask in enumerate((graph.train_mask, graph.val_mask, graph.test_mask), start=1):
        np.testing.assert_array_equal(table.part == place, mask)
    assert table.ids == [f"person-{i:03d}" for i in range(160)]
    filters = table.runs[0].filters
    if model == "MLP":
        assert filters is None
        assert [layout.name for layout in table.layouts] == ["force-directed"]
        assert table.start_layout == 0
        return
    assert filters is not None
    assert filters.shared == (model == "PolyGNN")
    names = [layout.name for layout in table.layouts]
    own = [] if model == "PolyGNN" else ["filters (PCA)", "filters (PCA ranks)"]
    assert names == ["force-directed", *own]
    for layout in table.layouts[2:]:
        np.testing.assert_array_equal(
            layout.place.argsort(0), table.layouts[1].place.argsort(0, kind="stable")
        )
    np.testing.assert_array_equal(filters.psi, np.load(run / "seed-4" / "coefficients.npy"))
    frequencies, responses = classifier.response(data, points=81)
    np.testing.assert_allclose(filters.frequencies, frequencies)
    np.testing.assert_allclose(filters.psi @ filters.terms.T, responses, atol=1e-5)
    np.testing.assert_allclose(
        filters.terms @ filters.class_means[1], responses[data.y == 1].mean(0), atol=1e-5
    )
    np.testing.assert_allclose(filters.terms @ filters.mean, responses.mean(0), atol=1e-5)


def test_ids_may_be_a_tensor(tmp_path: Path) -> None:
    data = awkward_graph()
    run = train_run(tmp_path / "run", "MLP", data)
    data.node_ids = torch.arange(500, 500 + data.num_nodes)
    table = build_node_table(select_runs(run), data)
    assert table.ids == [str(number) for number in range(500, 500 + data.num_nodes)]


def test_unobserved_nodes_are_a_part_of_their_own(tmp_path: Path) -> None:
    data = awkward_graph()
    run = train_run(tmp_path / "run", "NFGNN", data, protocol="inductive")
    table, graph = build_node_table(select_runs(run), data), split(data, "inductive", 0)
    np.testing.assert_array_equal(table.part == PARTS.index("unobserved"), graph.unobserved_mask)
    classifier = load_run(run, seed=0)
    assert table.accuracy(0, graph.unobserved_mask.numpy()) == pytest.approx(
        classifier.score(data, graph.unobserved_mask)
    )
    assert table.accuracy(0) == pytest.approx(
        classifier.score(data, graph.test_mask | graph.unobserved_mask)
    )


def test_homophily_and_entropy_by_hand(tmp_path: Path) -> None:
    data = awkward_graph()
    table = build_node_table(select_runs(train_run(tmp_path / "run", "MLP", data)), data)
    for node in range(0, 160, 7):
        around = data.y[data.edge_index[1][data.edge_index[0] == node]]
        assert table.degree[node] == len(around)
        around = around[around >= 0]
        if data.y[node] >= 0 and len(around):
            assert table.homophily[node] == pytest.approx(
                float((around == data.y[node]).float().mean())
            )
        if len(around):
            share = np.bincount(around, minlength=3) / len(around)
            assert table.entropy[node] == pytest.approx(
                -sum(p * np.log(p) for p in share if p), abs=1e-6
            )


def test_bins_count_every_node_and_every_test_node() -> None:
    table = synthetic_table(500)
    bins = homophily_bins(table)
    assert len(bins) == 10
    for i, row in enumerate(bins):
        low = table.homophily >= i / 10 - 1e-12
        high = (table.homophily < (i + 1) / 10 - 1e-12) | (i == 9)
        inside = low & high
        tested = inside & (table.part == 3)
        assert (row["nodes"], row["tested"]) == (inside.sum(), tested.sum())
        right = (table.runs[0].predicted == table.label)[tested]
        assert row["accuracy"] == ([pytest.approx(right.mean())] if tested.any() else [None])
    assert sum(row["nodes"] for row in bins) == 500


@pytest.mark.parametrize(("share", "start"), [(0.94, 1), (0.96, 0)])
def test_starts_with_filters_that_spread_in_two_directions(share: float, start: int) -> None:
    table = synthetic_table(30)
    place = table.layouts[0].place
    ranks = Layout("filters (PCA ranks)", "", place, equal_axes=False)
    filters = Layout("filters (PCA)", "", place, equal_axes=False, first_share=share)
    assert replace(table, layouts=[*table.layouts, filters, ranks]).start_layout == start


def test_classes_count_their_nodes_and_test_nodes() -> None:
    table = synthetic_table(200)
    table.part[table.label == 2] = PARTS.index("training")
    rows = class_rows(table)
    assert [row["nodes"] for row in rows] == np.bincount(table.label).tolist()
    for c in range(2):
        tested = (table.label == c) & (table.part == PARTS.index("test"))
        right = table.runs[0].predicted[tested] == c
        assert rows[c]["accuracy"] == [pytest.approx(right.mean())]
    assert rows[2]["accuracy"] == [None]
