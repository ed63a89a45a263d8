"""What this process holds of memory, and how to make it give back what it no longer needs."""

import ctypes
import os
import resource
import sys
from pathlib import Path

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def resident_bytes() -> int:
    """Memory that this process holds now; its peak where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )


def return_freed_memory() -> None:
    """Let large arrays go back to the system as soon as they are freed.

    By default glibc raises the size from which it does so with every such array, up to 32 MB; buffers below it then
    stay with the process, a quarter of a gigabyte in the end. Arrow's own allocator keeps as much; the C library's
    serves it instead.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_M_MMAP_THRESHOLD, 2**20)
            library.mallopt(_M_TRIM_THRESHOLD, 2**20)
