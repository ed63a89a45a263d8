"""The data of the explorer: rows are the run's own arrays, packing loses next to nothing, wrong calls say so."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.explorer_runs import NASTY, awkward_graph, synthetic_rows, train_run
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nfgnn.cli import main
from nfgnn.data import load_dataset, split
from nfgnn.errors import UserError
from nfgnn.explain.explorer import explorer_rows, find_subject, homophily_bins, write_page
from nfgnn.explain.explorer.layout import force_layout, principal_components
from nfgnn.explain.explorer.page import pack_codes, pack_numbers, page_content, render
from nfgnn.explain.explorer.rows import PARTS
from nfgnn.explain.explorer.sample import take_sample
from nfgnn.training import load_run


@pytest.mark.parametrize("model", ["NFGNN", "PolyGNN", "MLP"])
def test_rows_are_the_runs_own_numbers(model: str, tmp_path: Path) -> None:
    data = awkward_graph()
    run = train_run(tmp_path / "run", model, data, seeds=(3, 4))
    rows = explorer_rows(find_subject(run, seed=4), data)
    classifier = load_run(run, seed=4)
    probabilities = classifier.predict_proba(data)
    np.testing.assert_array_equal(rows.runs[0].predicted, probabilities.argmax(-1))
    np.testing.assert_array_equal(rows.runs[0].confidence, probabilities.max(-1).values)
    graph = split(data, "full", 4)
    assert rows.accuracy(0) == pytest.approx(classifier.score(graph), abs=1e-12)
    for place, mask in enumerate((graph.train_mask, graph.val_mask, graph.test_mask), start=1):
        np.testing.assert_array_equal(rows.part == place, mask)
    assert rows.ids == [f"person-{i:03d}" for i in range(160)]
    filters = rows.runs[0].filters
    if model == "MLP":
        assert filters is None
        assert [layout.name for layout in rows.layouts] == ["links"]
        return
    assert filters is not None
    assert filters.one_for_all == (model == "PolyGNN")
    names = [layout.name for layout in rows.layouts]
    assert names == (["links"] if model == "PolyGNN" else ["filters", "filters, ranked", "links"])
    for layout in rows.layouts[1:-1]:
        np.testing.assert_array_equal(
            layout.place.argsort(0), rows.layouts[0].place.argsort(0, kind="stable")
        )
    np.testing.assert_array_equal(filters.psi, np.load(run / "seed-4" / "coefficients.npy"))
    frequencies, responses = classifier.response(data, points=81)
    np.testing.assert_allclose(filters.frequencies, frequencies)
    np.testing.assert_allclose(filters.psi @ filters.terms.T, responses, atol=1e-5)
    np.testing.assert_allclose(
        filters.terms @ filters.class_means[1], responses[data.y == 1].mean(0), atol=1e-5
    )
    np.testing.assert_allclose(filters.terms @ filters.mean, responses.mean(0), atol=1e-5)


def test_unobserved_nodes_are_a_part_of_their_own(tmp_path: Path) -> None:
    data = awkward_graph()
    run = train_run(tmp_path / "run", "NFGNN", data, protocol="inductive")
    rows, graph = explorer_rows(find_subject(run), data), split(data, "inductive", 0)
    np.testing.assert_array_equal(rows.part == PARTS.index("unobserved"), graph.unobserved_mask)
    classifier = load_run(run, seed=0)
    assert rows.accuracy(0, graph.unobserved_mask.numpy()) == pytest.approx(
        classifier.score(data, graph.unobserved_mask)
    )
    assert rows.accuracy(0) == pytest.approx(
        classifier.score(data, graph.test_mask | graph.unobserved_mask)
    )


def test_homophily_and_entropy_by_hand(tmp_path: Path) -> None:
    data = awkward_graph()
    rows = explorer_rows(find_subject(train_run(tmp_path / "run", "MLP", data)), data)
    for node in range(0, 160, 7):
        around = data.y[data.edge_index[1][data.edge_index[0] == node]]
        assert rows.degree[node] == len(around)
        around = around[around >= 0]
        if data.y[node] >= 0 and len(around):
            assert rows.homophily[node] == pytest.approx(
                float((around == data.y[node]).float().mean())
            )
        if len(around):
            share = np.bincount(around, minlength=3) / len(around)
            assert rows.entropy[node] == pytest.approx(
                -sum(p * np.log(p) for p in share if p), abs=1e-6
            )


def test_bins_count_every_node_and_every_test_node() -> None:
    rows = synthetic_rows(500)
    table = homophily_bins(rows, bins=10)
    for i, row in enumerate(table):
        inside = (rows.homophily >= i / 10 - 1e-12) & (
            (rows.homophily < (i + 1) / 10 - 1e-12) | (i == 9)
        )
        tested = inside & (rows.part == 3)
        assert (row["nodes"], row["tested"]) == (inside.sum(), tested.sum())
        right = (rows.runs[0].predicted == rows.label)[tested]
        assert row["accuracy"] == ([pytest.approx(right.mean())] if tested.any() else [None])
    assert sum(row["nodes"] for row in table) == 500


def unpacked(packed: dict) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    if "low" not in packed:
        return codes
    table = codes.reshape(-1, len(packed["low"])).astype(float)
    return np.where(
        table == 65535, np.nan, np.array(packed["low"]) + np.array(packed["step"]) * table
    )


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 20), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, width=32),
    )
)
@settings(max_examples=50, deadline=None)
def test_packed_numbers_come_back(values: np.ndarray) -> None:
    values[0, 0] = np.nan
    back = unpacked(pack_numbers(values))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(values))
    finite = np.where(np.isnan(values), 0, values).astype(float)
    spread = np.nan_to_num(np.nanmax(finite, 0) - np.nanmin(finite, 0))
    assert (np.abs(np.nan_to_num(back - values)) <= spread / 131_068 * 1.001 + 1e-9).all()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=30))
@settings(max_examples=50, deadline=None)
def test_packed_codes_come_back(values: list[int]) -> None:
    np.testing.assert_array_equal(unpacked(pack_codes(np.array(values, dtype=np.int64))), values)


@pytest.mark.parametrize(("most", "most_neighbours"), [(1000, 32), (40, 32), (40, 2)])
def test_a_sample_has_its_own_links(most: int, most_neighbours: int) -> None:
    rows = synthetic_rows(200)
    sample = take_sample(rows.edge_index, 200, most, most_neighbours)
    assert sample.shown == min(most, 200)
    assert len(set(sample.nodes.tolist())) == len(sample.nodes)
    for i, node in enumerate(sample.nodes[: sample.shown]):
        around = rows.edge_index[1][rows.edge_index[0] == node]
        listed = sample.nodes[sample.neighbours[sample.starts[i] : sample.starts[i + 1]]]
        assert set(listed) <= set(around)
        assert len(set(listed)) == len(listed) == min(most_neighbours, len(around))


def test_a_thinned_page_still_counts_all_nodes() -> None:
    rows = synthetic_rows(300)
    whole = page_content(rows, take_sample(rows.edge_index, 300, 300))
    thin = page_content(rows, take_sample(rows.edge_index, 300, 50))
    for key in ("bins", "numNodes", "numEdges", "numWithoutHomophily"):
        assert whole[key] == thin[key]
    assert whole["runs"][0]["accuracy"] == thin["runs"][0]["accuracy"]
    assert whole["runs"][0]["filters"]["mean"] == thin["runs"][0]["filters"]["mean"]
    nodes = unpacked(thin["node"])
    np.testing.assert_array_equal(unpacked(thin["label"]).astype(int) - 1, rows.label[nodes])
    np.testing.assert_allclose(
        unpacked(thin["runs"][0]["filters"]["psi"]), rows.runs[0].filters.psi[nodes[:50]], atol=1e-4
    )


def test_principal_components_are_those_of_the_singular_values() -> None:
    psi = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)).numpy()
    place, share = principal_components(psi)
    centred = psi - psi.mean(0)
    left, values, _ = np.linalg.svd(centred.astype(float), full_matrices=False)
    np.testing.assert_allclose(np.abs(place), np.abs(left[:, :2] * values[:2]), atol=1e-5)
    np.testing.assert_allclose(share, values[:2] ** 2 / (values**2).sum())
    assert principal_components(np.ones((5, 3))) is None


def test_the_force_layout_separates_what_is_not_linked() -> None:
    rng = np.random.default_rng(0)
    block = np.repeat([0, 1], 40)
    chance = np.where(block[:, None] == block, 0.3, 0.01)
    linked = np.triu(rng.random((80, 80)) < chance, 1)
    edge_index = np.stack(np.nonzero(linked | linked.T))
    place = force_layout(edge_index, 80)
    assert np.isfinite(place).all()
    np.testing.assert_array_equal(place, force_layout(edge_index, 80))
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    assert distance[block[:, None] != block].mean() > 1.5 * distance[block[:, None] == block].mean()
    assert np.isfinite(force_layout(np.empty((2, 0), np.int64), 1)).all()


def test_the_file_cannot_be_broken_by_names() -> None:
    rows = synthetic_rows(30)
    rows.class_names[0] = NASTY
    text = render(page_content(rows, take_sample(rows.edge_index, 30, 30)))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["classNames"][0] == NASTY
    assert "<b>" not in text
    assert text.count("<script") == 2
    assert not re.search(r"(src|href)=\"?(https?:)?//", text)


def test_wrong_calls_say_what_is_wrong(tmp_path: Path) -> None:
    data = awkward_graph()
    first = train_run(tmp_path / "first", "MLP", data, seeds=(0, 1))
    second = train_run(tmp_path / "second", "MLP", data, seeds=(2,))
    semi = train_run(tmp_path / "semi", "MLP", data, protocol="stratified")
    elsewhere = train_run(tmp_path / "elsewhere", "MLP", awkward_graph().update({"x": data.x + 1}))
    for call, message in (
        (lambda: find_subject(tmp_path), "no summary.json"),
        (lambda: find_subject(first, seed=7), "choose one of 0, 1"),
        (lambda: find_subject(first, second), "no seed in common"),
        (lambda: find_subject(first, semi), "split by 'full'.*'stratified'"),
        (lambda: find_subject(first, elsewhere), "different graphs"),
        (lambda: explorer_rows(find_subject(elsewhere), data), "not the one that"),
        (lambda: write_page(synthetic_rows(30), tmp_path / "nowhere" / "x.html"), "does not exist"),
    ):
        with pytest.raises(UserError, match=message):
            call()
    subject = find_subject(first, train_run(tmp_path / "third", "MLP", data, seeds=(1, 5)))
    assert subject.seed == 1
    assert subject.names() == ["MLP (first)", "MLP (third)"]
    assert subject.source is None  # made in Python, from a graph that is no registered one
    named = train_run(tmp_path / "named", "MLP", load_dataset("karate"), protocol="stratified")
    assert find_subject(named).source == {"dataset": "karate"}


def test_the_command_finds_the_graph_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> object:
        monkeypatch.setattr(sys, "argv", ["nfgnn", *arguments])
        try:
            main()
        except SystemExit as stop:
            return stop.code
        return 0

    monkeypatch.chdir(tmp_path)
    assert run("datasets", "--template", "mine") == 0
    assert (
        run(
            "train",
            "mine/",
            "--protocol",
            "stratified",
            "--runs",
            "1",
            "--set",
            "epochs=3",
            "--out",
            "run",
        )
        == 0
    )
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert run("explore", "../run", "-o", "page.html", "--nodes", "50") == 0
    assert "person-00" in Path("page.html").read_text(encoding="utf-8")
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert run("explore", "../run", "-o", "again.html") == 2
    assert not Path("again.html").exists()
    assert run("explore", "../run", "--dataset", "../moved", "-o", "again.html") == 0
