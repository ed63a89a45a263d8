"""Several errors become one message."""

import pytest

from nfgnn.data.problems import Problems, SeveralErrors
from nfgnn.errors import UserError


def collected(*messages: str) -> Problems:
    problems = Problems()
    for message in messages:
        with problems.collect():
            raise UserError(message)
    return problems


def test_no_error_and_a_single_one() -> None:
    Problems().raise_all()
    with pytest.raises(UserError, match=r"^one$"):
        collected("one").raise_all()


def test_several_errors_are_numbered_and_nested_lists_are_joined() -> None:
    outer = collected("one")
    with outer.collect():
        collected("two", "three").raise_all()
    with pytest.raises(SeveralErrors) as caught:
        outer.raise_all()
    assert str(caught.value) == "3 errors:\n1. one\n2. two\n3. three"


def test_a_long_list_is_cut() -> None:
    with pytest.raises(UserError) as caught:
        collected(*map(str, range(25))).raise_all()
    lines = str(caught.value).splitlines()
    assert lines[0] == "25 errors:"
    assert lines[-2:] == ["10. 9", "… and 15 more"]


def test_other_exceptions_are_raised_at_once() -> None:
    with pytest.raises(KeyError), Problems().collect():
        raise KeyError
