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

from nfgnn.checksums import SUMS, damaged_files, write_checksums
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import atomic_folder, atomic_write, delete, empty, locked, publish
from nfgnn.json_text import json_text
from nfgnn.training.class_report import (
    PredictionCounts,
    count_predictions,
    never_predicted_warning,
    report_per_class,
    report_text,
)
from nfgnn.training.execution import Results
from nfgnn.training.metrics import find_metric, scores
from nfgnn.training.records.read_run_folder import has_checksums, read_summary
from nfgnn.training.records.run_folder_layout import (
    MARKER,
    PARTIAL,
    WHAT,
    describes,
    holds_run_folder,
    read_json,
    refuse_other_files,
)
from nfgnn.training.records.run_summary import run_line, summarise_runs
from nfgnn.training.run import RunResult, RunSpec
from nfgnn.training.split_check import class_counts, class_names, majority_scores


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
            same = describes(folder, description)
            refuse_replacement(folder, WHAT, ours=True, same=same, overwrite=overwrite)
        results = cls(folder, description["seeds"])
        staging = results._staging
        if (staging / "search.json").exists():
            raise UserError(
                f"{staging} holds an unfinished search of `nfgnn auto`: resume it with the same "
                "command and --resume, or choose another folder with --out"
            )
        refuse_other_files(staging)
        # The lock ends with the process, even if it is killed, so it never has to be cleaned up.
        with locked(staging, results._busy):
            same = describes(staging, description)
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
        content = {**MARKER, **description}
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
            report = report_per_class(counts, data)
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
        summary = summarise_runs([self._metrics(seed) for seed in self.seeds], facts)
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
        warning = never_predicted_warning(
            total, summary["class_counts"], find_metric(summary["metric"])
        )
        atomic_write(self._staging / "report.md", report_text(total, title, warning))

    def _metrics(self, seed: int) -> dict[str, Any]:
        return read_json(self._seed_folder(seed) / "metrics.json")

    def _seed_folder(self, seed: int) -> Path:
        return self._staging / f"seed-{seed}"


def _staging_folder(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _refuse_unfinished_runs(staging: Path) -> None:
    """Refuse to delete runs of another description, which its command would resume."""
    if any(staging.glob("seed-*[0-9]")) or any(staging.glob("seed-*.checkpoint")):
        raise UserError(
            f"{staging} holds unfinished runs with other settings: resume them with the same "
            "command and --resume, choose another folder with --out, or delete them with "
            "--overwrite"
        )


def _remove_damaged_runs(staging: Path) -> None:
    """Delete runs that must be trained again: damaged ones, and those without a report.

    Earlier versions wrote no report.
    """
    for seed in staging.glob("seed-*[0-9]"):
        damaged = has_checksums(seed) and damaged_files(seed)
        if damaged or not (seed / "report.json").is_file():
            shutil.rmtree(seed)


def _remove_unfinished(staging: Path) -> None:
    """Delete what killed processes have left."""
    for entry in staging.iterdir():
        if re.fullmatch(PARTIAL, entry.name):
            delete(entry)
