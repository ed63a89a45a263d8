"""Run commands of ``nfgnn`` one after the other in one process, so that torch is imported once.

Every line of standard input is a JSON list, the arguments of one command. The answer is one line
on the original standard output: a JSON object with ``status`` and ``stdout``. What a command
prints on standard error goes to this process' own. In an argument, ``RSS+16MB`` stands for the
memory that this process holds at that moment, and 16 MB more. Figures of runs are left empty.
"""

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.empty_figures import write_empty_figures


def resident_megabytes() -> int:
    """Memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 10**6


def with_memory(argument: str) -> str:
    """The argument with ``RSS+16MB`` replaced by a size."""
    match = re.fullmatch(r"RSS\+(\d+)MB", argument)
    if match is None:
        return argument
    return f"{resident_megabytes() + int(match[1])}MB"


def run(arguments: list[str]) -> dict[str, object]:
    """One command, as the console script runs it."""
    from nfgnn.cli import main

    sys.argv = ["nfgnn", *(with_memory(argument) for argument in arguments)]
    output = io.StringIO()
    status = 0
    try:
        with contextlib.redirect_stdout(output):
            main()
    except SystemExit as stop:
        status = int(stop.code or 0)
    return {"status": status, "stdout": output.getvalue()}


if __name__ == "__main__":
    write_empty_figures(pytest.MonkeyPatch())
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
    os._exit(0)  # nothing is left to write, and to take torch down takes seconds
