"""The generated graph: the same on every path, with hubs and with classes that can be learned."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nfgnn.data import PowerLawGraph, load_dataset, open_large
from nfgnn.errors import UserError

CPU = torch.device("cpu")
GRAPH = PowerLawGraph(5000, 60_000, 16, 7, 900, homophily=0.6, signal=0.5)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


def test_files_do_not_depend_on_the_pieces_and_hold_the_parts(tmp_path: Path) -> None:
    GRAPH.write(tmp_path / "a")
    GRAPH.write(tmp_path / "b", piece_bytes=10_000)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    edges = np.load(tmp_path / "a" / "edges.npy")
    x = np.load(tmp_path / "a" / "node_features.npy")
    assert edges.dtype == np.int32
    assert x.dtype == np.float16
    assert np.array_equal(edges[123:456], GRAPH.edges(123, 456, CPU).numpy())
    assert np.array_equal(x[4990:], GRAPH.features(4990, 5000, CPU).numpy())
    other = replace(GRAPH, seed=1).edges(0, 60_000, CPU).numpy()
    assert (edges != other).mean() > 0.99


def test_an_interrupted_call_is_resumed(tmp_path: Path) -> None:
    def stop(name: str, done: int, total: int) -> None:
        if name == "node_features":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GRAPH.write(tmp_path / "a", piece_bytes=10_000, report=stop)
    assert not (tmp_path / "a" / "node_features.npy").exists()
    GRAPH.write(tmp_path / "a")
    GRAPH.write(tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    with pytest.raises(UserError, match="another generated graph"):
        replace(GRAPH, seed=1).write(tmp_path / "a")


@pytest.mark.parametrize("homophily", [0.0, 0.6, 1.0])
def test_edges_are_homophilic_and_degrees_follow_a_power_law(homophily: float) -> None:
    n = 100_000
    graph = PowerLawGraph(n, 1_000_000, 4, 10, homophily=homophily)
    source, target = graph.edges(0, graph.num_edges, CPU).long().T
    assert 0 <= int(target.min()) <= int(target.max()) < n
    # By homophily, and a tenth of the others by chance.
    expected = homophily + (1 - homophily) / 10
    assert abs(float((source % 10 == target % 10).float().mean()) - expected) < 0.005
    outgoing = torch.bincount(source, minlength=n).double()
    assert abs(float(outgoing.var() / outgoing.mean()) - 1) < 0.05  # Poisson
    if homophily == 0.6:  # the sum of two laws with different orders of the nodes
        return
    incoming = torch.bincount(target, minlength=n).sort(descending=True).values.double()
    # The r-th degree falls as r^(-2/3): hubs are hit (r / n)^(1/3) of the time.
    for share in (0.001, 0.01):
        found = float(incoming[: round(share * n)].sum() / 1_000_000)
        assert abs(found - share ** (1 / 3)) < 0.02


def test_features_are_class_means_with_nearly_normal_noise() -> None:
    x = GRAPH.features(0, 5000, CPU).double()
    y = torch.arange(5000) % 7
    means = torch.stack([x[y == c].mean(0) for c in range(7)])
    noise = x - means[y]
    deviation = float(noise.std())
    assert abs(deviation - (4 / 12) ** 0.5 * 2) < 0.01
    # Four uniform numbers: the excess kurtosis is -1.2 / 4.
    assert abs(float((noise**4).mean() / deviation**4) - 2.7) < 0.05
    assert abs(float(torch.corrcoef(noise.T).fill_diagonal_(0).abs().max())) < 0.06
    assert 0.35 < float(means.std()) / deviation < 0.65


def test_labels_and_masks() -> None:
    y = GRAPH.labels()
    masks = GRAPH.masks()
    assert (y >= 0).sum() == 900
    assert np.array_equal(sum(mask.astype(int) for mask in masks.values()), (y >= 0).astype(int))
    assert masks["train_mask"].sum() == 702
    assert masks["val_mask"].sum() == 72
    labelled = np.flatnonzero(y >= 0)
    assert np.array_equal(y[labelled], labelled % 7)


def test_the_folder_is_read_in_blocks_and_as_a_whole(tmp_path: Path) -> None:
    GRAPH.write(tmp_path / "graph")
    large = open_large(tmp_path / "graph")
    assert large is not None
    x = torch.from_numpy(np.concatenate(list(large.features(777))))
    data = load_dataset(tmp_path / "graph")
    assert torch.equal(data.x, x)
    assert torch.equal(data.y, torch.from_numpy(large.y))
    assert large.num_edges == 60_000
    assert large.masks.keys() == {"train_mask", "val_mask", "test_mask"}
    assert torch.equal(data.val_mask, torch.from_numpy(large.masks["val_mask"]))
    pairs = np.concatenate([np.stack(block, 1) for block in large.edges(9999)])
    assert np.array_equal(pairs, GRAPH.edges(0, 60_000, CPU).numpy())


@pytest.mark.parametrize("wrong", [{"num_nodes": 3}, {"homophily": 1.5}, {"num_labelled": 6000}])
def test_impossible_specifications_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match="got PowerLawGraph"):
        replace(GRAPH, **wrong)
