"""A store holds the terms of the in-memory engine, bit for bit, however the work is cut."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.store_graphs import files_of, planned, small_graph, terms_in_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.data import FeatureScaling
from nfgnn.errors import UserError
from nfgnn.spectral import BASES
from nfgnn.store import MemorySource, Settings, Speed, Store, make_plan, plan_precompute, precompute


def store_of(
    data: object,
    out: Path,
    cut: str = "resident",
    width: int = 3,
    entries: int = 40,
    **more: object,
) -> Store:
    source, chosen = MemorySource(data), Settings(K=4, **more)  # type: ignore[arg-type]
    return precompute(
        source,
        out,
        chosen,
        chosen=planned(source, out, chosen, cut=cut, width=width, stream_entries=entries),
    )


@pytest.mark.parametrize("cut", ["resident", "streamed", "device"])
@pytest.mark.parametrize("basis", [*BASES, "jacobi(0.5, 2)"])
def test_terms_are_those_of_the_engine(basis: str, cut: str, tmp_path: Path) -> None:
    data = small_graph()
    store = store_of(data, tmp_path / "s", cut, basis=basis)
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert torch.equal(store.nodes, (data.y >= 0).nonzero().flatten())
    assert torch.equal(store.y, data.y[store.nodes])
    assert torch.equal(store.labels().train_mask, data.train_mask[store.nodes])
    assert not (tmp_path / "s" / "work").exists()
    Store.open(tmp_path / "s", verify="checksums")


@pytest.mark.parametrize("cut", ["resident", "streamed"])
@pytest.mark.parametrize("options", [
    {"self_loops": True}, {"lambda_max": 1.7}, {"rows": "all"}, {"features": "row"}, {"features": "raw"},
    {"dtype": "bfloat16"}, {"dtype": "float16", "basis": "bernstein"},
])  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_every_option(options: dict[str, object], cut: str, weighted: bool, tmp_path: Path) -> None:
    data = small_graph(weighted=weighted)
    store = store_of(data, tmp_path / "s", cut, **options)
    expected = terms_in_memory(data, store)
    kind = getattr(torch, store.manifest.dtype)
    assert torch.equal(store.rows(slice(None)), expected.to(kind).float())
    assert store.manifest.num_rows == (
        60 if options.get("rows") == "all" else int((data.y >= 0).sum())
    )


@settings(max_examples=12, deadline=None)
@given(
    width=st.integers(1, 7), entries=st.integers(1, 700), cut=st.sampled_from(["resident", "streamed"]),
    basis=st.sampled_from(["chebyshev", "bernstein"]), seed=st.integers(0, 5),
)  # fmt: skip
def test_the_cut_does_not_change_a_byte(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    entries: int,
    cut: str,
    basis: str,
    seed: int,
) -> None:
    data, folder = small_graph(40, 7, seed), tmp_path_factory.mktemp("cut")
    whole = store_of(data, folder / "whole", "resident", 7, basis=basis)
    parts = store_of(data, folder / "parts", cut, width, entries, basis=basis)
    assert files_of(whole.path) == files_of(parts.path)


def test_sparse_features_are_scaled_as_in_training(tmp_path: Path) -> None:
    data = small_graph()
    data.x = torch.where(data.x > 0.8, data.x, 0.0)
    dense = data.x.clone()
    data.x = data.x.to_sparse_csr()
    store = store_of(data, tmp_path / "s", features="row")
    expected = FeatureScaling.fit(data.x, "row").apply(data.x).to_dense()
    assert torch.equal(store.rows(slice(None))[:, 0], expected[store.nodes])
    assert torch.allclose(expected.sum(1), (dense.sum(1) > 0).float())


def test_scaling_of_a_graph_in_memory_is_that_of_training(tmp_path: Path) -> None:
    data = small_graph()
    store = store_of(data, tmp_path / "s")
    fitted = FeatureScaling.fit(data.x, "auto")
    assert store.manifest.features == fitted.how == "standard"
    assert torch.equal(store.scaling.apply(data.x), fitted.apply(data.x))


def test_a_second_call_finds_the_store_and_other_settings_are_refused(tmp_path: Path) -> None:
    data = small_graph()
    store = store_of(data, tmp_path / "s")
    before = (store.path / "terms.npy").stat().st_mtime_ns
    assert store_of(data, tmp_path / "s", "streamed", 2).manifest == store.manifest
    assert (store.path / "terms.npy").stat().st_mtime_ns == before
    with pytest.raises(UserError, match="holds a store of another graph or with other settings"):
        store_of(data, tmp_path / "s", basis="monomial")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty"):
        store_of(data, tmp_path / "other")


def test_mistakes_are_named(tmp_path: Path) -> None:
    data = small_graph()
    for wrong, message in (
        ({"rows": "some"}, "--rows some"), ({"dtype": "int8"}, "--dtype int8"), ({"basis": "hermite"}, "unknown basis"),
        ({"memory": 1000}, "is too small"), ({"device": "cuda"}, "no GPU"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=message):
            plan_precompute(MemorySource(data), tmp_path / "s", Settings(**wrong))  # type: ignore[arg-type]
    data.y[:] = -1
    with pytest.raises(UserError, match="no node has a label"):
        plan_precompute(MemorySource(data), tmp_path / "s", Settings())
    assert not (tmp_path / "s").exists()


def test_more_memory_is_never_slower_and_the_budget_is_kept(tmp_path: Path) -> None:
    speed = Speed(1.3e-9, 1e-9, 1e-8, 8e-8, 1e-9)
    seconds = []
    for memory in np.linspace(1.2e9, 2e10, 40).astype(int).tolist():
        made = make_plan(
            10_000_000,
            200_000_000,
            64,
            500_000,
            Settings(memory=memory),
            base=3 * 10**8,
            speed=speed,
            out=tmp_path,
        )
        assert made.memory_bytes <= memory
        assert made.bounds[-1] == 64
        seconds.append(made.seconds)
    assert all(b <= a * 1.05 for a, b in pairwise(seconds))


def test_a_busy_machine_does_not_change_the_cut(tmp_path: Path) -> None:
    size, settings = (10_000_000, 200_000_000, 64, 500_000), Settings(memory=4 * 10**9)
    speeds = [
        Speed(g, e, 1e-8, 7e-8, d)
        for g in (5e-10, 5e-9)
        for e in (0.0, 5e-8)
        for d in (1e-10, 1e-7)
    ]
    made = [
        make_plan(*size, settings, base=6 * 10**8, speed=speed, out=tmp_path) for speed in speeds
    ]
    assert {(plan.cut, plan.width) for plan in made} == {("resident", 13)}
    assert len({plan.seconds for plan in made}) > 1
