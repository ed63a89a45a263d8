"""Suggestions for misspelt names, and messages about files."""

import errno
from pathlib import Path

import pytest

from nfgnn.errors import UserError, suggestion, system_error, unknown_name, writing


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
    message = "unknown protocol 'fulll': choose one of full, semi; did you mean full?"
    assert str(error) == message
    error = unknown_name("protocol", None, ["full", "semi"])
    assert str(error) == "unknown protocol None: choose one of full, semi"


def test_errors_of_the_system_name_the_path_the_reason_and_the_remedy() -> None:
    named = OSError(errno.EACCES, "Permission denied", "a/b")
    assert str(system_error(named, Path("c"))).startswith("cannot read or write a/b: permission")
    full = OSError(errno.ENOSPC, "No space left on device")
    assert "read or write c: no space is left" in str(system_error(full, Path("c")))
    other = OSError("512 requested and 0 written")  # of NumPy
    assert str(system_error(other, Path("c"))).endswith("c: 512 requested and 0 written")


def test_a_block_that_writes_reports_the_path() -> None:
    with (
        pytest.raises(UserError, match="read or write out: no space is left"),
        writing(Path("out")),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(BrokenPipeError), writing(Path("out")):
        raise BrokenPipeError


def test_messages_are_one_printable_line() -> None:
    error = UserError("graph \x1b[31m\u202e\n nfgnn: forged")
    assert str(error) == r"graph \x1b[31m\u202e  nfgnn: forged"
    assert len(str(UserError("x" * 100_000))) < 2100
