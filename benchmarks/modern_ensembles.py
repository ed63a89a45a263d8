"""Ensembles of ten runs on the newer benchmarks, compared with their members.

    python benchmarks/modern_ensembles.py runs/ensembles tolokers:ResidualGCN --time-limit 500
    python benchmarks/modern_ensembles.py runs/ensembles --table results

The first command trains ten runs of a configuration on every official split. They differ in their
seeds only. The configuration is the one of the table `modern`, or with `--random-search results`
the winner of `modern_random_search.py`. Validation scores selected both. The probabilities of the
ten runs are averaged with equal weights, so nothing is selected here. The command starts no split
that may exceed the time limit, and resumes from the files in the folder.

The second command adds the results of the folder to `modern-ensembles.csv`, and writes
`modern-ensembles.md` from all of them.
"""

import argparse
import csv
import io
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_type_hints

from torch import Tensor
from torch_geometric.data import Data

from nfgnn.auto import fit_seed_ensemble
from nfgnn.data import REGISTRY
from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.paper.find_graph import find_graph
from nfgnn.paper.table_plan import make_plan
from nfgnn.training import (
    RunConfig,
    RunSpec,
    device_name,
    machine_name,
    open_records,
    summarise,
)

SPLITS = range(1000, 1010)
"""Seeds of the table; each stands for one of the ten official splits."""
FIRST_MEMBER_SEED = 3000
MEMBERS = 10
NAME = "modern-ensembles"
COLUMNS = ("member_val", "val", "member_test", "test")
COMMAND = "python benchmarks/modern_ensembles.py FOLDER GRAPH:MODEL"


@dataclass(frozen=True)
class SplitResult:
    """An ensemble on one split. Scores are shares, not percent."""

    graph: str
    model: str
    metric: str
    split: int
    val: float
    test: float
    member_val: float
    """Mean over the members."""
    member_test: float
    members: int
    seconds: float
    device: str


def train_split(spec: RunSpec, name: str, device: str) -> SplitResult:
    """Train the members on one split and score them and their mean.

    Args:
        spec: the split and the configuration.
        name: what the table calls the model.
        device: where to train.
    """
    started = time.perf_counter()
    data = spec.split()
    first = FIRST_MEMBER_SEED + MEMBERS * (spec.seed - SPLITS[0])
    ensemble = fit_seed_ensemble(spec.config, data, range(first, first + MEMBERS), device)
    predictions = [member.classifier.predict_proba(data) for member in ensemble.members]
    mean = ensemble.predict_proba(data)
    scores = {}
    for part in ("val", "test"):
        mask = data[f"{part}_mask"]
        of_members = [score(spec, data, member, mask) for member in predictions]
        scores[part] = score(spec, data, mean, mask)
        scores[f"member_{part}"] = sum(of_members) / len(of_members)
    return SplitResult(
        graph=spec.graph.source,
        model=name,
        metric=spec.metric.name,
        split=spec.seed,
        members=len(predictions),
        seconds=time.perf_counter() - started,
        device=f"{device_name(device)} ({machine_name()})",
        **scores,
    )


def score(spec: RunSpec, data: Data, probabilities: Tensor, mask: Tensor) -> float:
    classes = probabilities.size(1)
    return spec.metric.compute(probabilities[mask], data.y[mask].cpu(), classes)


def selected_config(graph: str, model: str, random_search: Path | None) -> tuple[str, RunConfig]:
    """Return the protocol and the configuration that was selected.

    Args:
        graph, model: the cell.
        random_search: folder with the records of `modern_random_search.py`; by default, the
            configuration is that of the table `modern`.
    """
    if random_search is not None:
        with open_records(random_search / "modern-random-search.sqlite") as records:
            for run in records.all():
                cell = (run.dataset, run.config["model"], run.seed)
                if cell == (graph, model, SPLITS[0]):
                    return run.protocol, RunConfig.from_dict(run.config)
        raise UserError(f"the random search has no winner of {model} on {graph}")
    plan = make_plan("modern", [graph], [model])
    if not plan.configs:
        raise UserError(f"{model} was not searched on {graph}")
    ((_, column),) = plan.configs
    (config,) = plan.configs.values()
    return column.protocol, config


def train_cell(graph: str, model: str, options: argparse.Namespace, end: float) -> None:
    """Train the missing splits of a model on a graph until the time is over."""
    protocol, config = selected_config(graph, model, options.random_search)
    name = model
    file = options.folder / f"{graph}-{model}.jsonl"
    if options.random_search is not None:
        name = f"{model} (random search)"
        file = options.folder / f"{graph}-{model}-random-search.jsonl"
    done = {result.split: result for result in read_results([file])}
    longest = max((result.seconds for result in done.values()), default=0.0)
    for seed in SPLITS:
        if seed in done:
            continue
        if time.monotonic() + 1.2 * longest > end:
            print(f"{graph} {model}: time is over before split {seed - SPLITS[0]}", flush=True)
            return
        spec = RunSpec(find_graph(graph, options.root), protocol, seed, config)
        result = train_split(spec, name, options.device)
        longest = max(longest, result.seconds)
        add_line(file, json.dumps(asdict(result)))
        print(
            f"{graph} {name} split {seed - SPLITS[0]}: members {100 * result.member_test:.2f}, "
            f"ensemble {100 * result.test:.2f}, {result.seconds:.0f} s",
            flush=True,
        )


def add_line(file: Path, line: str) -> None:
    """Append a line to a file. A line that a killed process left unfinished stays alone."""
    before = file.read_bytes() if file.exists() else b""
    start = "" if not before or before.endswith(b"\n") else "\n"
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{start}{line}\n")


def read_results(files: Sequence[Path]) -> list[SplitResult]:
    """Read the lines of all files. A line that a killed process left unfinished is skipped."""
    results = []
    for file in files:
        if not file.exists():
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                results.append(SplitResult(**json.loads(line)))
            except (ValueError, TypeError):
                continue
    return results


def read_table(file: Path) -> list[SplitResult]:
    """Read the results that an earlier call has written."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    kinds = get_type_hints(SplitResult)
    return [SplitResult(**{key: kind(row[key]) for key, kind in kinds.items()}) for row in rows]


def write_table(results: Sequence[SplitResult], folder: Path) -> None:
    """Write the table with these results and those that the folder has."""
    merged = {
        (result.graph, result.model, result.split): result
        for result in [*read_table(folder / f"{NAME}.csv"), *results]
    }
    results = list(merged.values())
    text = io.StringIO()
    writer = csv.DictWriter(text, list(SplitResult.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(result) for result in results)
    atomic_write(folder / f"{NAME}.csv", text.getvalue())
    atomic_write(folder / f"{NAME}.md", page(results))


def page(results: Sequence[SplitResult]) -> str:
    cells: dict[tuple[str, str], list[SplitResult]] = {}
    for result in results:
        cells.setdefault((result.graph, result.model), []).append(result)
    rows = []
    for (graph, model), found in sorted(cells.items()):
        title = f"{REGISTRY[graph].title} ({found[0].metric})"
        values = [interval([getattr(r, name) for r in found]) for name in COLUMNS]
        rows.append(f"| {title} | {model} | {' | '.join(values)} | {len(found)} |")
    lines = [
        "# Ensembles of ten runs on the newer benchmarks",
        "",
        "Ten runs per official split differ in their seeds only. Their probabilities are averaged",
        "with equal weights. The settings are those of `modern.md`, or of",
        "`modern-random-search.md` where the table says so. Validation scores of single runs",
        "selected both. Scores are in %, mean ± half-width of the 95 % interval over the splits.",
        "An ensemble is ten networks: compare it with other ensembles, not with a single network.",
        "",
        "| graph | model | mean member, validation | ensemble, validation | mean member, test "
        "| ensemble, test | splits |",
        "|---|---|---:|---:|---:|---:|---:|",
        *rows,
        "",
        "## How it was made",
        "",
        f"- Command: `{COMMAND}`, for a random search with `--random-search results`",
        f"- Seeds: splits {SPLITS[0]} to {SPLITS[-1]}, members from {FIRST_MEMBER_SEED} on",
    ]
    for device in sorted({result.device for result in results}):
        seconds = [result.seconds for result in results if result.device == device]
        lines.append(f"- {device}: {len(seconds)} ensembles, {sum(seconds) / 60:.0f} min")
    return "\n".join(lines) + "\n"


def interval(values: Sequence[float]) -> str:
    summary = summarise([100 * value for value in values])
    if summary["ci95"] is None:
        return f"{summary['mean']:.2f}"
    return f"{summary['mean']:.2f} ± {summary['ci95']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the results")
    parser.add_argument("cells", nargs="*", metavar="GRAPH:MODEL")
    parser.add_argument("--root", type=Path, help="folder of the graphs")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--time-limit", type=float, default=math.inf, help="seconds")
    parser.add_argument("--table", type=Path, metavar="RESULTS", help="write the table here")
    parser.add_argument(
        "--random-search",
        type=Path,
        metavar="RESULTS",
        help="take the winners of modern_random_search.py from this folder",
    )
    options = parser.parse_intermixed_args()
    end = time.monotonic() + options.time_limit
    if options.table is not None:
        write_table(read_results(sorted(options.folder.glob("*.jsonl"))), options.table)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    for cell in options.cells:
        graph, _, model = cell.partition(":")
        try:
            train_cell(graph, model, options, end)
        except UserError as error:
            sys.exit(f"modern_ensembles: {error}")


if __name__ == "__main__":
    main()
