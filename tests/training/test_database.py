"""Records: nothing is lost, nothing is doubled, and several processes may write."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nfgnn.training import Record, Records, RunConfig

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
    command = [sys.executable, "-c", WRITER, str(tmp_path / "r.sqlite"), json.dumps(CONFIG)]
    writers = [subprocess.Popen([*command, str(start)]) for start in (0, 30, 60)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with Records(tmp_path / "r.sqlite") as records:
        found = records.all()
    assert [r.seed for r in found] == list(range(120))
    assert all(r.metrics == {"test_accuracy": r.seed} for r in found)
