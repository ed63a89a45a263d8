"""``SHA256SUMS``: the checksums of the files of a folder, in the format of ``sha256sum``.

``sha256sum -c SHA256SUMS`` verifies a folder without nfgnn.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from nfgnn.errors import UserError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def write_checksums(folder: Path, names: Iterable[str]) -> None:
    """Write the checksums of some files of a folder."""
    (folder / SUMS).write_text(checksum_lines(folder, names), encoding="utf-8")


def checksum_lines(folder: Path, names: Iterable[str]) -> str:
    """Return the content of ``SHA256SUMS`` for some files of a folder."""
    return "".join(f"{_sha256(folder / name)}  {name}\n" for name in sorted(names))


def read_checksums(folder: Path) -> dict[str, str]:
    """Return the checksum of every file that ``SHA256SUMS`` lists."""
    path = folder / SUMS
    found = {}
    if not path.is_file():  # a pipe would be waited for
        raise UserError(f"{path}: is missing, or not a file; restore it from a copy")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); restore it from a copy") from None
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise UserError(f"{path}: is damaged; restore it from a copy")
        found[match[2]] = match[1]
    return found


def damaged_files(folder: Path, names: Iterable[str] | None = None) -> dict[str, str]:
    """Compare files with their checksums and return what is wrong, by the name of the file.

    Args:
        folder: a folder with ``SHA256SUMS``.
        names: the files to check; by default all that are listed.
    """
    try:
        expected = read_checksums(folder)
    except UserError:
        return {SUMS: "is missing or damaged"}
    damaged = {}
    for name in expected if names is None else names:
        path = folder / name
        if name not in expected:
            damaged[name] = f"has no checksum in {SUMS}"
        elif not path.is_file():
            damaged[name] = "is missing"
        elif problem := _problem(path, expected[name]):
            damaged[name] = problem
    return damaged


def refuse_damaged_files(folder: Path, names: Iterable[str], remedy: str) -> None:
    """Raise an error that names the first damaged file and how to fix it."""
    for name, problem in damaged_files(folder, names).items():
        raise UserError(f"{folder / name}: {problem}; {remedy}")


def _problem(path: Path, expected: str) -> str | None:
    """Return what is wrong with a file, if anything is."""
    try:
        equal = _sha256(path) == expected
    except OSError as error:  # no permission, or a disk that cannot read a sector
        return f"cannot be read ({error.strerror}): check its permissions and the disk"
    return None if equal else "is damaged: its checksum differs"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
