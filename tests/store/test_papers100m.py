"""The benchmark of a graph of the size of ogbn-papers100M, on a small graph."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from nfgnn.data import load_dataset
from nfgnn.spectral import polynomial_terms, resolve_basis, scaled_laplacian
from nfgnn.store import Store

SIZES = {"nodes": 600, "edges": 5000, "features": 20, "classes": 4, "labelled": 300, "K": 3}


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "papers100m.py"
    spec = importlib.util.spec_from_file_location("papers100m", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["papers100m"] = module
    spec.loader.exec_module(module)
    return module


def run(benchmark: ModuleType, tmp_path: Path, *options: str) -> str:
    words = ["papers100m.py", "--device", "cpu", "--epochs", "1", "--hidden", "8", *options]
    words += ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    words += [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        benchmark.main()
    return (tmp_path / "out" / "papers100m.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("resident", [True, False])
def test_the_store_has_the_terms_of_the_graph_in_memory(
    benchmark: ModuleType, tmp_path: Path, resident: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In three blocks of columns, with pieces of a few rows."""
    plan = benchmark.ColumnPlan(8, resident)
    monkeypatch.setattr(benchmark.ColumnPlan, "of", lambda *sizes: plan)
    monkeypatch.setattr(benchmark, "PIECE_BYTES", 2000)
    text = run(benchmark, tmp_path)
    assert "MLP: test accuracy" in text
    store = Store.open(tmp_path / "data" / "store", verify="checksums")
    data = load_dataset(tmp_path / "data" / "graph")
    operator = scaled_laplacian(data.edge_index, num_nodes=600)
    exact = polynomial_terms(data.x, operator, resolve_basis("chebyshev"), 3)
    rows = store.rows(torch.arange(300))
    expected = exact.transpose(0, 1)[store.nodes]
    assert torch.allclose(rows, expected.bfloat16().float(), rtol=0.01, atol=1e-3)
    assert torch.equal(store.y, data.y[store.nodes])
    again = run(benchmark, tmp_path, "--skip-generate")
    assert "edges sorted" in text
    assert "edges sorted" not in again


def test_the_plan_fits_the_memory_of_the_device(benchmark: ModuleType) -> None:
    papers = (111_059_956, 128, 2 * 1_615_685_872)
    plan = benchmark.ColumnPlan.of(*papers, 133e9)
    assert (plan.width, plan.resident) == (32, True)
    for free in (30e9, 60e9, 80e9, 100e9):
        plan = benchmark.ColumnPlan.of(*papers, free)
        held = 2 * 128 if plan.resident else 4 * plan.width
        assert papers[0] * (16 * plan.width + held) + 4 * papers[2] < free
    with pytest.raises(SystemExit, match="too small"):
        benchmark.ColumnPlan.of(*papers, 10e9)
