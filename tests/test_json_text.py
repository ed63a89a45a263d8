"""JSON that every parser reads."""

import json
import math

import pytest

from nfgnn.json_text import json_text


def strict(text: str) -> object:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_null(number: float) -> None:
    value = {"a": number, "b": [1, (number, {"c": number})], "d": "NaN", "e": 0.1}
    text = json_text(value, indent=1)
    assert strict(text) == {"a": None, "b": [1, [None, {"c": None}]], "d": "NaN", "e": 0.1}


def test_finite_values_are_written_as_json_does() -> None:
    value = {"x": [1, 2.5, None, True], "y": {"z": "ü"}}
    assert json_text(value) == json.dumps(value)
