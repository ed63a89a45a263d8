"""Compare the memory that an input declares to need with the memory that is available.

A file of a few bytes can declare an array of any size. Readers compare before they allocate.
"""

import math
import os
import resource
from pathlib import Path

from nfgnn.errors import UserError

_SMALL = 2**28  # bytes that are never compared, because looking up the available memory takes time
_CGROUP = Path("/sys/fs/cgroup")


def require_memory(num_bytes: int, where: str) -> None:
    """Refuse an input that needs more memory than is available.

    Args:
        num_bytes: an estimate of the memory that reading the input takes.
        where: the place that the error message names.
    """
    if num_bytes < _SMALL:
        return
    available = available_memory()
    if num_bytes > available:
        raise UserError(
            f"{where}: needs about {num_bytes / 2**30:,.1f} GiB of memory, but only "
            f"{available / 2**30:,.1f} GiB are available; check the sizes that the file declares, "
            "or use a machine with more memory."
        )


def available_memory() -> float:
    """Return the bytes that this process can still allocate, infinity if that is unknown."""
    return min(_of_machine(), _of_container(), _of_process())


def _of_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    try:  # macOS has no /proc
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return math.inf


def _of_process() -> float:
    """Return how much memory the limit set by ``ulimit -v`` leaves."""
    try:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, AttributeError):
        return math.inf
    return math.inf if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _of_container() -> float:
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return math.inf
    return math.inf if limit == "max" else max(0, int(limit) - used)
