"""The outcome of a search as JSON."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.auto_results import auto_result

from nfgnn.auto.result import AutoResult


def strict(value) -> str:
    return json.dumps(value, allow_nan=False)


def test_a_result_is_read_back_as_it_was() -> None:
    for changes in ({}, {"ensemble": None, "ensemble_test": None, "test": None}):
        result = auto_result(folder=Path("run"), **changes)
        values = json.loads(strict(result.to_dict()))
        assert AutoResult.from_dict(values, Path("run")) == result
        assert AutoResult.from_dict(values).folder is None


def test_numbers_that_are_not_finite_are_not_written() -> None:
    score = replace(auto_result().test, low=math.nan, high=math.inf)
    read = AutoResult.from_dict(json.loads(strict(auto_result(test=score).to_dict())))
    assert read.test is not None
    assert math.isnan(read.test.low)


def test_keys_of_later_versions_are_ignored() -> None:
    values = auto_result().to_dict()
    values["later"] = 1
    assert AutoResult.from_dict(values) == auto_result(folder=None)


def test_results_of_earlier_versions_have_no_warnings() -> None:
    values = auto_result().to_dict()
    del values["warnings"]
    assert AutoResult.from_dict(values) == auto_result(folder=None)
    warned = auto_result(warnings=("the model never predicts 'c'",), folder=None)
    assert AutoResult.from_dict(json.loads(strict(warned.to_dict()))) == warned


def change(values: dict, path: str, new) -> dict:
    changed = json.loads(strict(values))
    *parents, last = path.split("/")
    target = changed
    for key in parents:
        target = target[int(key) if key.isdigit() else key]
    if new is None:
        del target[last]
    else:
        target[last] = new
    return changed


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        ("leaderboard", None, "leaderboard is missing"),
        ("leaderboard", [], "leaderboard is empty"),
        ("leaderboard", {}, "leaderboard has an unexpected value"),
        ("leaderboard/1/validation/low", "0.1", r"leaderboard\[1\].validation.low has"),
        ("leaderboard/0/config", [], r"leaderboard\[0\].config has"),
        ("leaderboard/0/config/model", "Nothing", "unknown model 'Nothing'"),
        ("leaderboard/0/config/lr", -1.0, "lr"),
        ("seed", True, "seed has"),
        ("value", [], "value is not an object"),
        ("class_counts/val", [0.5, 1], r"class_counts.val\[0\] has"),
        ("ensemble/members", "GCN", "ensemble.members has"),
        ("runs", 1e400, "runs has"),
    ],
)
def test_unexpected_values_are_refused(path: str, new, message: str) -> None:
    values = change(auto_result().to_dict(), path, new)
    with pytest.raises(ValueError, match=message):
        AutoResult.from_dict(values)
