"""Compare loading and training times of two checkouts of this repository, on one CPU thread.

    python benchmarks/compare_checkouts.py ../old . --rounds 9

Each round starts one process for each checkout in turn, so that a change in the load of the machine
reaches both. A process measures its own CPU time, which other processes disturb less than the clock
does. The first process of each checkout fills its caches and does not count. The table shows
medians over the rounds, and the median of the ratios within a round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURE = """
import json, sys, time
from pathlib import Path
from nfgnn import load_dataset, split
from nfgnn.data import FeatureScaling
import torch
from nfgnn.store import MemorySource, Settings, Store, precompute
from nfgnn.training import RunConfig, fit

scratch = Path(sys.argv[1])
times = {}


def timed(name, function, repeat):
    start = time.process_time()
    for _ in range(repeat):
        result = function()
    times[name] = (time.process_time() - start) / repeat
    return result


load_dataset("karate")
for name in ("cora", "squirrel", "computers"):
    timed(f"load {name}", lambda: load_dataset(name), 5)
for name, epochs in (("texas", 300), ("cora", 100)):
    data = split(load_dataset(name), "full", 0)
    data.x = FeatureScaling.fit(data.x, "row").apply(data.x)
    settings = {"epochs": epochs, "patience": epochs}
    config = RunConfig.resolve("NFGNN", settings, None, None, "none")
    torch.manual_seed(0)
    model = config.build(data.num_features, data.num_classes)
    timed(f"train {name}, {epochs} epochs", lambda: fit(model, data, config.training), 1)
store = scratch / "store"
if not store.exists():
    precompute(MemorySource(load_dataset("cora")), store, Settings())
timed("open a store of cora", lambda: Store.open(store), 20)
print(json.dumps(times))
"""


def measure(checkout: Path, scratch: Path) -> dict[str, float]:
    """Run the measurements in a process that imports the package of ``checkout``."""
    scratch.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(scratch / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(scratch)],
        cwd=scratch,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    checkouts = (arguments.old.resolve(), arguments.new.resolve())
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        scratches = (Path(folder) / "old", Path(folder) / "new")
        for checkout, scratch in zip(checkouts, scratches, strict=True):
            measure(checkout, scratch)
        for number in range(arguments.rounds):
            # The order changes from round to round: the first process may find a busier machine.
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {index: measure(checkouts[index], scratches[index]) for index in order}
            rounds.append((found[0], found[1]))
    print("| CPU time, ms | old | new | new / old |\n|---|---:|---:|---:|")
    for name in rounds[0][0]:
        old = statistics.median(first[name] for first, _ in rounds) * 1e3
        new = statistics.median(second[name] for _, second in rounds) * 1e3
        ratio = statistics.median(second[name] / first[name] for first, second in rounds)
        print(f"| {name} | {old:.2f} | {new:.2f} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
