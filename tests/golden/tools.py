"""What the writer and the test of the golden files share: commands, summaries, comparison."""

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nfgnn

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]

DROPPED = {"seconds", "epoch_ms", "run", "root", "stages", "files", "store", "commands"}
"""Keys of a command's JSON that are times or paths."""
EXACT_MACHINE_ONLY = {"sha256", "epochs", "best_epoch"}
"""Keys that rounding may change: they are compared only on the machine of the golden files."""


def machine() -> str:
    """What decides the bits of a result: the processor, its vector instructions, and torch."""
    model = "unknown processor"
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


class Shell:
    """A process that runs commands of ``nfgnn`` on one thread, without a GPU.

    Args:
        folder: the working directory of the commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        place = str(Path(nfgnn.__file__).parents[1])
        paths = [place, os.environ.get("PYTHONPATH", "")]
        environment = dict(os.environ)
        environment.pop("NFGNN_DATA", None)
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        environment["XDG_CACHE_HOME"] = str(folder / "no-cache")
        environment["COLUMNS"] = "100"
        environment["CUDA_VISIBLE_DEVICES"] = ""
        environment["OMP_NUM_THREADS"] = "1"
        environment["MKL_NUM_THREADS"] = "1"
        self.errors = (folder / "stderr.txt").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "server.py")],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def status(self, *arguments: str) -> tuple[int, str]:
        """Exit status and standard output of a command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"nfgnn {' '.join(arguments)} ended the process: {self.said()}")
        result = json.loads(answer)
        return result["status"], result["stdout"]

    def run(self, *arguments: str) -> str:
        """Standard output of a command that must succeed."""
        status, output = self.status(*arguments)
        if status != 0:
            raise RuntimeError(f"nfgnn {' '.join(arguments)}: status {status}: {self.said()}")
        return output

    def json(self, *arguments: str) -> dict[str, Any]:
        """The JSON object of a command, without times and paths."""
        return without(json.loads(self.run(*arguments, "--json")), DROPPED)

    def said(self) -> str:
        """The end of standard error."""
        return (self.folder / "stderr.txt").read_text(encoding="utf-8")[-2000:]

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def without(value: Any, names: set[str]) -> Any:
    """A JSON value less these keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(part, names) for key, part in value.items() if key not in names}
    if isinstance(value, list):
        return [without(part, names) for part in value]
    return value


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def summary(array: np.ndarray) -> dict[str, Any]:
    """Checksum of an array, and numbers for a machine that rounds in another way."""
    array = np.ascontiguousarray(array)
    numbers = array.astype(np.float64)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": digest(array.tobytes()),
        "mean": float(numbers.mean()),
        "std": float(numbers.std()),
        "first": numbers.reshape(-1)[:4].tolist(),
    }


def _tolerance(path: tuple[str, ...]) -> float:
    """How far a float may be from the recorded one on another machine."""
    if "config" in path:
        return 0.0  # what was asked for, not what came out
    # Rounding errors grow over hundreds of epochs, and a test node of Texas is 1.6 points.
    is_long = "long" in path or "records" in path
    if any("accuracy" in part for part in path):
        if path[-1] == "ci95":
            return 0.15
        return 0.1 if is_long else 0.03
    if is_long:
        return 0.1
    if "store" in path:
        return 1e-4
    return 1e-3


def differences(expected: Any, found: Any, exact: bool, path: tuple[str, ...] = ()) -> list[str]:
    """Where a value is not the recorded one: a line for every place.

    Args:
        expected: the recorded JSON value.
        found: the value of now.
        exact: compare floats with ``==``; else with a tolerance, and checksums not at all.
        path: keys that lead here.
    """
    place = "/".join(path)
    if isinstance(expected, dict) and isinstance(found, dict):
        if set(expected) != set(found):
            missing = sorted(set(expected) - set(found))
            added = sorted(set(found) - set(expected))
            return [f"{place}: keys missing {missing}, new {added}"]
        lines: list[str] = []
        for key, part in expected.items():
            if exact or key not in EXACT_MACHINE_ONLY or "config" in path:
                lines += differences(part, found[key], exact, (*path, key))
        return lines
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return [f"{place}: {len(expected)} values expected, {len(found)} found"]
        lines = []
        for number, (one, other) in enumerate(zip(expected, found)):
            lines += differences(one, other, exact, (*path, str(number)))
        return lines
    if not exact and {type(expected), type(found)} == {int, float}:
        expected, found = float(expected), float(found)  # a CSV file writes 1 for 1.0
    if type(expected) is not type(found):
        return [f"{place}: {expected!r} expected, {found!r} found"]
    if isinstance(expected, float) and not exact:
        limit = _tolerance(path)
        if math.isclose(expected, found, rel_tol=limit, abs_tol=limit):
            return []
    elif expected == found or (expected != expected and found != found):  # both may be NaN
        return []
    return [f"{place}: {expected!r} expected, {found!r} found"]


def read_golden(name: str) -> dict[str, Any]:
    """A golden file: ``machine`` and ``values``."""
    content: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return content


def write_golden(name: str, values: Any) -> None:
    """Write a golden file, one line per top-level value."""
    lines = [f"{json.dumps(key)}: {json.dumps(part)}" for key, part in values.items()]
    text = f'{{"machine": {json.dumps(machine())}, "values": {{\n' + ",\n".join(lines) + "\n}}\n"
    (HERE / f"{name}.json").write_text(text, encoding="utf-8")
