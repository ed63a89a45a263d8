"""Features are scaled in blocks as they are scaled in training."""

from pathlib import Path

import pytest
import torch
from helpers.store_graphs import make_store, small_graph, write_tables

from nfgnn.data import FeatureScaling, load_dataset, open_large
from nfgnn.store import Settings, precompute


def test_sparse_features_are_scaled_as_in_training(tmp_path: Path) -> None:
    data = small_graph()
    data.x = torch.where(data.x > 0.8, data.x, 0.0)
    dense = data.x.clone()
    data.x = data.x.to_sparse_csr()
    store = make_store(data, tmp_path / "s", features="row")
    expected = FeatureScaling.fit(data.x, "row").apply(data.x).to_dense()
    assert torch.equal(store.rows(slice(None))[:, 0], expected[store.nodes])
    assert torch.allclose(expected.sum(1), (dense.sum(1) > 0).float())


def test_the_scaling_of_a_graph_in_memory_is_that_of_training(tmp_path: Path) -> None:
    data = small_graph()
    store = make_store(data, tmp_path / "s")
    fitted = FeatureScaling.fit(data.x, "auto")
    assert store.manifest.features == fitted.how == "standard"
    assert torch.equal(store.scaling.apply(data.x), fitted.apply(data.x))


@pytest.mark.parametrize("how", ["row", "standard", "raw"])
def test_the_scaling_of_features_in_blocks_is_that_of_training(how: str, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "g", "parquet")
    large = open_large(folder)
    assert large is not None
    store = precompute(large, tmp_path / "s", Settings(K=0, features=how))
    x = load_dataset(folder).x
    expected = FeatureScaling.fit(x, how).apply(x)[store.nodes]
    torch.testing.assert_close(store.rows(slice(None))[:, 0], expected, rtol=1e-5, atol=1e-6)
