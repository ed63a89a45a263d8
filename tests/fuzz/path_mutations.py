"""A file replaced by something that is not the file."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

PathMutation = Callable[[random.Random, Path, Path], None]
"""Arguments: generator, file, and the same file of another sample."""


def pipe(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    path.mkdir()


def device(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/dev/urandom", "/dev/full"]))


def broken_link(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def link_to_itself(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def missing(rng: random.Random, path: Path, other: Path) -> None:
    path.unlink()


def no_permission(rng: random.Random, path: Path, other: Path) -> None:
    path.chmod(0)


def of_another_sample(rng: random.Random, path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def of_the_same_sample(rng: random.Random, path: Path, other: Path) -> None:
    """Replace the file by another file of its folder."""
    others = [file for file in sorted(path.parent.iterdir()) if file.is_file() and file != path]
    if others:
        shutil.copyfile(rng.choice(others), path)
    else:
        path.unlink()


PATH_MUTATIONS: dict[str, PathMutation] = {
    "pipe": pipe,
    "folder": folder,
    "device": device,
    "broken link": broken_link,
    "link to itself": link_to_itself,
    "missing": missing,
    "no permission": no_permission,
    "file of another sample": of_another_sample,
    "another file of the sample": of_the_same_sample,
}
