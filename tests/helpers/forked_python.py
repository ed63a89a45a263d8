"""Python processes that start at once.

They are forks of a server that has imported nfgnn. A new interpreter would import torch and PyG
again, which takes four seconds of CPU time.
"""

import os
import runpy
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from nfgnn.training.executors.process_pool import worker_context

_NOWHERE = Path(os.devnull)


def start_python(*arguments: str, output: Path = _NOWHERE) -> BaseProcess:
    """Start ``python ARGUMENTS`` on one thread, with this environment and working directory.

    Args:
        arguments: ``-m`` and a module, or a file, and its arguments.
        output: file for standard output and standard error.
    """
    values = (arguments, Path.cwd(), dict(os.environ), output)
    process = worker_context().Process(target=_run, args=values)
    process.start()
    return process


def _run(
    arguments: tuple[str, ...], folder: Path, environment: dict[str, str], output: Path
) -> None:
    # The server has the environment of its own start.
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    torch.set_num_threads(1)
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        runpy.run_path(arguments[0], run_name="__main__")
