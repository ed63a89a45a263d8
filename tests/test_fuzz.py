"""The fuzzer finds no bug in a few cases, and recognises bugs."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz.outcomes import Ended, Outcome, classify
from helpers.forked_python import start_python

REPOSITORY = Path(__file__).parents[1]
CASES = 25
MESSAGE = "nfgnn: graph.npz: cannot be read; create the file again."
ENDED = Ended(
    status=2,
    signal=None,
    timed_out=False,
    peak_bytes=0,
    stdout="",
    stderr=MESSAGE,
    problems=[],
    executed=False,
    changed=[],
    crash_report="",
)


def test_no_case_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY)
    # A process of its own: it forks, which a process with threads must not do.
    output = tmp_path / "output.txt"
    done = start_python("-m", "tests.fuzz", "--cases", str(CASES), "--seed", "1", output=output)
    done.join()
    assert done.exitcode == 0, output.read_text()[-4000:]
    assert f"{CASES} cases" in output.read_text()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Outcome.REFUSED),
        ({"status": 0}, Outcome.OK),
        ({"status": 0, "problems": ["edges are missing"]}, Outcome.WRONG),
        ({"status": None, "signal": signal.SIGSEGV}, Outcome.CRASH),
        ({"status": None, "signal": signal.SIGXCPU}, Outcome.HANG),
        ({"timed_out": True}, Outcome.HANG),
        ({"peak_bytes": 2**40}, Outcome.MEMORY),
        ({"status": 0, "executed": True}, Outcome.EXECUTED),
        ({"changed": ["thesis.txt"]}, Outcome.DAMAGED),
        ({"status": 1, "crash_report": "ValueError: x"}, Outcome.TRACEBACK),
        ({"status": 1, "stderr": "Traceback (most recent call last)\nx"}, Outcome.TRACEBACK),
        ({"status": 1}, Outcome.TRACEBACK),
        ({"stderr": ""}, Outcome.UNCLEAR),
        ({"stderr": "nfgnn: other.npz: create the file again"}, Outcome.UNCLEAR),
        ({"stderr": "nfgnn: graph.npz: is wrong"}, Outcome.UNCLEAR),
        ({"stderr": MESSAGE + "\n" + MESSAGE}, Outcome.UNCLEAR),
        ({"stderr": MESSAGE + "\x1b[31m"}, Outcome.UNCLEAR),
        ({"status": 0, "stdout": "\x1b[31m"}, Outcome.UNCLEAR),
    ],
)
def test_outcomes_are_told_apart(changes: dict[str, object], expected: Outcome) -> None:
    outcome, _ = classify(replace(ENDED, **changes), ["graph.npz"], memory_bytes=2**30)
    assert outcome == expected
