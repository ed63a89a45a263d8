"""Finished runs of a search, one folder each.

A run folder holds the fitted model (``classifier.json``, ``weights.safetensors``),
``probabilities.npy`` of all nodes, ``history.csv``, ``run.json`` with the scores on validation
nodes, and ``SHA256SUMS``. A run that failed has ``run.json`` and its checksum only. Folders are
written as a whole or not at all, so an interrupted search finds every finished run again.

A training that a time limit has ended is kept as a run with as many epochs as it had, because a
training with that many epochs gives the same model. ``planned`` in ``run.json`` is the name of the
folder that it would have had with all its epochs.
"""

import csv
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.checksums import damaged_files, write_checksums
from nfgnn.files import atomic_folder, delete
from nfgnn.json_text import json_text
from nfgnn.training import (
    Failure,
    Metric,
    Results,
    RunConfig,
    RunResult,
    RunSpec,
    find_metric,
    should_stop,
)

_RECORD = "run.json"
_PROBABILITIES = "probabilities.npy"
_CURVES = "history.csv"


@dataclass(frozen=True)
class RunRecord:
    """The scores of a run on its validation nodes, and what the run took."""

    score: float = 0.0
    """By the metric of the search."""
    log_loss: float = 0.0
    epochs: int = 0
    seconds: float = 0.0
    """Of the training."""
    extra_seconds: float = 0.0
    """Of the predictions and the files."""
    is_cut: bool = False
    """Whether the time limit ended the training."""
    is_dead: bool = False
    """Whether the training never rose above chance."""
    failure: str = ""
    """Why there is no model; empty if there is one."""


@dataclass(frozen=True)
class CutRun:
    """A training that a time limit has ended."""

    config: RunConfig
    """With as many epochs as it had."""
    record: RunRecord


class CandidateRuns(Results):
    """The finished runs of a search.

    Args:
        folder: holds one folder per run. Call :meth:`open` first.
        on_finish: called with every run that is finished and its record.
    """

    def __init__(
        self, folder: Path, on_finish: Callable[[RunSpec, RunRecord], None] | None = None
    ) -> None:
        self.folder = folder
        self.on_finish = on_finish
        self._records: dict[str, RunRecord] = {}
        self._cut: dict[str, CutRun] = {}

    def in_worker(self) -> "CandidateRuns":
        return CandidateRuns(self.folder)

    def on_other_machine(self) -> "CandidateRuns":
        return _RemoteRuns(self.folder)

    def open(self) -> None:
        """Find the runs of an interrupted search. Those with damaged files are deleted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for run in sorted(self.folder.glob("*")):
            if run.is_dir() and damaged_files(run):
                delete(run)
            elif run.is_dir():
                self._read(run)

    def path(self, spec: RunSpec) -> Path:
        """Return the folder of a run."""
        text = json.dumps([spec.graph.name, spec.seed, spec.config.to_dict()], sort_keys=True)
        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:20]

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if self.find(spec) is None]

    def find(self, spec: RunSpec) -> RunRecord | None:
        """Return the record of a run, or ``None`` if it is not finished."""
        return self._records.get(self.path(spec).name)

    def find_cut(self, spec: RunSpec) -> "CutRun | None":
        """Return the longest training of a run that a time limit has ended."""
        return self._cut.get(self.path(spec).name)

    def _read(self, path: Path) -> RunRecord:
        """Read the record of a folder."""
        content = json.loads((path / _RECORD).read_text(encoding="utf-8"))
        record = RunRecord(**content["record"])
        self._records[path.name] = record
        longest = self._cut.get(content["planned"])
        if record.is_cut and (longest is None or longest.record.epochs < record.epochs):
            config = RunConfig.from_dict(content["config"])
            self._cut[content["planned"]] = CutRun(config, record)
        return record

    def probabilities(self, spec: RunSpec) -> Tensor:
        """Return the class probabilities of all nodes, ``[num_nodes, num_classes]``."""
        return torch.from_numpy(np.load(self.path(spec) / _PROBABILITIES))

    def scores(self, spec: RunSpec, metric: Metric) -> list[float]:
        """Return the metric on the validation nodes after every epoch."""
        with (self.path(spec) / _CURVES).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [float(row[f"val_{metric.name}"]) for row in rows]

    def pack(self, result: RunResult) -> "Path | RunFiles":
        """Write the folder of a run."""
        return self._write(result)

    def _write(self, result: RunResult) -> Path:
        started = time.perf_counter()
        classifier = result.classifier
        history = classifier.history_
        probabilities = classifier.predict_proba(result.data)
        planned = self.path(result.spec).name
        spec = result.spec
        if _is_cut(result):
            training = replace(spec.config.training, epochs=history.epochs)
            spec = replace(spec, config=replace(spec.config, training=training))
            classifier.config_ = spec.config
        target = self.path(spec)
        if target.exists():  # trained again as part of a batch
            return target
        with atomic_folder(target, sync=False) as partial:
            classifier.write_files(partial)
            history.write(partial / _CURVES)
            np.save(partial / _PROBABILITIES, probabilities.float().numpy())
            record = _record(result, probabilities, time.perf_counter() - started)
            _write_record(partial, spec, planned, record)
        return target

    def store(self, spec: RunSpec, packed: "Path | RunFiles") -> str:
        if isinstance(packed, RunFiles):
            packed = packed.write(self.folder)
        record = self._read(packed)
        if self.on_finish is not None:
            self.on_finish(spec, record)
        return ""

    def store_failure(self, failure: Failure) -> None:
        """Keep a failure, so that a resumed search does not try the run again."""
        target = self.path(failure.spec)
        with atomic_folder(target, sync=False) as partial:
            _write_record(partial, failure.spec, target.name, RunRecord(failure=failure.message))
        self.store(failure.spec, target)


@dataclass(frozen=True)
class RunFiles:
    """The folder of a run that was trained on another machine."""

    name: str
    files: dict[str, bytes]

    def write(self, parent: Path) -> Path:
        """Write the folder of the run and return it."""
        target = parent / self.name
        if not target.exists():  # else trained again as part of a batch
            with atomic_folder(target, sync=False) as partial:
                for name, content in self.files.items():
                    (partial / name).write_bytes(content)
        return target


class _RemoteRuns(CandidateRuns):
    """Finished runs in a worker that may not share files with the search: they are sent to it."""

    def pack(self, result: RunResult) -> RunFiles:
        with tempfile.TemporaryDirectory(prefix="nfgnn-run-") as folder:
            path = CandidateRuns(Path(folder))._write(result)
            return RunFiles(path.name, {file.name: file.read_bytes() for file in path.iterdir()})


def _record(result: RunResult, probabilities: Tensor, extra_seconds: float) -> RunRecord:
    data = result.data
    history = result.classifier.history_
    nodes = data.val_mask & (data.y >= 0)
    y = data.y[nodes]
    scored = probabilities[nodes]
    return RunRecord(
        score=result.spec.metric.compute(scored, y, data.num_classes),
        log_loss=find_metric("log_loss").compute(scored, y, data.num_classes),
        epochs=history.epochs,
        # Trainings before a restart took about as long as the last one.
        seconds=history.seconds * (1 + history.restarts),
        extra_seconds=extra_seconds,
        is_cut=_is_cut(result),
        is_dead=history.dead,
    )


def _is_cut(result: RunResult) -> bool:
    """Whether a training has ended before its last epoch without being stopped by its scores."""
    history = result.classifier.history_
    training = result.spec.config.training
    stopped = should_stop(history.costs(), training.patience)
    return history.epochs < training.epochs and not stopped


def _write_record(folder: Path, spec: RunSpec, planned: str, record: RunRecord) -> None:
    content = {
        "seed": spec.seed,
        "config": spec.config.to_dict(),
        "planned": planned,
        "record": asdict(record),
    }
    (folder / _RECORD).write_text(json_text(content, indent=1), encoding="utf-8")
    write_checksums(folder, [path.name for path in folder.iterdir()])
