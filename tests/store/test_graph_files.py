"""Files of a graph and of ids that are damaged, but fit their checksums, are refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fuzz.seals import seal_store_files
from helpers.command_line import main_status
from helpers.serving_graphs import write_people
from helpers.store_graphs import make_store, small_graph

from nfgnn.errors import UserError
from nfgnn.store import Store


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with a graph and text ids."""
    folder = tmp_path_factory.mktemp("graph-files")
    write_people(folder / "people", np.arange(40))
    command = ("precompute", str(folder / "people"), "--out", str(folder / "store"))
    assert main_status(*command, "--K", "2", "--serve", "--device", "cpu") == 0
    return folder / "store"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("indptr", 10**6, "does not fit indices.npy"),
        ("indptr", -1, "does not fit indices.npy"),
        ("id_start", 10**6, "does not fit id_text.npy"),
        ("id_order", 40, "does not hold rows of the store"),
        ("id_order", -1, "does not hold rows of the store"),
        ("id_order", 0, "does not hold the order of the ids"),
        ("scale", 1e-200, "has values that no degrees have"),
        ("scale", 1e200, "has values that no degrees have"),
        ("scale", np.nan, "negative or not finite"),
        ("scale", np.inf, "negative or not finite"),
        ("scale", -1.0, "negative or not finite"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    name: str, value: float, message: str, intact: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(intact, store)
    array = np.load(store / f"{name}.npy")
    array[5] = value
    np.save(store / f"{name}.npy", array)
    seal_store_files(store)
    with pytest.raises(UserError, match=message) as refused:
        Store.open(store)
    assert str(store / f"{name}.npy") in str(refused.value)


def test_rows_in_another_order_than_their_ids_are_refused(intact: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(intact, store)
    order = np.load(store / "id_order.npy")
    np.save(store / "id_order.npy", np.roll(order, 1))
    seal_store_files(store)
    with pytest.raises(UserError, match=r"id_order\.npy: does not hold the order of the ids"):
        Store.open(store)


def test_weights_of_another_length_are_refused(tmp_path: Path) -> None:
    store = make_store(small_graph(weighted=True), tmp_path / "store", rows="all", serve=True)
    np.save(store.path / "weight.npy", np.ones(7))
    seal_store_files(store.path)
    with pytest.raises(UserError, match=r"weight\.npy: does not fit indices\.npy"):
        Store.open(store.path)


def test_new_checksums_alone_change_nothing(intact: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(intact, store)
    seal_store_files(store)
    assert Store.open(store).graph.num_nodes == 40
