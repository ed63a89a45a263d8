"""Suggestions for misspelt names."""

import pytest

from nfgnn.errors import UserError, suggestion, unknown_name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("nfgn", "; did you mean NFGNN?"),
        ("POLYGN", "; did you mean PolyGNN?"),
        ("transformer", ""),
    ],
)
def test_suggestion_ignores_case_and_is_empty_without_a_similar_name(
    given: str, expected: str
) -> None:
    assert suggestion(given, ["MLP", "NFGNN", "PolyGNN"]) == expected


def test_unknown_name_lists_the_choices_and_suggests_one() -> None:
    error = unknown_name("protocol", "fulll", ["full", "semi"])
    assert isinstance(error, UserError)
    message = "there is no protocol 'fulll': choose one of full, semi; did you mean full?"
    assert str(error) == message
