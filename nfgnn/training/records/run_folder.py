"""Run folders: several runs of one configuration, each with its fitted model.

``RUN/config.json`` describes the runs. ``RUN/seed-…/`` holds one run each (``metrics.json``,
``report.json``, ``history.csv``, ``classifier.json``, ``weights.safetensors``,
``coefficients.npy``), ``RUN/summary.json`` the mean over all runs, ``RUN/report.json`` and
``RUN/report.md`` the report per class of all runs together, ``SHA256SUMS`` in each folder the
checksums of its files. While runs are missing, the folder is called ``.RUN.partial``; every run in
it is complete.

:mod:`nfgnn.auto` adds ``auto.json``, ``auto.html``, ``best.toml`` and ``ensemble/``, which holds
one model in each folder ``member-…``.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nfgnn.checksums import (
    SUMS,
    damaged_files,
    read_checksums,
    refuse_damaged_files,
    write_checksums,
)
from nfgnn.data import PROTOCOLS
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import (
    atomic_folder,
    atomic_write,
    delete,
    empty,
    locked,
    publish,
    refuse_foreign_files,
)
from nfgnn.json_text import json_text
from nfgnn.training.class_report import (
    PredictionCounts,
    count_predictions,
    report_text,
    reported_part,
)
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.execution import Results
from nfgnn.training.metrics import find_metric, scores, summarise
from nfgnn.training.run import RunResult, RunSpec
from nfgnn.training.split_check import (
    PARTS,
    class_counts,
    class_names,
    majority_scores,
    missing_classes,
)

_DESCRIPTION_KEYS = {"dataset", "fingerprint", "protocol", "seeds", "config"}
_MARKER = {"kind": "nfgnn run folder", "format": 2}
"""Fields of ``config.json``. Folders without them were written before there were checksums."""
_CHECKPOINT = r"seed-\d+(\.restart-\d+)?\.checkpoint"
_TEMPORARY = r"\.tmp[A-Za-z0-9]{6}"  # safetensors writes to such a file before it renames it
_WRITTEN = r"\.(seed-\d+|config\.json|summary\.json|report\.\w+|run\.png)\..*\.partial"
_PARTIAL = rf"{_WRITTEN}|{_TEMPORARY}|{_CHECKPOINT}"
_NAMES = re.compile(
    rf"config\.json|summary\.json|report\.(json|md|png)|run\.png|{SUMS}|seed-\d+|{_PARTIAL}"
    r"|auto\.(json|html)|best\.toml|ensemble|\.(auto|best|SHA256SUMS)\..*\.partial"
)
_SEED_NAMES = re.compile(
    r"classifier\.json|weights\.safetensors|coefficients\.npy|history\.csv|metrics\.json"
    rf"|report\.json|{SUMS}"
)
_ENSEMBLE_NAMES = re.compile(rf"ensemble\.json|member-\d+|{SUMS}")
_PARTS = {
    "seed-*[0-9]": ("a run", _SEED_NAMES),
    "ensemble": ("an ensemble", _ENSEMBLE_NAMES),
    "ensemble/member-*[0-9]": ("a run", _SEED_NAMES),
}
"""What the folders inside a run folder hold, and the names of the files there."""
_WHAT = "a run folder"
_REMEDY = "train the run again, or restore the folder from a copy"


class RunFolder(Results):
    """Results of runs as a run folder. Use :meth:`open`.

    Args:
        folder: the final folder.
        seeds: the seeds of the runs.
    """

    def __init__(self, folder: Path, seeds: Sequence[int]) -> None:
        self.folder = folder
        self.seeds = list(seeds)
        self._staging = _staging_folder(folder)

    @classmethod
    @contextmanager
    def open(
        cls, folder: Path, description: Mapping[str, Any], resume: bool, overwrite: bool = False
    ) -> Iterator["RunFolder"]:
        """Lock the folder for writing.

        Args:
            folder: the final folder. Only a run folder is ever replaced.
            description: what decides the numbers of the runs (``config.json``).
            resume: keep the finished runs of an interrupted call with the same description.
            overwrite: replace finished or unfinished runs of another description.
        """
        if holds_run_folder(folder):
            same = _describes(folder, description)
            refuse_replacement(folder, _WHAT, ours=True, same=same, overwrite=overwrite)
        results = cls(folder, description["seeds"])
        staging = results._staging
        if (staging / "search.json").exists():
            raise UserError(
                f"{staging} holds an unfinished search of `nfgnn auto`: resume it with the same "
                "command and --resume, or choose another folder with --out"
            )
        _refuse_other_files(staging)
        # The lock ends with the process, even if it is killed, so it never has to be cleaned up.
        with locked(staging, results._busy):
            same = _describes(staging, description)
            if resume and same:
                _remove_damaged_runs(staging)
            else:
                if not same and not overwrite:
                    _refuse_unfinished_runs(staging)
                empty(staging)
                results._describe(description)
            yield results

    @classmethod
    def inside(cls, folder: Path, description: Mapping[str, Any]) -> "RunFolder":
        """Return results that are written into a folder which the caller publishes.

        Args:
            folder: an empty folder.
            description: what decides the numbers of the runs.
        """
        results = cls(folder, description["seeds"])
        results._staging = folder
        results._describe(description)
        return results

    def _describe(self, description: Mapping[str, Any]) -> None:
        content = {**_MARKER, **description}
        atomic_write(self._staging / "config.json", json.dumps(content, indent=1))

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if not self._seed_folder(spec.seed).exists()]

    def checkpoint(self, spec: RunSpec) -> Path:
        return self._staging / f"seed-{spec.seed}.checkpoint"

    def pack(self, result: RunResult) -> dict[str, Any]:
        """Write the folder of one run and return its metrics."""
        classifier = result.classifier
        data = result.data
        history = classifier.history_
        probabilities = classifier.predict_proba(data)
        counts = count_predictions(probabilities, data)
        names = class_names(data)
        constant = counts.predicted_class()
        metrics: dict[str, Any] = {
            "seed": result.spec.seed,
            **scores(probabilities, data, result.spec.metric),
            "majority": majority_scores(data, result.spec.metric),
            "class_counts": class_counts(data),
            "constant_prediction": None if constant is None else names[constant],
            "epochs": history.epochs,
            "best_epoch": history.best_epoch,
            "seconds": history.seconds,
            **result.dead_run_metrics(),
            **history.loading,
        }
        if classifier.config_.training.features == "auto":
            metrics["features"] = classifier.scaling_.describe()
        target = self._seed_folder(result.spec.seed)
        if target.exists():  # trained again as part of a batch
            return read_json(target / "metrics.json")
        with atomic_folder(target, sync=False) as partial:
            classifier.write_files(partial)
            if classifier.model_.has_coefficients:
                psi = classifier.coefficients(data)
                np.save(partial / "coefficients.npy", psi.numpy())
                prop: Any = classifier.model_.filter
                metrics["filter"] = {
                    "basis": str(prop.basis),
                    "lambda_max": classifier.lambda_max(data),
                }
            history.write(partial / "history.csv")
            report = {"part": reported_part(data), **counts.to_dict(names)}
            (partial / "report.json").write_text(json_text(report, indent=1), encoding="utf-8")
            (partial / "metrics.json").write_text(json_text(metrics, indent=1), encoding="utf-8")
            write_checksums(partial, [path.name for path in partial.iterdir()])
        return metrics

    def store(self, spec: RunSpec, packed: dict[str, Any]) -> str:
        for checkpoint in self._staging.glob(f"seed-{spec.seed}.*checkpoint"):
            checkpoint.unlink()
        return run_line(spec, packed)

    def finished_lines(self, specs: Sequence[RunSpec]) -> list[str]:
        """Return the reports of runs that an interrupted call has finished."""
        finished = [spec for spec in specs if self._seed_folder(spec.seed).exists()]
        return [run_line(spec, self._metrics(spec.seed)) for spec in finished]

    def publish(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write the summary, give the folder its final name and return the summary.

        Args:
            facts: fields of the summary that do not come from the runs.
        """
        self.write_summary(facts)
        if not self.folder.exists():
            publish(self._staging, self.folder)
        else:
            # The old folder is deleted under the name of the staging folder, where another process
            # could start to write.
            with locked(self.folder, self._busy):
                publish(self._staging, self.folder)
        return read_summary(self.folder)

    def write_summary(self, facts: Mapping[str, Any], more_files: Sequence[str] = ()) -> None:
        """Write the summary, the report and the checksums.

        Args:
            facts: as for :meth:`publish`.
            more_files: names of other files of the folder that get a checksum.
        """
        summary = self._summary(facts)
        atomic_write(self._staging / "summary.json", json_text(summary, indent=1))
        self._write_report(summary)
        _remove_unfinished(self._staging)
        sums = [f"seed-{seed}/{SUMS}" for seed in self.seeds]
        files = ["config.json", "summary.json", "report.json", "report.md", *sums, *more_files]
        listed = [name for name in files if (self._staging / name).is_file()]
        write_checksums(self._staging, listed)

    @property
    def _busy(self) -> str:
        return (
            f"another process is writing {self.folder}: wait until it finishes, or choose "
            "another folder with --out"
        )

    def _summary(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        metrics = [self._metrics(seed) for seed in self.seeds]
        seconds = sum(m["seconds"] for m in metrics)
        epochs = sum(m["epochs"] for m in metrics)
        measured = [key for key in _score_keys(facts["metric"]) if all(key in m for m in metrics)]
        return {
            "dataset": facts["dataset"],
            "source": facts["source"],
            "model": facts["model"],
            "protocol": facts["protocol"],
            "metric": facts["metric"],
            "seeds": self.seeds,
            **{key: summarise([m[key] for m in metrics]) for key in measured},
            **_references(metrics, facts["classes"]),
            "epochs": [m["epochs"] for m in metrics],
            **dead_run_summary(metrics, measured),
            "seconds": seconds,
            "epoch_ms": 1000 * seconds / max(epochs, 1),
            "device": facts["device"],
            "filter": metrics[0].get("filter"),
            **{key: value for key, value in metrics[0].items() if key == "features"},
            "config": facts["config"],
        }

    def _write_report(self, summary: Mapping[str, Any]) -> None:
        """Write the report per class of all runs together."""
        reports = [read_json(self._seed_folder(seed) / "report.json") for seed in self.seeds]
        counts = PredictionCounts.from_dict(reports[0])
        for report in reports[1:]:
            counts += PredictionCounts.from_dict(report)
        part = reports[0]["part"]
        total = {"part": part, "seeds": self.seeds, **counts.to_dict(summary["classes"])}
        runs = "1 run" if len(reports) == 1 else f"{len(reports)} runs together"
        title = f"{summary['model']} on {summary['dataset']}: {part} nodes of {runs}"
        atomic_write(self._staging / "report.json", json_text(total, indent=1))
        atomic_write(self._staging / "report.md", report_text(total, title))

    def _metrics(self, seed: int) -> dict[str, Any]:
        return read_json(self._seed_folder(seed) / "metrics.json")

    def _seed_folder(self, seed: int) -> Path:
        return self._staging / f"seed-{seed}"


def dead_run_summary(
    metrics: Sequence[Mapping[str, Any]], measured: Sequence[str]
) -> dict[str, Any]:
    """Return the seeds of restarted and dead runs, and the means without the dead ones.

    A summary has these fields only where there are such runs.
    """
    found: dict[str, Any] = {}
    restarted = [run["seed"] for run in metrics if run.get("restarts")]
    if restarted:
        found["restarted_seeds"] = restarted
    dead = [run["seed"] for run in metrics if run.get("dead")]
    if dead:
        found["dead_seeds"] = dead
        others = [run for run in metrics if not run.get("dead")]
        if others:
            values = {key: [run[key] for run in others] for key in measured}
            found["without_dead"] = {key: summarise(values[key]) for key in measured}
    return found


def _score_keys(metric: str) -> list[str]:
    """Return the keys of the scores of all parts: accuracy, and the metric of the run."""
    names = ["accuracy"] if metric == "accuracy" else ["accuracy", metric]
    return [f"{part}_{name}" for part in PARTS for name in names]


def _references(metrics: Sequence[Mapping[str, Any]], names: list[str]) -> dict[str, Any]:
    """Return what the scores of the runs are compared with: the majority, the class counts.

    Args:
        metrics: of every run.
        names: of the classes.
    """
    majority = {}
    for key in metrics[0]["majority"]:
        values = [run["majority"][key] for run in metrics if key in run["majority"]]
        majority[key] = sum(values) / len(values)
    absent: dict[str, set[str]] = {}
    for run in metrics:
        for part, missing in missing_classes(run["class_counts"], names).items():
            absent.setdefault(part, set()).update(missing)
    constant = {str(run["seed"]): run["constant_prediction"] for run in metrics}
    return {
        "majority": majority,
        "classes": names,
        "class_counts": metrics[0]["class_counts"],
        "missing_classes": {
            part: sorted(missing, key=names.index) for part, missing in absent.items()
        },
        "constant_predictions": {k: name for k, name in constant.items() if name is not None},
    }


def holds_finished_runs(folder: Path, description: Mapping[str, Any]) -> bool:
    """Whether a folder holds all runs of this description; refuse one with damaged files."""
    if not (folder / "summary.json").is_file() or not _describes(folder, description):
        return False
    for part in (folder, *folder.glob("seed-*[0-9]")):
        if _has_checksums(part):
            names = read_checksums(part)
            refuse_damaged_files(part, names, "train the runs again with --overwrite")
    return True


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
        raise UserError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}; {_REMEDY}")
    if not _has_scores(summary):
        raise UserError(f"{path} is damaged: its seeds do not match its scores; {_REMEDY}")
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
        raise UserError(f"{path}: unknown protocol {protocol!r}; {_REMEDY}")
    if not isinstance(description.get("fingerprint"), str):
        raise UserError(f"{path}: has no fingerprint of the graph; {_REMEDY}")
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
    if _has_checksums(folder):
        refuse_damaged_files(folder, ["config.json", "summary.json"], _REMEDY)
    seeds = summary["seeds"]
    if seed is None:
        seed = best_seed(summary, seeds)
    if seed not in seeds:
        raise UserError(f"{folder} has no seed {seed}: it has {', '.join(map(str, seeds))}")
    return NodeClassifier.load(folder / f"seed-{seed}", device)


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
    if _has_checksums(folder):
        damaged = damaged_files(folder)
        count = 0 if SUMS in damaged else len(read_checksums(folder))
    if not damaged and (folder / "classifier.json").is_file():
        try:
            NodeClassifier.load(folder, "cpu")
        except UserError as error:
            damaged["weights.safetensors"] = str(error)
    return count, damaged


def _has_checksums(folder: Path) -> bool:
    """Whether a folder has checksums, or had them before it was damaged."""
    return (folder / SUMS).exists() or any(
        "kind" in _content(folder / name) for name in ("config.json", "classifier.json")
    )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}; {_REMEDY}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no JSON object; {_REMEDY}")
    return content


def run_line(spec: RunSpec, metrics: Mapping[str, Any]) -> str:
    """Return the line that reports a finished run."""
    metric = spec.metric
    title = "acc" if metric.name == "accuracy" else metric.title
    part = "test" if f"test_{metric.name}" in metrics else "unobserved"
    test = metric.shown(metrics[f"{part}_{metric.name}"], 1)
    val = metric.shown(metrics[f"val_{metric.name}"], 1)
    return (
        f"{spec.config.model} on {spec.graph.name}  seed {spec.seed}: test {title} {test}  "
        f"val {title} {val}  ({metrics['epochs']} epochs, {metrics['seconds']:.1f} s)"
        f"{_start_note(metrics)}"
    )


def _start_note(metrics: Mapping[str, Any]) -> str:
    """Return what the line of a run adds if the run was started again or is dead."""
    if metrics.get("dead"):
        return "  never rose above chance"
    if metrics.get("restarts"):
        return "  restarted, because the first start never rose above chance"
    return ""


def _staging_folder(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _describes(folder: Path, description: Mapping[str, Any]) -> bool:
    """Whether the ``config.json`` of a folder equals this description."""
    found = _content(folder / "config.json")
    expected = json.loads(json.dumps(description))  # tuples become lists, as in the file
    return bool({key: found[key] for key in found.keys() - _MARKER.keys()} == expected)


def _content(path: Path) -> dict[str, Any]:
    """Return a JSON object, empty if there is none."""
    try:
        return read_json(path) if path.is_file() else {}
    except UserError:
        return {}


def holds_run_folder(folder: Path) -> bool:
    """Whether a folder holds a run folder to replace; refuse anything else that it holds."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    _refuse_other_files(folder)
    content = _content(folder / "config.json")
    kind = content.get("kind", _MARKER["kind"])
    ours = kind == _MARKER["kind"] and content.keys() >= _DESCRIPTION_KEYS
    refuse_replacement(folder, _WHAT, ours=ours, overwrite=True)
    return True


def _refuse_unfinished_runs(staging: Path) -> None:
    """Refuse to delete runs of another description, which its command would resume."""
    if any(staging.glob("seed-*[0-9]")) or any(staging.glob("seed-*.checkpoint")):
        raise UserError(
            f"{staging} holds unfinished runs with other settings: resume them with the same "
            "command and --resume, choose another folder with --out, or delete them with "
            "--overwrite"
        )


def _refuse_other_files(folder: Path) -> None:
    """Refuse to delete files that are not part of a run folder."""
    _refuse_other_names(folder, _NAMES, _WHAT)
    for pattern, (what, names) in _PARTS.items():
        for part in folder.glob(pattern):
            _refuse_other_names(part, names, what)


def _refuse_other_names(folder: Path, names: re.Pattern[str], what: str) -> None:
    refuse_foreign_files(folder, lambda name: bool(names.fullmatch(name)), what)


def _remove_damaged_runs(staging: Path) -> None:
    """Delete runs that must be trained again: damaged ones, and those without a report.

    Earlier versions wrote no report.
    """
    for seed in staging.glob("seed-*[0-9]"):
        damaged = _has_checksums(seed) and damaged_files(seed)
        if damaged or not (seed / "report.json").is_file():
            shutil.rmtree(seed)


def _remove_unfinished(staging: Path) -> None:
    """Delete what killed processes have left."""
    for entry in staging.iterdir():
        if re.fullmatch(_PARTIAL, entry.name):
            delete(entry)
