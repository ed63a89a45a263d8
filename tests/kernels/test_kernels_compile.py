"""Every kernel compiles for a GPU; the interpreter accepts more than the compiler."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
KERNELS = TESTS.parent / "nfgnn" / "kernels"


def test_every_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    # LLVM's optimizer takes a quarter of the time, and refuses nothing.
    environment["DISABLE_LLVM_OPT"] = "1"
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    run = subprocess.run(
        [sys.executable, TESTS / "helpers" / "compile_for_gpu.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    kernels = {
        f"nfgnn.kernels.{path.stem}.{name}"
        for path in KERNELS.glob("*.py")
        for name in re.findall(r"^def (_\w+_kernel)\(", path.read_text(), re.MULTILINE)
    }
    assert len(kernels) >= 10
    assert set(run.stdout.split()) == kernels
