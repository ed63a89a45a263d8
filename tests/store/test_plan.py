"""Plans keep to the memory budget and do not depend on the load of the machine."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nfgnn.errors import UserError
from nfgnn.store import Settings, Speed, make_plan

SIZE = (10_000_000, 200_000_000, 64, 500_000)
SPEED = Speed(1.3e-9, 1e-9, 1e-8, 8e-8, 1e-9)


def test_more_memory_is_never_slower_and_the_budget_is_kept(tmp_path: Path) -> None:
    seconds = []
    for memory in np.linspace(1.2e9, 2e10, 40).astype(int).tolist():
        settings = Settings(memory=memory)
        plan = make_plan(*SIZE, settings, base=3 * 10**8, speed=SPEED, out=tmp_path)
        assert plan.memory_bytes <= memory
        assert plan.bounds[-1] == 64
        seconds.append(plan.seconds)
    assert all(b <= a * 1.05 for a, b in pairwise(seconds))


def test_the_measured_speed_does_not_change_the_cut(tmp_path: Path) -> None:
    settings = Settings(memory=4 * 10**9)
    plans = []
    for gather in (5e-10, 5e-9):
        for entry in (0.0, 5e-8):
            for disk in (1e-10, 1e-7):
                speed = Speed(gather, entry, 1e-8, 7e-8, disk)
                plans.append(make_plan(*SIZE, settings, base=6 * 10**8, speed=speed, out=tmp_path))
    assert {(plan.cut, plan.width) for plan in plans} == {("resident", 12)}
    assert len({plan.seconds for plan in plans}) > 1


def test_work_is_divided_into_parts_of_equal_width(tmp_path: Path) -> None:
    plan = make_plan(
        1000, 10_000, 64, 100, Settings(K=3), base=0, speed=SPEED, out=tmp_path, parts=16
    )
    assert (plan.blocks, plan.width, plan.products) == (16, 4, 48)
    assert plan.summary()["products"] == 48


def test_several_blocks_have_a_multiple_of_four_columns(tmp_path: Path) -> None:
    widths = set()
    for features in (5, 64, 100):
        for memory in np.linspace(7.5e8, 3e9, 40).astype(int).tolist():
            settings = Settings(memory=memory)
            size = (SIZE[0], SIZE[1], features, SIZE[3])
            plan = make_plan(*size, settings, base=3 * 10**8, speed=SPEED, out=tmp_path)
            assert plan.memory_bytes <= memory
            assert plan.width % 4 == 0 or plan.width < 4 or plan.blocks == 1
            widths.add(plan.width)
    assert {3, 4, 5, 8, 12} <= widths


def test_too_little_memory_is_reported_with_the_amount_that_suffices(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--memory 0\.1GB is too small.* needs 0\.77GB"):
        make_plan(*SIZE, Settings(memory=10**8), base=4 * 10**8, speed=SPEED, out=tmp_path)
    plan = make_plan(*SIZE, Settings(memory=770_000_000), base=4 * 10**8, speed=SPEED, out=tmp_path)
    assert (plan.cut, plan.width) == ("streamed", 1)


def test_a_gpu_is_used_if_its_memory_holds_the_graph(tmp_path: Path) -> None:
    for device_memory, cut in ((2 * 10**10, "device"), (10**9, "resident")):
        plan = make_plan(
            *SIZE, Settings(), base=0, speed=SPEED, out=tmp_path, device_memory=device_memory
        )
        assert plan.cut == cut
        assert plan.device == ("cuda" if cut == "device" else "cpu")
