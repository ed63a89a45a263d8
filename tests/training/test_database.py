"""Records: nothing is lost, nothing is doubled, and several processes may write."""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.forked_python import start_python

from nfgnn.errors import UserError
from nfgnn.training import Record, Records, RunConfig
from nfgnn.training.records import database

CONFIG = RunConfig.resolve("GCN", {}, "texas", "full").to_dict()


def made(seed: int, **changes) -> Record:
    metrics = {"test_accuracy": 0.5 + seed / 1000, "val_loss": 1.25, "epochs": 201, "seconds": 0.3}
    return replace(
        Record("texas", "f00d", "full", seed, CONFIG, metrics, "cpu", "a machine"), **changes
    )


def test_a_run_is_known_by_all_that_decides_it(tmp_path: Path) -> None:
    first = made(1)
    others = [
        made(2),
        made(1, fingerprint="beef"),
        made(1, protocol="semi"),
        made(1, config={**CONFIG, "lr": 0.2}),
        made(1, config={**CONFIG, "model": "SGC"}),
        made(1, version=0),
    ]
    same = [
        made(1, device="gpu"),
        made(1, machine="another"),
        made(1, metrics={"test_accuracy": 0.1}),
    ]
    assert len({r.key for r in [first, *others]}) == 7
    assert {r.key for r in same} == {first.key}
    with Records(tmp_path / "r.sqlite") as records:
        assert records.add([first, *others]) == 7
        assert records.add(same) == 0
        assert records.find("f00d", "full", CONFIG, [1, 2, 3]) == {1: first, 2: made(2)}
        assert made(1, version=0) not in records.all()


def test_a_batch_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        with pytest.raises(sqlite3.IntegrityError):
            records.add([made(1), made(2, dataset=None)])
        assert records.all() == []
        assert records.add([made(1)]) == 1  # and the database is as usable as before


WRITER = """
import sys, json
from pathlib import Path
from nfgnn.training import Record, Records
config = json.loads(sys.argv[2])
for start in range(int(sys.argv[3]), int(sys.argv[3]) + 60, 10):
    with Records(Path(sys.argv[1])) as records:
        for seed in range(start, start + 10):
            metrics = {"test_accuracy": seed}
            record = Record("texas", "f00d", "full", seed, config, metrics, sys.argv[3], "m")
            records.add([record])
"""


def test_processes_that_write_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    command = [str(script), str(tmp_path / "r.sqlite"), json.dumps(CONFIG)]
    writers = [start_python(*command, str(start)) for start in (0, 30)]
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    with Records(tmp_path / "r.sqlite") as records:
        found = records.all()
    assert [r.seed for r in found] == list(range(90))
    assert all(r.metrics == {"test_accuracy": r.seed} for r in found)


def refusal(path: Path) -> str:
    """Add a record and return the message of the error."""
    with pytest.raises(UserError) as caught, Records(path) as records:
        records.add([made(9)])
    message = str(caught.value)
    assert str(path) in message
    assert not any(word in message for word in ("remove", "delete"))
    return message


def filled(path: Path, count: int = 400) -> Path:
    with Records(path) as records:
        records.add([made(seed) for seed in range(count)])
    return path


def test_a_locked_database_is_reported_as_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "r.sqlite")
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "another process has locked the database" in refusal(path)
    other.close()
    with Records(path) as records:
        assert records.add([made(9)]) == 0


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + bytes(range(256)) * 40]
)
def test_another_file_is_reported_as_damaged_and_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    path.write_bytes(content)
    assert "is damaged, or not a database of records; keep the file" in refusal(path)
    assert path.read_bytes() == content


def test_damage_inside_a_database_is_reported(tmp_path: Path) -> None:
    path = filled(tmp_path / "r.sqlite")
    content = bytearray(path.read_bytes())
    content[8192:] = os.urandom(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"), Records(path) as records:
        records.all()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (name TEXT)")
    other.close()
    assert "not a database of records" in refusal(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_database_is_reported_as_read_only(tmp_path: Path) -> None:
    path = filled(tmp_path / "r.sqlite")
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert "read-only" in refusal(path)
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "read-only"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "another process has locked"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged"),
        (sqlite3.SQLITE_IOERR_FSYNC, "the disk reports an error"),
    ],
)
def test_every_kind_of_error_has_its_own_message(code: int, expected: str, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    assert expected in (database._explain(error, tmp_path / "r.sqlite") or "")


def test_a_full_disk_is_told_from_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite calls a lack of space for its log a disk I/O error."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    monkeypatch.setattr(database, "_FREE_BYTES", 2**80)
    assert "the disk is full" in (database._explain(error, tmp_path / "r.sqlite") or "")


def test_a_transaction_without_space_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = filled(tmp_path / "r.sqlite", count=1)
    with Records(path) as records:
        records._connection.execute("PRAGMA max_page_count = 10")
        with pytest.raises(UserError, match="the disk is full"):
            records.add([made(seed) for seed in range(1, 400)])
        assert records.all() == [made(0)]
    assert filled(path, 3) == path


def test_a_folder_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    assert "cannot be opened" in refusal(tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(tmp_path / "file" / "r.sqlite")


def test_a_trigger_of_other_origin_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with Records(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        connection.commit()
    with Records(path) as records, pytest.raises(UserError, match="not a database of records"):
        records.add([made(0)])
