"""A store holds the terms of the in-memory recurrence, with every cut."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from helpers.store_graphs import (
    files_of,
    make_store,
    small_graph,
    sums_like_other_widths,
    terms_in_memory,
    write_tables,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.cli import main
from nfgnn.data import load_dataset
from nfgnn.errors import UserError
from nfgnn.spectral import BASES
from nfgnn.store import MemorySource, Settings, Store, plan_precompute, precompute


@pytest.mark.parametrize("cut", ["resident", "streamed", "device"])
@pytest.mark.parametrize("basis", [*BASES, "jacobi(0.5, 2)"])
def test_terms_equal_the_recurrence_in_memory(basis: str, cut: str, tmp_path: Path) -> None:
    data = small_graph()
    store = make_store(data, tmp_path / "s", cut, basis=basis)
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert torch.equal(store.nodes, (data.y >= 0).nonzero().flatten())
    assert torch.equal(store.y, data.y[store.nodes])
    assert torch.equal(store.labels().train_mask, data.train_mask[store.nodes])
    assert not (tmp_path / "s" / "work").exists()
    Store.open(tmp_path / "s", verify="checksums")


@pytest.mark.parametrize("cut", ["resident", "streamed"])
@pytest.mark.parametrize(
    "options",
    [
        {"self_loops": True},
        {"lambda_max": 1.7},
        {"rows": "all"},
        {"features": "row"},
        {"features": "raw"},
        {"dtype": "bfloat16"},
        {"dtype": "float16", "basis": "bernstein"},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_terms_with_every_option(
    options: dict[str, object], cut: str, weighted: bool, tmp_path: Path
) -> None:
    data = small_graph(weighted=weighted)
    store = make_store(data, tmp_path / "s", cut, **options)
    expected = terms_in_memory(data, store)
    kind = getattr(torch, store.manifest.dtype)
    assert torch.equal(store.rows(slice(None)), expected.to(kind).float())
    assert store.manifest.num_rows == (
        60 if options.get("rows") == "all" else int((data.y >= 0).sum())
    )


@settings(max_examples=12, deadline=None)
@given(
    width=st.integers(1, 7),
    entries=st.integers(1, 700),
    cut=st.sampled_from(["resident", "streamed"]),
    basis=st.sampled_from(["chebyshev", "bernstein"]),
    seed=st.integers(0, 5),
)
def test_the_cut_does_not_change_a_byte(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    entries: int,
    cut: str,
    basis: str,
    seed: int,
) -> None:
    data, folder = small_graph(40, 7, seed), tmp_path_factory.mktemp("cut")
    whole = make_store(data, folder / "whole", "resident", 7, basis=basis)
    parts = make_store(data, folder / "parts", cut, width, entries, basis=basis)
    if sums_like_other_widths(width):
        assert files_of(whole.path) == files_of(parts.path)
    else:
        torch.testing.assert_close(parts.rows(slice(None)), whole.rows(slice(None)))


def test_a_finished_store_is_reused_and_other_settings_are_rejected(tmp_path: Path) -> None:
    data = small_graph()
    store = make_store(data, tmp_path / "s")
    before = (store.path / "terms.npy").stat().st_mtime_ns
    assert make_store(data, tmp_path / "s", "streamed", 2).manifest == store.manifest
    assert (store.path / "terms.npy").stat().st_mtime_ns == before
    with pytest.raises(UserError, match="is a store with different content"):
        make_store(data, tmp_path / "s", basis="monomial")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match="is not a store of nfgnn"):
        make_store(data, tmp_path / "other")


def test_invalid_settings_are_reported(tmp_path: Path) -> None:
    data = small_graph()
    for wrong, message in (
        ({"rows": "some"}, "--rows some"),
        ({"dtype": "int8"}, "--dtype int8"),
        ({"basis": "hermite"}, "unknown basis"),
        ({"memory": 1000}, "is too small"),
        ({"device": "cuda"}, "no GPU"),
    ):
        with pytest.raises(UserError, match=message):
            plan_precompute(MemorySource(data), tmp_path / "s", Settings(**wrong))
    data.y[:] = -1
    with pytest.raises(UserError, match="no node has a label"):
        plan_precompute(MemorySource(data), tmp_path / "s", Settings())
    assert not (tmp_path / "s").exists()


def test_a_wrong_number_of_names_is_refused_before_the_work(tmp_path: Path) -> None:
    data = small_graph()
    data.feature_names = ["a", "b"]
    with pytest.raises(UserError, match="small: `feature_names` has 2 names for 7 features"):
        precompute(MemorySource(data), tmp_path / "s", Settings())
    assert not (tmp_path / "s").exists()


def test_a_store_without_names_remains_usable(tmp_path: Path) -> None:
    """Older versions wrote names only with the graph."""
    data = small_graph()
    data.feature_names = list("abcdefg")
    store = make_store(data, tmp_path / "s")
    assert store.manifest.feature_names == data.feature_names
    replace(store.manifest, feature_names=None).save(store.path)
    old = Store.open(store.path)
    assert "feature_names" not in json.loads((store.path / "manifest.json").read_text())
    assert "feature_names" not in old.labels()
    assert old.existing_nodes.feature_names is None
    assert make_store(data, tmp_path / "s").manifest == old.manifest  # it is left as it is


def test_precompute_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tables(tmp_path / "g", "csv")
    out = tmp_path / "s"
    options = ["--K", "2", "--basis", "legendre", "--json"]
    line = ["nfgnn", "precompute", str(folder), "--out", str(out), *options]
    monkeypatch.setattr(sys, "argv", [*line, "--dry-run"])
    exit_status_is(0)
    dry = json.loads(capsys.readouterr().out)
    assert (dry["plan"]["products"], dry["plan"]["num_nodes"]) == (2, 60)
    assert not out.exists()
    monkeypatch.setattr(sys, "argv", line)
    exit_status_is(0)
    summary = json.loads(capsys.readouterr().out)
    assert summary["rows"] == int((small_graph().y >= 0).sum())
    assert (summary["K"], summary["basis"]) == (2, "legendre")
    before = files_of(out)
    exit_status_is(0)
    assert files_of(out) == before
    assert torch.equal(
        Store.open(out).rows(slice(None)), terms_in_memory(load_dataset(folder), Store.open(out))
    )
    monkeypatch.setattr(sys, "argv", [*line, "--memory", "lots"])
    exit_status_is(2)
    assert "--memory lots is not a size" in capsys.readouterr().err


def exit_status_is(status: int) -> None:
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    assert code == status


def test_two_processes_do_not_write_one_store(tmp_path: Path) -> None:
    source = MemorySource(small_graph())
    refused = []

    def report(stage: str, done: int, total: int) -> None:
        with pytest.raises(UserError, match="another process is writing"):
            precompute(source, tmp_path / "s", Settings(K=2))
        refused.append(stage)

    store = precompute(source, tmp_path / "s", Settings(K=2), report=report)
    assert refused
    assert store.manifest.samples
    precompute(source, tmp_path / "s", Settings(K=2))


def test_a_folder_called_work_is_not_taken_for_unfinished_work(tmp_path: Path) -> None:
    file = tmp_path / "s" / "work" / "thesis.txt"
    file.parent.mkdir(parents=True)
    file.write_text("years of work")
    source = MemorySource(small_graph())
    with pytest.raises(UserError, match=r"thesis\.txt"):
        precompute(source, tmp_path / "s", Settings(K=2))
    store = precompute(source, tmp_path / "t", Settings(K=2))
    (store.path / "work").mkdir()
    file.rename(store.path / "work" / "thesis.txt")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        precompute(source, tmp_path / "t", Settings(K=2))
    assert (store.path / "work" / "thesis.txt").exists()


def test_a_refused_call_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        precompute(MemorySource(small_graph()), tmp_path / "s", Settings(K=-1))
    assert not (tmp_path / "s").exists()


def test_a_folder_can_hold_another_graph_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths name other folders after a change of the working directory."""
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        monkeypatch.chdir(tmp_path / str(seed))
        data = small_graph(seed=seed)
        store = make_store(data, Path("s"))
        assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
