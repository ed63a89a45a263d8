"""Measured speeds are positive, and a streamed product costs more than one in memory."""

from pathlib import Path

from nfgnn.store.machine_speed import NOMINAL, existing_parent, measure_speed


def test_speeds_are_measured(tmp_path: Path) -> None:
    speed = measure_speed(1000, tmp_path / "not" / "created")
    assert speed.gather > 0
    assert speed.entry >= 0
    assert min(speed.normalise, speed.sort, speed.disk) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_streamed_product_costs_more() -> None:
    resident = NOMINAL.product(10**6, 10**5, 8, "resident")
    assert NOMINAL.product(10**6, 10**5, 8, "streamed") > resident
    assert NOMINAL.product(10**6, 10**5, 16, "resident") > resident


def test_the_nearest_existing_folder_is_found(tmp_path: Path) -> None:
    assert existing_parent(tmp_path / "a" / "b") == tmp_path.resolve()
    assert existing_parent(tmp_path) == tmp_path.resolve()
