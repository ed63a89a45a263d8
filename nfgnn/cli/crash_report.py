"""The report of an unexpected error, which a user can attach to an issue."""

import os
import platform
import shlex
import sys
import tempfile
import traceback
from importlib import metadata

_PACKAGES = (
    "nfgnn",
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "scikit-learn",
    "pyarrow",
    "matplotlib",
    "safetensors",
    "typer",
    "rich",
)


def write_crash_report(error: BaseException) -> str | None:
    """Write traceback, command line and versions to a file in the temporary folder.

    Returns:
        Its path, or ``None`` if it could not be written.
    """
    text = "\n".join(
        [
            f"command: {shlex.join(sys.argv)}",
            f"folder: {os.getcwd()}",  # noqa: PTH109
            f"python: {platform.python_version()} on {platform.platform()}",
            *(f"{package}: {_version(package)}" for package in _PACKAGES),
            "",
            *traceback.format_exception(error),
        ]
    )
    try:
        # mkstemp makes the file readable for its owner only: it holds paths.
        handle, path = tempfile.mkstemp(prefix="nfgnn-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return path


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
