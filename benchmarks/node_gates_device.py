"""Make runs of the study of node gates without the command line.

    python benchmarks/node_gates_device.py minesweeper tolokers --out results --time-limit 1500

Runs are kept in ``OUT/node_gates.sqlite``. Several processes, each with graphs of its own, may
share this folder and the GPU. A process resumes from the records, takes up
``OUT/node_gates.parquet`` if it is there, and writes that file anew after every graph, with the
runs of all processes. A graph that fails does not stop the others.
``nfgnn reproduce node-gates --from-records`` makes the tables from it.
"""

import argparse
import time
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.paper.studies.node_gate_plan import GRAPHS
from nfgnn.paper.studies.node_gate_report import NAME
from nfgnn.paper.studies.node_gate_runs import run_node_gate_study
from nfgnn.progress import Progress
from nfgnn.training import export_records, open_records


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="+", metavar="GRAPH", help=", ".join(GRAPHS))
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--root", type=Path, help="folder of raw datasets")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--gates", nargs="+", help="gates to compare; all of them by default")
    parser.add_argument("--time-limit", type=float, help="seconds after which nothing is started")
    arguments = parser.parse_args()
    started = time.monotonic()
    with open_records(arguments.out / f"{NAME}.sqlite") as records, Progress(NAME) as progress:
        for graph in arguments.graphs:
            left = None
            if arguments.time_limit is not None:
                left = arguments.time_limit - (time.monotonic() - started)
            try:
                unfinished = run_node_gate_study(
                    [graph],
                    arguments.device,
                    records,
                    left,
                    arguments.root,
                    progress,
                    arguments.gates,
                )
            except UserError as error:
                unfinished = [f"{graph}: {error}"]
            export_records(records, arguments.out / f"{NAME}.parquet")
            for line in unfinished or [f"{graph}: complete"]:
                progress.say(line)


if __name__ == "__main__":
    main()
