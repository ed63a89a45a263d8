"""The folders of one case."""

import hashlib
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

Snapshot = dict[str, str]
"""A description of every file below a folder, by its path."""


@dataclass(frozen=True)
class Place:
    """The folders of one case, all below ``folder``."""

    folder: Path

    @property
    def input(self) -> Path:
        """The mutated copy of a sample."""
        return self.folder / "input"

    @property
    def out(self) -> Path:
        """Where commands are told to write."""
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        """``TMPDIR``, in which crash reports appear."""
        return self.folder / "tmp"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def canary(self) -> Path:
        """A file that exists only if a payload was executed."""
        return self.folder / "canary"

    @property
    def stdout(self) -> Path:
        return self.folder / "stdout"

    @property
    def stderr(self) -> Path:
        return self.folder / "stderr"

    @property
    def report(self) -> Path:
        """What the forked process reports about its case, as JSON."""
        return self.folder / "report.json"

    def create(self) -> None:
        """Create the folders, which must not exist."""
        for folder in (self.input, self.out, self.temporary, self.cache, self.folder / "home"):
            folder.mkdir(parents=True)

    def remove(self) -> None:
        for path in self.folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.folder)


def snapshot(folder: Path) -> Snapshot:
    """Describe every file below a folder by its type and content."""
    return {str(path.relative_to(folder)): _describe(path) for path in sorted(folder.rglob("*"))}


def _describe(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link to {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return f"type {stat.S_IFMT(status.st_mode)}"
    return hashlib.sha256(path.read_bytes()).hexdigest()
