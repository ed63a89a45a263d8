"""The operator on disk equals the operator in memory."""

from pathlib import Path

import pytest
import torch
from helpers.store_graphs import small_graph, write_graph

from nfgnn.spectral import scaled_laplacian
from nfgnn.store.disk_laplacian import DiskLaplacian

weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


@weighted_or_not
def test_load_returns_the_operator_in_memory(weighted: bool, tmp_path: Path) -> None:
    data = small_graph(weighted=weighted)
    write_graph(data, tmp_path)
    expected = scaled_laplacian(data.edge_index, data.get("edge_weight"), data.num_nodes)
    loaded = DiskLaplacian(tmp_path).load(2.0, torch.device("cpu"))
    assert loaded.indices.dtype == torch.int32
    assert torch.equal(loaded.scale, expected.scale)
    found = loaded.adjacency(torch.float32).tensor.to_dense()
    assert torch.equal(found, expected.adjacency(torch.float32).tensor.to_dense())


@weighted_or_not
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("entries", [1, 37, 10_000])
def test_row_blocks_are_the_rows_of_the_matrix(
    weighted: bool, stored: bool, entries: int, tmp_path: Path
) -> None:
    data = small_graph(weighted=weighted)
    write_graph(data, tmp_path)
    operator = scaled_laplacian(data.edge_index, data.get("edge_weight"), data.num_nodes)
    if stored:
        DiskLaplacian(tmp_path, 50).write_values()
        (tmp_path / "scale.npy").unlink()  # the values are not computed again
    found = []
    expected_first = 0
    for block in DiskLaplacian(tmp_path, entries).row_blocks():
        assert block.first == expected_first
        assert block.matrix.values().numel() <= entries or block.last == block.first + 1
        found.append(block.matrix.to_dense())
        expected_first = block.last
    assert torch.equal(torch.cat(found), operator.adjacency(torch.float32).tensor.to_dense())


def test_scale_is_computed_from_the_degrees(tmp_path: Path) -> None:
    data = small_graph()
    write_graph(data, tmp_path)
    expected = DiskLaplacian(tmp_path).load(2.0, torch.device("cpu")).scale
    (tmp_path / "scale.npy").unlink()
    DiskLaplacian(tmp_path).write_scale()
    assert torch.equal(DiskLaplacian(tmp_path).load(2.0, torch.device("cpu")).scale, expected)
