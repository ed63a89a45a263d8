"""Exceptions for what the user can correct, and suggestions for misspelt names."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

_FULL = "no space is left on the disk: free some, or choose another location"
_DENIED = "permission denied: change the permissions, or choose another location"
_LONGEST_MESSAGE = 2000
# The control codes of terminals, the line ends of Unicode, and changes of the text's direction.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_REASONS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the file is larger than the file system allows: choose another location",
    errno.EROFS: "the file system is read-only: choose another location",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.EIO: "input/output error: check the disk or its connection, or choose another location",
    errno.ENOENT: "no such file or folder: check the path",
    errno.ENOTDIR: "a part of the path is a file: choose another path",
    errno.EISDIR: "it is a folder: pass the path of a file",
    errno.EEXIST: "it already exists: choose another path",
    errno.EMFILE: "too many files are open: raise the limit with `ulimit -n`",
}


class UserError(ValueError):
    """Invalid input: a file, a value or an option that the user can correct.

    The message says what is wrong, where, and how to fix it, in one or two sentences. The command
    line prints it and exits with status 2. In Python it is an ordinary exception.

    Messages quote names and values of files and options. They are made printable here, so that
    none of them can change a terminal or look like a second message.
    """

    def __init__(self, message: str) -> None:
        text = printable(message)
        if len(text) > _LONGEST_MESSAGE:
            half = _LONGEST_MESSAGE // 2
            text = f"{text[:half]} … {text[-half:]}"
        super().__init__(text)


def printable(text: str) -> str:
    """Return a text as one line without control characters; see :func:`escape_controls`."""
    return escape_controls(" ".join(text.split("\n")))


def escape_controls(text: str) -> str:
    """Write control characters other than the line end as escapes, such as ``\\x1b``."""
    return _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


class DivergedError(UserError):
    """No epoch of a training had a finite validation loss."""


def suggestion(given: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean …?"`` with the most similar name, or an empty string."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(given.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def unknown_name(kind: str, given: object, choices: Iterable[str]) -> UserError:
    """Return the error for a name that is not one of ``choices``, with a similar one suggested.

    Args:
        kind: what the name stands for, such as ``"model"``.
        given: the name that was not found, or what was passed in its place, such as ``None``.
        choices: the valid names, in the order in which the message lists them.
    """
    names = list(choices)
    listed = ", ".join(names)
    if not isinstance(given, str):
        return UserError(f"unknown {kind} {given!r}: choose one of {listed}")
    return UserError(f"unknown {kind} '{given}': choose one of {listed}{suggestion(given, names)}")


def system_error(error: OSError, path: Path | None = None) -> UserError:
    """Return an error of the operating system as one sentence with the path and a remedy.

    Args:
        error: what was raised.
        path: what was written, for errors that do not name a file. A write to a full disk is one.
    """
    place = path if error.filename is None else Path(os.fsdecode(error.filename))
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return UserError(f"cannot read or write {place or 'a file or the standard output'}: {reason}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report errors of the operating system in this block as a failure to write ``path``."""
    try:
        yield
    except (ConnectionError, TimeoutError):  # of a network or a pipe
        raise
    except OSError as error:
        raise system_error(error, path) from error
