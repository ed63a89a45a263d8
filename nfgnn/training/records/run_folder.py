"""Run folders: several runs of one configuration, each with its fitted model.

``RUN/config.json`` describes the runs. ``RUN/seed-…/`` holds one run each (``metrics.json``,
``history.csv``, ``classifier.json``, ``weights.safetensors``, ``coefficients.npy``),
``RUN/summary.json`` the mean over all runs, ``SHA256SUMS`` in each folder the checksums of its
files. While runs are missing, the folder is called ``.RUN.partial``; every run in it is complete.
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
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.execution import Results
from nfgnn.training.metrics import scores, summarise
from nfgnn.training.run import RunResult, RunSpec

_DESCRIPTION_KEYS = {"dataset", "fingerprint", "protocol", "seeds", "config"}
_MARKER = {"kind": "nfgnn run folder", "format": 2}
"""Fields of ``config.json``. Folders without them were written before there were checksums."""
_CHECKPOINT = r"seed-\d+(\.restart-\d+)?\.checkpoint"
_PARTIAL = rf"\.(seed-\d+|config\.json|summary\.json)\..*\.partial|{_CHECKPOINT}"
_NAMES = re.compile(rf"config\.json|summary\.json|run\.png|{SUMS}|seed-\d+|{_PARTIAL}")
_SEED_NAMES = re.compile(
    rf"classifier\.json|weights\.safetensors|coefficients\.npy|history\.csv|metrics\.json|{SUMS}"
)
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
        if _holds_run_folder(folder):
            same = _describes(folder, description)
            refuse_replacement(folder, _WHAT, ours=True, same=same, overwrite=overwrite)
        results = cls(folder, description["seeds"])
        staging = results._staging
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
                content = {**_MARKER, **description}
                atomic_write(staging / "config.json", json.dumps(content, indent=1))
            yield results

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if not self._seed_folder(spec.seed).exists()]

    def checkpoint(self, spec: RunSpec) -> Path:
        return self._staging / f"seed-{spec.seed}.checkpoint"

    def pack(self, result: RunResult) -> dict[str, Any]:
        """Write the folder of one run and return its metrics."""
        classifier = result.classifier
        data = result.data
        history = classifier.history_
        metrics: dict[str, Any] = {
            "seed": result.spec.seed,
            **scores(classifier.predict_proba(data), data),
            "epochs": history.epochs,
            "best_epoch": history.best_epoch,
            "seconds": history.seconds,
            **result.dead_run_metrics(),
            **history.loading,
        }
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
            text = json.dumps(metrics, indent=1)
            (partial / "metrics.json").write_text(text, encoding="utf-8")
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
        summary = self._summary(facts)
        atomic_write(self._staging / "summary.json", json.dumps(summary, indent=1))
        _remove_unfinished(self._staging)
        sums = [f"seed-{seed}/{SUMS}" for seed in self.seeds]
        listed = [name for name in sums if (self._staging / name).is_file()]
        write_checksums(self._staging, ["config.json", "summary.json", *listed])
        if not self.folder.exists():
            publish(self._staging, self.folder)
        else:
            # The old folder is deleted under the name of the staging folder, where another process
            # could start to write.
            with locked(self.folder, self._busy):
                publish(self._staging, self.folder)
        return read_summary(self.folder)

    @property
    def _busy(self) -> str:
        return (
            f"another process is writing {self.folder}: wait for it, or name another folder with "
            "--out"
        )

    def _summary(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        metrics = [self._metrics(seed) for seed in self.seeds]
        seconds = sum(m["seconds"] for m in metrics)
        epochs = sum(m["epochs"] for m in metrics)
        measured = [key for key in metrics[0] if key.endswith(("_accuracy", "_roc_auc"))]
        return {
            "dataset": facts["dataset"],
            "source": facts["source"],
            "model": facts["model"],
            "protocol": facts["protocol"],
            "seeds": self.seeds,
            **{key: summarise([m[key] for m in metrics]) for key in measured},
            "epochs": [m["epochs"] for m in metrics],
            **dead_run_summary(metrics, measured),
            "seconds": seconds,
            "epoch_ms": 1000 * seconds / max(epochs, 1),
            "device": facts["device"],
            "filter": metrics[0].get("filter"),
            "config": facts["config"],
        }

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
    return {**summary, "run": str(folder)}


def read_description(folder: Path) -> dict[str, Any]:
    """Return what decides the numbers of a run folder: its ``config.json``."""
    path = folder / "config.json"
    if not path.is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no config.json (nfgnn train writes one)"
        )
    return read_json(path)


def load_run(folder: Path, seed: int | None = None, device: str = "auto") -> NodeClassifier:
    """Load the classifier of one seed; by default the one of highest validation accuracy.

    The files that are read are compared with their checksums.
    """
    summary = read_summary(folder)
    if _has_checksums(folder):
        refuse_damaged_files(folder, ["config.json", "summary.json"], _REMEDY)
    seeds = summary["seeds"]
    if seed is None:
        values = summary["val_accuracy"]["values"]
        best = max(range(len(values)), key=values.__getitem__)
        seed = seeds[best]
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
    names |= {path.name for path in folder.glob("seed-*") if path.is_dir()}
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
    score = metrics.get("test_accuracy", metrics.get("unobserved_accuracy"))
    test = "" if score is None else f"test acc {100 * score:.1f} %  "
    return (
        f"{spec.config.model} on {spec.graph.name}  seed {spec.seed}: {test}"
        f"val acc {100 * metrics['val_accuracy']:.1f} %  "
        f"({metrics['epochs']} epochs, {metrics['seconds']:.1f} s){_start_note(metrics)}"
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


def _holds_run_folder(folder: Path) -> bool:
    """Whether there is something to replace; refuse anything but a run folder."""
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
            f"{staging} holds unfinished runs with other settings: resume them with their command "
            "and --resume, name another folder with --out, or delete them with --overwrite"
        )


def _refuse_other_files(folder: Path) -> None:
    """Refuse to delete files that are not part of a run folder."""
    refuse_foreign_files(folder, lambda name: bool(_NAMES.fullmatch(name)), _WHAT)
    for seed in folder.glob("seed-*[0-9]"):
        refuse_foreign_files(seed, lambda name: bool(_SEED_NAMES.fullmatch(name)), "a run")


def _remove_damaged_runs(staging: Path) -> None:
    """Delete runs that a power failure has damaged, so that they are trained again."""
    for seed in staging.glob("seed-*[0-9]"):
        if _has_checksums(seed) and damaged_files(seed):
            shutil.rmtree(seed)


def _remove_unfinished(staging: Path) -> None:
    """Delete what killed processes have left."""
    for entry in staging.iterdir():
        if re.fullmatch(_PARTIAL, entry.name):
            delete(entry)
