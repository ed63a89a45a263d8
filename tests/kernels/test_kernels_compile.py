"""Every kernel compiles for a GPU, as it is launched; the interpreter alone would take what the compiler refuses."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_every_kernel_compiles_for_a_gpu(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, HERE.parent / "helpers" / "compile_for_gpu.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    kernels = {
        f"{'.'.join(path.relative_to(HERE.parent).with_suffix('').parts)}.{name}"
        for path in (HERE.parent / "nfgnn").rglob("*triton*.py")
        for name in re.findall(r"^def (_\w+_kernel)\(", path.read_text(), re.MULTILINE)
    }
    assert set(run.stdout.split()) == kernels
