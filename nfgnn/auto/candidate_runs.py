"""Finished runs of a search, one folder each.

A run folder holds the fitted model (``classifier.json``, ``weights.safetensors``),
``probabilities.npy`` of all nodes, ``history.csv``, ``run.json`` with the scores on validation
nodes, and ``SHA256SUMS``. A run that failed has ``run.json`` and its checksum only. Folders are
written as a whole or not at all, so an interrupted search finds every finished run again.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.checksums import damaged_files, write_checksums
from nfgnn.files import atomic_folder, delete
from nfgnn.json_text import json_text
from nfgnn.training import Failure, Results, RunResult, RunSpec, find_metric, should_stop

_RECORD = "run.json"
_PROBABILITIES = "probabilities.npy"


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
    """Whether the time limit ended the training. As many epochs give the same model again."""
    is_dead: bool = False
    """Whether the training never rose above chance."""
    failure: str = ""
    """Why there is no model; empty if there is one."""


class CandidateRuns(Results):
    """The finished runs of a search.

    Args:
        folder: holds one folder per run; it is created if necessary.
        on_finish: called with every run that is finished and its record.
    """

    def __init__(
        self, folder: Path, on_finish: Callable[[RunSpec, RunRecord], None] | None = None
    ) -> None:
        self.folder = folder
        self.on_finish = on_finish
        self._records: dict[str, RunRecord] = {}

    def in_worker(self) -> "CandidateRuns":
        return CandidateRuns(self.folder)

    def remove_damaged(self) -> None:
        """Delete runs whose files are damaged. They are trained again."""
        for run in self.folder.glob("*"):
            if run.is_dir() and damaged_files(run):
                delete(run)

    def path(self, spec: RunSpec) -> Path:
        """Return the folder of a run."""
        text = json.dumps([spec.seed, spec.config.to_dict()], sort_keys=True)
        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:20]

    def missing(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        return [spec for spec in specs if not self.path(spec).exists()]

    def find(self, spec: RunSpec) -> RunRecord | None:
        """Return the record of a run, or ``None`` if it is not finished."""
        path = self.path(spec)
        if path.name not in self._records:
            if not path.exists():
                return None
            content = json.loads((path / _RECORD).read_text(encoding="utf-8"))
            self._records[path.name] = RunRecord(**content["record"])
        return self._records[path.name]

    def probabilities(self, spec: RunSpec) -> Tensor:
        """Return the class probabilities of all nodes, ``[num_nodes, num_classes]``."""
        return torch.from_numpy(np.load(self.path(spec) / _PROBABILITIES))

    def pack(self, result: RunResult) -> Any:
        """Write the folder of a run."""
        started = time.perf_counter()
        classifier = result.classifier
        history = classifier.history_
        probabilities = classifier.predict_proba(result.data)
        target = self.path(result.spec)
        if target.exists():  # trained again as part of a batch
            return None
        with atomic_folder(target, sync=False) as partial:
            classifier.write_files(partial)
            history.write(partial / "history.csv")
            np.save(partial / _PROBABILITIES, probabilities.float().numpy())
            record = _record(result, probabilities, time.perf_counter() - started)
            _write_record(partial, result.spec, record)
        return None

    def store(self, spec: RunSpec, packed: Any) -> str:
        record = self.find(spec)
        if self.on_finish is not None and record is not None:
            self.on_finish(spec, record)
        return ""

    def store_failure(self, failure: Failure) -> None:
        """Keep a failure, so that a resumed search does not try the run again."""
        with atomic_folder(self.path(failure.spec), sync=False) as partial:
            _write_record(partial, failure.spec, RunRecord(failure=failure.message))
        self.store(failure.spec, None)


def _record(result: RunResult, probabilities: Tensor, extra_seconds: float) -> RunRecord:
    data = result.data
    history = result.classifier.history_
    training = result.spec.config.training
    nodes = data.val_mask & (data.y >= 0)
    y = data.y[nodes]
    scored = probabilities[nodes]
    stopped = should_stop(history.costs(), training.patience)
    return RunRecord(
        score=result.spec.metric.compute(scored, y, data.num_classes),
        log_loss=find_metric("log_loss").compute(scored, y, data.num_classes),
        epochs=history.epochs,
        # Trainings before a restart took about as long as the last one.
        seconds=history.seconds * (1 + history.restarts),
        extra_seconds=extra_seconds,
        is_cut=history.epochs < training.epochs and not stopped,
        is_dead=history.dead,
    )


def _write_record(folder: Path, spec: RunSpec, record: RunRecord) -> None:
    content = {"seed": spec.seed, "config": spec.config.to_dict(), "record": asdict(record)}
    (folder / _RECORD).write_text(json_text(content, indent=1), encoding="utf-8")
    write_checksums(folder, [path.name for path in folder.iterdir()])
