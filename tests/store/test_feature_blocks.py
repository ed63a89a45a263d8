"""Features are scaled in blocks as they are scaled in training."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.store_graphs import make_store, planned, small_graph, write_tables

from nfgnn.data import FeatureScaling, load_dataset, open_large
from nfgnn.store import MemorySource, Settings, precompute
from nfgnn.store.feature_blocks import write_feature_blocks
from nfgnn.store.workspace import Workspace


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


def test_the_scaling_does_not_depend_on_the_budget(tmp_path: Path) -> None:
    """Features are added up in the same blocks with every budget, so that they round alike."""
    folder = write_tables(tmp_path / "g", "parquet")
    large = open_large(folder)
    assert large is not None
    requested = []

    def features(rows: int) -> Iterator[np.ndarray]:
        requested.append(rows)
        return large.features(rows)

    source = replace(large, features=features)
    settings = Settings(K=0, features="standard")
    chosen = planned(MemorySource(load_dataset(folder)), tmp_path, settings, width=3)
    scalings = []
    for memory in (280, 10**6):
        workspace = Workspace(tmp_path / str(memory), settings, chosen, "")
        write_feature_blocks(source, workspace, memory, lambda stage, done, total: None)
        scalings.append((workspace.folder / "scaling.json").read_bytes())
    fitted, scaled, fitted_again, scaled_again = requested
    assert scaled == 1 < scaled_again
    assert fitted == fitted_again
    assert scalings[0] == scalings[1]
