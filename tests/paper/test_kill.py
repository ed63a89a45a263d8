"""A command that is killed without warning goes on, and ends as if nothing had happened."""

import sqlite3
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from helpers.forked_python import start_python

from nfgnn.cli import main

REPRODUCE = [
    "reproduce",
    "full",
    "--datasets",
    "karate",
    "--models",
    "MLP,GCN,GPRGNN",
    "--runs",
    "3",
]
TUNE = [
    "tune",
    "karate",
    "--protocol",
    "stratified",
    "--trials",
    "6",
    "--seeds",
    "0-1",
    "--out",
    "best.toml",
]
TUNE += ["--set", "epochs=60"]
COMMANDS = {"reproduce": (REPRODUCE, "results/records.sqlite"), "tune": (TUNE, "runs/tune.sqlite")}


def rows(database: Path) -> int:
    if not database.is_file():
        return 0
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:  # it is just being made
        return 0


def kill_at(command: list[str], database: Path, count: int) -> None:
    """Start the command and kill it as soon as there are ``count`` records."""
    process = start_python("-m", "nfgnn", *command)
    while rows(database) < count:
        assert process.is_alive(), "it ended before it could be killed"
        time.sleep(0.02)
    process.kill()
    process.join()


def finish(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["nfgnn", *command])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code


def content(folder: Path, database: str) -> dict[str, object]:
    """All that was left, but for times."""
    files = [*folder.glob("results/full-*"), *folder.glob("best.toml")]
    left: dict[str, object] = {path.name: path.read_bytes() for path in files}
    for path in folder.glob("results/records.parquet"):
        left["parquet"] = pq.read_table(path).drop_columns("seconds").to_pylist()
    with sqlite3.connect(folder / database) as connection:
        query = (
            "SELECT key, config, json_remove(metrics, '$.seconds'), device FROM runs ORDER BY key"
        )
        left["records"] = connection.execute(query).fetchall()
    return left


# tests/reliability kills `tune`.
@pytest.mark.parametrize("name", ["reproduce"])
def test_killed_and_resumed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, database = COMMANDS[name]
    struck, whole = tmp_path / "struck", tmp_path / "whole"
    for folder in (struck, whole):
        folder.mkdir()
    monkeypatch.chdir(struck)
    kill_at(command, struck / database, 4)
    assert 4 <= rows(struck / database) < 9
    for folder in (struck, whole):
        finish(command, folder, monkeypatch)
    assert content(struck, database) == content(whole, database)
    assert len(content(whole, database)["records"]) >= 9
