"""The exception for invalid user input, and suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Invalid input: a file, a value or an option that the user can correct.

    The message says what is wrong, where, and how to fix it, in one or two sentences. The command
    line prints it and exits with status 2. In Python it is an ordinary exception.
    """


class DivergedError(UserError):
    """No epoch of a training had a finite validation loss."""


def suggestion(given: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean …?"`` with the most similar name, or an empty string."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(given.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def unknown_name(kind: str, given: str, choices: Iterable[str]) -> UserError:
    """Return the error for a name that is not one of ``choices``, with a similar one suggested.

    Args:
        kind: what the name stands for, such as ``"model"``.
        given: the name that was not found.
        choices: the valid names, in the order in which the message lists them.
    """
    names = list(choices)
    listed = ", ".join(names)
    return UserError(
        f"there is no {kind} '{given}': choose one of {listed}{suggestion(given, names)}"
    )
