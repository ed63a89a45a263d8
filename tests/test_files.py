"""Files and folders appear as a whole, and replacing a folder leaves no gap."""

import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from nfgnn import files
from nfgnn.errors import UserError


def folder(path: Path, content: str) -> Path:
    path.mkdir()
    (path / "file").write_text(content)
    return path


@pytest.mark.parametrize("exchange", [True, False])
def test_a_published_folder_replaces_the_old_one(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    old = folder(tmp_path / "run", "old")
    (old / "sub").mkdir()
    files.publish(folder(tmp_path / "new", "new"), old)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (old / "file").read_text() == "new"


def test_at_every_moment_one_of_both_folders_is_there(tmp_path: Path) -> None:
    path = folder(tmp_path / "run", "0")
    missing = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            if not path.exists():
                missing.append(path)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(100):
        files.publish(folder(tmp_path / "new", str(number)), path, sync=False)
    stop.set()
    watcher.join()
    assert not missing


def test_without_exchange_a_failure_restores_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    path = folder(tmp_path / "run", "old")
    with pytest.raises(FileNotFoundError):
        files._replace(tmp_path / "nothing", path)
    assert (path / "file").read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_a_symbolic_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    target = folder(tmp_path / "elsewhere", "old")
    (tmp_path / "run").symlink_to(target)
    files.publish(folder(tmp_path / "new", "new"), tmp_path / "run")
    assert (tmp_path / "run" / "file").read_text() == "new"
    assert (target / "file").read_text() == "old"


def test_everything_is_on_disk_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    published_at = []
    sync = files.sync_file

    def record(path: Path) -> None:
        synced.append(path.name)
        if (tmp_path / "run").exists() and not published_at:
            published_at.append(len(synced))
        sync(path)

    monkeypatch.setattr(files, "sync_file", record)
    with files.atomic_folder(tmp_path / "run") as partial:
        folder(partial / "sub", "content")
        name = partial.name
    assert sorted(synced[:-1]) == sorted(["file", "sub", name])
    assert published_at == [len(synced)]
    assert synced[-1] == tmp_path.name


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with files.atomic_file(tmp_path / "file") as partial:
            partial.write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_writers_of_one_file_do_not_share_a_partial_name(tmp_path: Path) -> None:
    with files.atomic_file(tmp_path / "p.csv") as one, files.atomic_file(tmp_path / "p.csv") as two:
        assert one != two
        one.write_text("one")
        two.write_text("two")
    assert (tmp_path / "p.csv").read_text() == "one"


def test_written_files_respect_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.atomic_write(tmp_path / "file", "content")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    def lock() -> AbstractContextManager[None]:
        return files.locked(tmp_path / "a" / "b", "busy")

    with lock(), pytest.raises(UserError, match="busy"), lock():
        pass
    with lock():
        pass


def test_a_file_cannot_be_locked_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match="is a file"), files.locked(path, "busy"):
            pass


def test_leftovers_are_deleted_unless_a_process_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    left = tmp_path / ".p.csv.0123456789abcdef.partial"
    left.write_text("of a killed process")
    other = tmp_path / ".p.csv.other.partial"
    other.write_text("not ours")
    with files.atomic_file(path) as living:
        living.write_text("one")
        with files.atomic_file(path) as second:
            second.write_text("two")
            assert living.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [other.name, "p.csv"]
    assert path.read_text() == "one"
    (tmp_path / ".run.0123456789abcdef.partial" / "sub").mkdir(parents=True)
    with files.atomic_folder(tmp_path / "run") as partial:
        folder(partial / "sub", "new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [other.name, "p.csv", "run"]
