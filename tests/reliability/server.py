"""Run commands of nfgnn in forked processes, with a fault at one of their file events.

Started by :class:`reliability.harness.Server` with ``file_events.c`` preloaded. Everything is
imported once, so that a run takes a fraction of a second. Reads one job per line of standard input
and answers with one line on standard output, both JSON.
"""

import contextlib
import ctypes
import json
import math
import os
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import matplotlib.pyplot
import optuna
import pyarrow.csv
import pyarrow.parquet
import torch

import nfgnn.explain
import nfgnn.paper
import nfgnn.store
import nfgnn.training.minibatch
from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.cli import main
from nfgnn.errors import UserError
from nfgnn.serving import PredictionServer

_MODULES = (matplotlib.pyplot, optuna, pyarrow.csv, pyarrow.parquet, nfgnn.explain, nfgnn.paper)
_EVENTS = ctypes.CDLL(None)
_EVENTS.faults_last.restype = ctypes.c_char_p
_NEW_ACCOUNT = {
    "nodes": [{"features": [0.5, -1.25, 3], "neighbours": ["acc-03", "acc-17"], "weights": [1, 2]}]
}


def save_model(folder: str) -> None:
    """Fit a small model and save it, as a script would."""
    data = split(load_dataset("karate"), "stratified", 0)
    clf = NodeClassifier("MLP", seed=1, device="cpu", epochs=3).fit(data)
    clf.save(folder, overwrite=True)


def answer_one_request(server: PredictionServer) -> None:
    """Answer a request, keep the answer in a file, and end like a server that is interrupted."""
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(_request, server.server_port)
        server.handle_request()
        status, body = found.result()
    _EVENTS.faults_disarm()
    if status != HTTPStatus.OK:
        raise UserError(json.loads(body)["error"])
    Path("answer.json").write_bytes(body)
    raise KeyboardInterrupt


def _request(port: int) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/predict", json.dumps(_NEW_ACCOUNT))
    answer = connection.getresponse()
    return answer.status, answer.read()


def work(job: dict[str, Any]) -> None:
    """Run the command of a job in this process, which was forked for it."""
    os.chdir(job["folder"])
    with Path(job["output"]).open("wb") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    sys.stdout = sys.__stdout__
    sys.stderr = sys.__stderr__
    sys.argv = ["nfgnn", *job["command"]]
    _EVENTS.faults_arm(
        job["folder"].encode(),
        job["at"],
        job["error"],
        job["lasting"],
        job["deletes"],
        job["reads"],
    )
    status = 0
    try:
        if job["command"][0] == "save":
            save_model(job["command"][1])
        else:
            main()
    except SystemExit as stop:
        status = int(stop.code or 0)
    except ValueError as error:  # the UserError of a script
        print(f"nfgnn: {error}", file=sys.stderr)
        status = 2
    except OSError as error:  # an ordinary exception in Python
        print(f"nfgnn: {error!r}", file=sys.stderr)
        status = 2
    _EVENTS.faults_disarm()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def wait_for(child: int, limit: float) -> int | None:
    """Return the wait status of a process; kill it and return ``None`` after ``limit`` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def warm_up(commands: list[list[str]]) -> None:
    """Run commands in this process, so that those that it forks need not import or cache again."""
    streams = sys.stdout, sys.stderr
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere:
        os.chdir(folder)
        sys.stdout = sys.stderr = nowhere
        for command in commands:
            sys.argv = ["nfgnn", *command]
            with contextlib.suppress(SystemExit):
                main()
        os.chdir(here)
    sys.stdout, sys.stderr = streams


def serve() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    warm_up(json.loads(sys.stdin.readline()))
    PredictionServer.serve_forever = answer_one_request  # type: ignore[method-assign, assignment]
    # Checkpoints are written at every chance, so that kills find them.
    nfgnn.training.minibatch._CHECKPOINT_SHARE = math.inf
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            work(job)
        if job["kill_after"] is not None:
            time.sleep(job["kill_after"])
            os.kill(child, signal.SIGKILL)
        status = wait_for(child, job["limit"])
        answer = {
            "status": None if status is None else os.waitstatus_to_exitcode(status),
            "events": _EVENTS.faults_events(),
            "failed": _EVENTS.faults_last().decode(),
            "output": Path(job["output"]).read_text(errors="replace"),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
