"""Run one case in a forked process with bounded time, memory and file size.

Importing torch takes seconds. The parent imports everything once, and every case is a fork of it.
"""

# ruff: noqa: F401 - the commands import these modules when they need them.

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import optuna
import sklearn.metrics
import torch_geometric.datasets

import nfgnn.explain
import nfgnn.paper.studies.mixed_patterns
from nfgnn.errors import UserError

from .outcomes import Ended
from .place import Place

MEMORY_BYTES = 3 * 2**29
"""That a case may allocate in addition to what the parent has."""
_CPU_SECONDS = 40
_WALL_SECONDS = 150  # for a process that waits without using the CPU
_FILE_BYTES = 2**30
_CAPABILITY_VERSION = 0x20080522
_OVERRIDE = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_UNEXPECTED = 70  # status of a Python call that raised something else than UserError


def run_forked(
    call: Callable[[], Any],
    place: Place,
    unprivileged: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a call in a child process and describe how it ended.

    Args:
        call: returns a list of problems, and a value to compare.
        place: the folders of the case.
        unprivileged: whether to give up the permissions of root.
        environment: environment variables of the case.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = _UNEXPECTED
        try:
            _enter(place, unprivileged, environment or {})
            status = _report(call, place)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
    return _wait(child, place)


def _enter(place: Place, unprivileged: bool, environment: Mapping[str, str]) -> None:
    """Let this process see nothing but the folders of the case."""
    os.setsid()
    os.chdir(place.out)
    os.environ |= {
        "HOME": str(place.folder / "home"),
        "XDG_CACHE_HOME": str(place.cache),
        "TMPDIR": str(place.temporary),
        "COLUMNS": "200",
    }
    os.environ.pop("NFGNN_DATA", None)
    os.environ |= environment
    tempfile.tempdir = None
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bounds = {
        resource.RLIMIT_AS: used + MEMORY_BYTES,
        resource.RLIMIT_CPU: _CPU_SECONDS,
        resource.RLIMIT_FSIZE: _FILE_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, bound in bounds.items():
        resource.setrlimit(kind, (bound, bound))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for path, descriptor in ((os.devnull, 0), (place.stdout, 1), (place.stderr, 2)):
        flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(path, flags), descriptor)
    socket.socket.connect = _no_network
    if unprivileged and os.geteuid() == 0:
        _respect_permissions()


def _respect_permissions() -> None:
    """Give up the capabilities of root that override the permissions of files (Linux)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice 32 bits
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    sets[0] &= ~_OVERRIDE
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


def _no_network(*arguments: object) -> None:
    raise OSError(101, "Network is unreachable")


def _report(call: Callable[[], Any], place: Place) -> int:
    """Make the call, write what it returns to the report, and return the exit status."""
    try:
        problems, value = call()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except UserError as error:  # of a Python function
        print(f"nfgnn: {error}", file=sys.stderr)
        return 2
    text = json.dumps({"problems": problems, "value": value})
    place.report.write_text(text)
    return 0


def _wait(child: int, place: Place) -> Ended:
    handle = os.pidfd_open(child)
    try:
        finished, _, _ = select.select([handle], [], [], _WALL_SECONDS)
    finally:
        os.close(handle)
    # Also ends processes that the child has started. Its group exists until it is waited for.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        if not finished:
            os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    crashes = sorted(place.temporary.glob("nfgnn-crash-*"))
    return Ended(
        status=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=not finished,
        peak_bytes=usage.ru_maxrss * 1024,
        stdout=_text(place.stdout),
        stderr=_text(place.stderr),
        problems=_problems(place),
        executed=place.canary.exists() or place.canary.with_name("canary.npy").exists(),
        changed=[],
        crash_report=_text(crashes[0]) if crashes else "",
    )


def _problems(place: Place) -> list[str]:
    if not place.report.is_file():
        return []
    found: list[str] = json.loads(place.report.read_text())["problems"]
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="backslashreplace") if path.is_file() else ""
