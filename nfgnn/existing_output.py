"""The rule for outputs that exist already, which all commands follow.

- The same output is left, or written again with the same content.
- Another output of nfgnn is replaced only with ``--overwrite``, in Python ``overwrite=True``.
- Everything else is never replaced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from filecmp import cmp
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.files import atomic_file

IsOurs = Callable[[Path], bool]
"""Whether nfgnn has written a file, by the marker in its content."""
_HEAD_BYTES = 4096


def refuse_replacement(
    path: Path | str, what: str, *, ours: bool, same: bool = False, overwrite: bool = False
) -> None:
    """Raise an error if an existing output must not be replaced.

    Args:
        path: the file or folder that exists, or its URL.
        what: what is written there, such as ``"a run folder"``.
        ours: whether nfgnn has written what exists.
        same: whether it has the content that is to be written.
        overwrite: whether the user allows replacing other content.
    """
    if not ours:
        raise UserError(
            f"{path} already exists and is not {what} of nfgnn, so it was not replaced: choose "
            "another path, or move it away"
        )
    if not same and not overwrite:
        raise UserError(
            f"{path} already exists and is {what} with different content: choose another path, "
            "or replace it with --overwrite (in Python: overwrite=True)"
        )


def refuse_foreign_file(path: Path, is_ours: IsOurs, what: str) -> None:
    """Refuse a file that nfgnn has not written; called before long work."""
    if not _is_missing(path):
        refuse_replacement(path, what, ours=path.is_file() and is_ours(path), overwrite=True)


@contextmanager
def output_file(path: Path, is_ours: IsOurs, what: str, overwrite: bool) -> Iterator[Path]:
    """Yield the path of a file to write; it takes its final name if the rule allows it.

    Args:
        path: the final name.
        is_ours: whether an existing file is one of this kind.
        what: the kind, such as ``"a page"``.
        overwrite: whether another file of this kind may be replaced.
    """
    refuse_foreign_file(path, is_ours, what)
    with atomic_file(path) as partial:
        yield partial
        if not _is_missing(path):
            same = cmp(partial, path, shallow=False)
            refuse_replacement(path, what, ours=is_ours(path), same=same, overwrite=overwrite)


def write_output(
    path: Path, content: str | bytes, is_ours: IsOurs, what: str, overwrite: bool
) -> None:
    """Write a file atomically if the rule allows it; see :func:`output_file`."""
    with output_file(path, is_ours, what, overwrite) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def starts_with(*markers: str) -> IsOurs:
    """Return a check whether one of some texts is near the start of a file."""
    found = [marker.encode() for marker in markers]

    def is_ours(path: Path) -> bool:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        return any(marker in head for marker in found)

    return is_ours


def _is_missing(path: Path) -> bool:
    """Whether there is nothing to lose: no file, or an empty one."""
    return not path.exists() or (path.is_file() and path.stat().st_size == 0)
