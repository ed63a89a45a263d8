"""The ids of users are kept in a store and found again."""

from pathlib import Path

import numpy as np
import pytest
from helpers.store_graphs import make_store, small_graph

from nfgnn.errors import UserError
from nfgnn.store import Store, verify_store
from nfgnn.store.stored_ids import StoredIds, id_arrays


@pytest.mark.parametrize(
    "ids",
    [
        ["b", "a", "ä", "", "10", "9", "a b"],
        np.array([7, 3, 100, 20]),
        ["007", "7"],
        [1, "x", 2.5],
    ],
)
def test_ids_are_found(ids: list[object]) -> None:
    arrays = id_arrays(ids, np.arange(len(ids)))
    stored = StoredIds(arrays["id_text"], arrays["id_start"], arrays["id_order"])
    texts = [str(name) for name in ids]
    assert stored.find(texts).tolist() == list(range(len(ids)))
    assert stored.find(["no", "~", "!"]).tolist() == [-1, -1, -1]
    numbers = isinstance(ids, np.ndarray)
    assert stored.all().to_pylist() == (list(ids) if numbers else texts)


def test_numbers_of_nodes_need_no_files() -> None:
    assert id_arrays(np.arange(5), np.arange(5)) == {}
    assert id_arrays(["2", "4"], np.array([2, 4])) == {}


def test_a_store_keeps_ids(tmp_path: Path) -> None:
    data = small_graph()
    data.node_ids = np.array([f"node {i}" for i in range(60)])
    store = make_store(data, tmp_path / "s")
    labelled = np.flatnonzero(data.y >= 0)
    assert store.labels().node_ids.to_pylist() == [f"node {i}" for i in labelled]
    assert store.find(["node 3", f"node {labelled[4]}", "3"]).tolist()[1:] == [4, -1]
    assert store.manifest.format == 2
    assert verify_store(store.path) == (len(store.manifest.checksums) + 1, {})
    text = np.load(store.path / "id_text.npy")
    np.save(store.path / "id_text.npy", text[:-1])
    with pytest.raises(UserError, match="id_text"):
        Store.open(store.path)


@pytest.mark.parametrize(
    "ids",
    [
        [(i, i) if i % 2 else (i,) for i in range(60)],
        [2**70 + i for i in range(60)],
        [1, "1", *range(2, 60)],
    ],
)
def test_a_store_keeps_ids_of_any_kind(ids: list[object], tmp_path: Path) -> None:
    data = small_graph()
    data.node_ids = ids
    store = make_store(data, tmp_path / "s")
    texts = list(map(str, ids))
    kept = texts if len(set(texts)) == 60 else list(map(str, range(60)))
    nodes = store.nodes.tolist()
    assert store.find([kept[node] for node in nodes]).tolist() == list(range(len(nodes)))


def test_without_ids_nodes_are_found_by_their_numbers(tmp_path: Path) -> None:
    store = make_store(small_graph(), tmp_path / "s")
    nodes = store.nodes.tolist()
    wanted = [str(nodes[0]), str(nodes[-1]), "-1", "01", "1e1", "x", "", "9" * 30, "99"]
    assert store.find(wanted).tolist() == [0, len(nodes) - 1, *[-1] * 7]
    assert store.manifest.format == 1
