"""Read and verify run folders (:mod:`nfgnn.training.records.run_folder`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nfgnn.checksums import SUMS, damaged_files, read_checksums, refuse_damaged_files
from nfgnn.data import PROTOCOLS
from nfgnn.errors import UserError
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.metrics import find_metric
from nfgnn.training.records.run_folder_layout import (
    REMEDY,
    describes,
    json_object_or_empty,
    read_json,
)


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a finished run folder, with its path under ``run``."""
    path = folder / "summary.json"
    if not path.is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no summary.json (nfgnn train writes one)"
        )
    summary = read_json(path)
    missing = {"seeds", "config", "val_accuracy"} - summary.keys()
    if missing:
        raise UserError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}; {REMEDY}")
    if not _has_scores(summary):
        raise UserError(f"{path} is damaged: its seeds do not match its scores; {REMEDY}")
    return {**summary, "run": str(folder)}


def _has_scores(summary: Mapping[str, Any]) -> bool:
    """Whether a summary has a validation score for every seed."""
    seeds = summary["seeds"]
    metric = summary.get("metric", "accuracy")
    if not isinstance(seeds, list) or not isinstance(metric, str):
        return False
    scores = summary.get(f"val_{metric}")
    values = scores.get("values") if isinstance(scores, dict) else None
    if not isinstance(values, list) or len(values) != len(seeds):
        return False
    numbers = all(isinstance(value, int | float) for value in values)
    return numbers and all(isinstance(seed, int) for seed in seeds)


def read_description(folder: Path) -> dict[str, Any]:
    """Return what decides the numbers of a run folder: its ``config.json``."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no config.json (nfgnn train writes one)"
        )
    description = read_json(path)
    protocol = description.get("protocol", "full")
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise UserError(f"{path}: unknown protocol {protocol!r}; {REMEDY}")
    if not isinstance(description.get("fingerprint"), str):
        raise UserError(f"{path}: has no fingerprint of the graph; {REMEDY}")
    return description


def read_report(folder: Path) -> dict[str, Any] | None:
    """Return the report per class of a run folder; those of earlier versions have none."""
    path = folder / "report.json"
    return read_json(path) if path.is_file() else None


def best_seed(summary: Mapping[str, Any], seeds: Sequence[int]) -> int:
    """Return the seed of best validation score by the metric of the run.

    Args:
        summary: of :func:`read_summary`. Earlier versions have no metric: it was accuracy.
        seeds: the seeds to choose from.
    """
    metric = find_metric(summary.get("metric", "accuracy"))
    values = dict(zip(summary["seeds"], summary[f"val_{metric.name}"]["values"]))
    select = max if metric.greater_is_better else min
    return select(seeds, key=values.__getitem__)


def load_run(folder: Path, seed: int | None = None, device: str = "auto") -> NodeClassifier:
    """Load the classifier of one seed; by default the one of best validation score.

    The files that are read are compared with their checksums.
    """
    summary = read_summary(folder)
    if has_checksums(folder):
        refuse_damaged_files(folder, ["config.json", "summary.json"], REMEDY)
    seeds = summary["seeds"]
    if seed is None:
        seed = best_seed(summary, seeds)
    if seed not in seeds:
        raise UserError(f"{folder} has no seed {seed}: it has {', '.join(map(str, seeds))}")
    return NodeClassifier.load(folder / f"seed-{seed}", device)


def holds_finished_runs(folder: Path, description: Mapping[str, Any]) -> bool:
    """Whether a folder holds all runs of this description; refuse one with damaged files."""
    if not (folder / "summary.json").is_file() or not describes(folder, description):
        return False
    for part in (folder, *folder.glob("seed-*[0-9]")):
        if has_checksums(part):
            names = read_checksums(part)
            refuse_damaged_files(part, names, "train the runs again with --overwrite")
    return True


def verify_run(folder: Path) -> tuple[int, dict[str, str]]:
    """Verify a run folder, or the folder of one model.

    Returns:
        How many files have a checksum, and what is wrong, by the name of the file.
    """
    if (folder / "classifier.json").is_file():
        return _verify_folder(folder)
    count, damaged = _verify_folder(folder)
    seeds = [] if "summary.json" in damaged else read_summary(folder)["seeds"]
    names = {f"seed-{seed}" for seed in seeds}
    for pattern in ("seed-*", "ensemble", "ensemble/member-*"):
        names |= {str(path.relative_to(folder)) for path in folder.glob(pattern) if path.is_dir()}
    for name in sorted(names):
        if not (folder / name).is_dir():
            damaged[name] = "is missing"
            continue
        more, wrong = _verify_folder(folder / name)
        count += more
        damaged |= {f"{name}/{file}": problem for file, problem in wrong.items()}
    return count, damaged


def _verify_folder(folder: Path) -> tuple[int, dict[str, str]]:
    """Verify the files of one folder; without checksums, that a model can be loaded from it."""
    count = 0
    damaged = {}
    if has_checksums(folder):
        damaged = damaged_files(folder)
        count = 0 if SUMS in damaged else len(read_checksums(folder))
    if not damaged and (folder / "classifier.json").is_file():
        try:
            NodeClassifier.load(folder, "cpu")
        except UserError as error:
            damaged["weights.safetensors"] = str(error)
    return count, damaged


def has_checksums(folder: Path) -> bool:
    """Whether a folder has checksums, or had them before it was damaged."""
    return (folder / SUMS).exists() or any(
        "kind" in json_object_or_empty(folder / name) for name in ("config.json", "classifier.json")
    )
