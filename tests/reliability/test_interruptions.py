"""A sample of ``record.py``: failing disks and kills at some file events of every command."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from reliability.faults import FAULTS, READ_FAULTS, try_fault
from reliability.harness import CASES, KARATE, QUICK, Prepared, Server, prepare, running_server
from reliability.kills import kill_at_event, random_events

SAMPLED = (
    "train",
    "precompute --overwrite",
    "precompute --serve",
    "predict --extends",
    "tune",
    "NodeClassifier.save",
)
KILLED = (*SAMPLED, "train on parts", "auto")
READING = ("predict --extends", "serve")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server"), (*KILLED, "serve")) as running:
        yield running


@pytest.fixture(scope="module")
def cases(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Prepared]:
    """Return a function that prepares a case, once for all tests."""

    @cache
    def prepare_once(name: str) -> Prepared:
        return prepare(server, name, tmp_path_factory.mktemp("case") / "case")

    return prepare_once


@pytest.fixture
def prepared(cases: Callable[[str], Prepared], request: pytest.FixtureRequest) -> Prepared:
    return cases(request.param)


@pytest.mark.parametrize("prepared", SAMPLED, indirect=True)
def test_a_failing_disk(server: Server, prepared: Prepared, tmp_path: Path) -> None:
    events = random_events(prepared, len(FAULTS), seed=len(prepared.case.command))
    for at, fault in zip(events, FAULTS.values()):
        outcome, problem = try_fault(server, prepared, fault, at, tmp_path / "work")
        assert problem is None, (at, outcome)


@pytest.mark.parametrize("prepared", READING, indirect=True)
def test_a_disk_that_cannot_be_read(server: Server, prepared: Prepared, tmp_path: Path) -> None:
    """No traceback, no partial output, and no other answer than that of a working disk."""
    work = tmp_path / "work"
    if prepared.case.command[0] == "serve":
        assert prepared.events == 0  # the server changes no files
    whole = server.run(prepared.case.command, prepared.fresh(work), reads=True)
    for fault in READ_FAULTS.values():
        for at in random.Random(2).sample(range(1, whole.events + 1), 3):
            outcome, problem = try_fault(server, prepared, fault, at, work)
            assert problem is None, (at, outcome)


@pytest.mark.parametrize("prepared", KILLED, indirect=True)
def test_a_kill(server: Server, prepared: Prepared, tmp_path: Path) -> None:
    at = random.Random(1).randint(1, prepared.events)
    outcome, problem = kill_at_event(server, prepared, at, tmp_path / "work")
    assert outcome.status == -9
    assert problem is None, (at, outcome)


def test_the_harness_finds_a_command_that_ignores_a_fault(server: Server, tmp_path: Path) -> None:
    """The comparison can fail: the result of another command is not taken for equal."""
    case = prepare(server, "NodeClassifier.save", tmp_path / "case")
    wrong = Prepared(case.case, case.folder, case.before, {**case.after, "more": b""}, case.events)
    assert kill_at_event(server, wrong, 1, tmp_path / "work")[1] == "lacks more"


def test_a_small_disk_that_is_full(server: Server, tmp_path: Path) -> None:
    """A real file system of 20 kB: a message, no leftovers, and success once it is larger."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the permission to mount a file system")
    command = ("train", *KARATE, "--runs", "1", "--workers", "1", *QUICK, "--out", "run")
    try:
        full = server.run(command, disk)
        assert full.status == 2
        assert full.problem() is None
        assert "no space is left" in full.output.lower()
        assert not (disk / "run").exists()
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        assert server.run(command, disk).status == 0
        assert [path.name for path in disk.iterdir()] == ["run"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_commands_of_the_issue_are_covered() -> None:
    words = {case.command[0] for case in CASES.values()}
    assert words >= {"train", "predict", "precompute", "reproduce", "tune", "explore", "save"}
