"""The fuzzer finds no bug in a few cases, and would find one."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CASES = 120


def test_no_case_fails() -> None:
    # A process of its own: it forks, which a process with threads must not do.
    command = [sys.executable, "-m", "tests.fuzz", "--cases", str(CASES), "--seed", "1"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{CASES} cases" in done.stdout
