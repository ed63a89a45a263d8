"""Many runs of one configuration, kept in a run folder that survives being killed.

``RUN/config.json`` says what was run, ``RUN/seed-…/`` holds one run each (``metrics.json``, ``history.csv``,
``classifier.json``, ``weights.safetensors``, ``coefficients.npy``), ``RUN/summary.json`` the result. While runs are
missing the folder is called ``.RUN.partial``; every run in it is complete.
"""

import fcntl
import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch_geometric.data import Data

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.files import atomic_folder, atomic_write, publish
from nfgnn.training import row_data
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.config import RunConfig
from nfgnn.training.device import device_name, resolve_device
from nfgnn.training.distributed import Processes
from nfgnn.training.fingerprint import fingerprint as fingerprint
from nfgnn.training.fit import OnEpoch, is_small, stored_values
from nfgnn.training.fit_together import fit_together, runs_at_once
from nfgnn.training.history import History
from nfgnn.training.metrics import scores, summarise
from nfgnn.training.process_pool import processes_for, seldom, side_by_side, tell


class Display(Protocol):
    """Who is told how far the work is."""

    def runs_started(
        self, seeds: Sequence[int], done: int, total: int, max_epochs: int
    ) -> None: ...
    def epoch(self, history: History) -> None: ...
    def run_finished(self, seed: int, metrics: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Experiment:
    """A configuration with the seeds it is to be run with."""

    data: Data
    protocol: str
    seeds: Sequence[int]
    config: RunConfig
    device: str = "auto"
    source: Mapping[str, Any] | None = None
    """Where the graph came from (``dataset``, ``columns``), so that it is found again; decides no number."""

    def description(self) -> dict[str, Any]:
        """All that decides the numbers."""
        return {
            "dataset": self.data.get("name") or "graph",
            "fingerprint": fingerprint(self.data),
            "protocol": self.protocol,
            "seeds": list(self.seeds),
            "config": self.config.to_dict(),
        }

    def check(self) -> None:
        """Find the user's mistakes before anything is trained or written."""
        split(self.data, self.protocol, self.seeds[0])
        row_data.scaling_of(self.data, self.config.training.features)
        row_data.check_model(self.config.build(*row_data.sizes(self.data)), self.data)
        resolve_device(self.device)

    def runs_at_once(self) -> int:
        """How many of the runs are one computation."""
        device = resolve_device(self.device)
        if (
            device.type == "cpu" or self.protocol == "inductive"
        ):  # there every run has a graph of its own
            return 1
        data = Data(
            x=self.data.x, edge_index=self.data.edge_index, edge_weight=self.data.get("edge_weight")
        ).to(device)
        module = self.config.build(*row_data.sizes(self.data)).to(device)
        return runs_at_once(self.config.model, module, data, device)

    def processes(self, wanted: int | None, runs: int, seconds: float) -> int:
        """How many processes train as many runs of so many seconds: on a CPU, where a run has one thread, as many as
        are wanted, or as pay."""
        on_cpu = resolve_device(self.device).type == "cpu"
        if (
            not on_cpu
            or runs < 2
            or self.data.get("rows") is not None
            or Processes.current().count > 1
        ):
            return 1
        processes = processes_for(runs, seconds) if wanted is None else min(wanted, runs)
        if wanted is None and processes > 1:
            small = is_small(
                stored_values(self.data.x), self.config.build(*row_data.sizes(self.data))
            )
            return processes if small else 1
        return processes

    def default_folder(self) -> Path:
        """A folder below ``runs/`` named after the experiment: the same experiment, the same folder."""
        what = self.description()
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
        return Path("runs") / f"{what['dataset']}-{self.config.model}-{self.protocol}-{digest}"


def run_experiment(
    experiment: Experiment,
    folder: Path,
    display: Display,
    resume: bool = False,
    workers: int | None = 1,
) -> dict[str, Any]:
    """Train every seed, write the run folder, and return its summary.

    With ``resume`` runs that an earlier, killed call of the same experiment has finished are taken as they are. On a
    CPU runs may be trained side by side, in as many processes as ``workers`` says; ``None`` lets the time of the first
    run decide. A script that asks for more than one must guard its main part by ``if __name__ == "__main__"``.
    """
    experiment.check()
    if resume and _same(folder, experiment):
        return read_summary(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "config.json").is_file():
        raise UserError(f"{folder} exists and is not a run folder: name another one with --out")
    with _staging(experiment, folder, resume) as staging:
        at_once, shown = experiment.runs_at_once(), set[int]()

        def finished(seed: int) -> float:
            checkpoint_of(folder, seed).unlink(missing_ok=True)
            metrics = _read_json(staging / f"seed-{seed}" / "metrics.json")
            if seed not in shown:
                display.run_finished(seed, metrics)
                shown.add(seed)
            return float(metrics["seconds"])

        for start in range(0, len(experiment.seeds), at_once):
            seeds = experiment.seeds[start : start + at_once]
            missing = _missing(staging, seeds)
            if missing:
                display.runs_started(
                    seeds, start, len(experiment.seeds), experiment.config.training.epochs
                )
                _run_seeds(experiment, seeds, missing, display.epoch, staging, folder)
            seconds = [finished(seed) for seed in seeds]
            rest = _missing(staging, experiment.seeds[start + at_once :]) if missing else []
            processes = experiment.processes(workers, len(rest), seconds[-1])
            if processes > 1:
                display.runs_started(
                    rest, start + 1, len(experiment.seeds), experiment.config.training.epochs
                )
                # Packed here: tensors would go through shared memory otherwise, of which containers have little.
                packed = pickle.dumps(experiment)
                tasks = [(packed, seed, staging, folder) for seed in rest]
                for task, _ in side_by_side(_run_packed, tasks, processes, display.epoch):
                    finished(task[1])
        summary = _summarise(experiment, staging)
        atomic_write(staging / "summary.json", json.dumps(summary, indent=1))
        publish(staging, folder)
    return read_summary(folder)


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a finished run folder, with its path under ``run``."""
    if not (folder / "summary.json").is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no summary.json (nfgnn train writes one)"
        )
    return {**_read_json(folder / "summary.json"), "run": str(folder)}


def read_description(folder: Path) -> dict[str, Any]:
    """What a run folder holds (:meth:`Experiment.description`): its ``config.json``."""
    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no config.json (nfgnn train writes one)"
        )
    return _read_json(folder / "config.json")


def load_run(folder: Path, seed: int | None = None, device: str = "auto") -> NodeClassifier:
    """The classifier of one seed of a run folder; by default the one of highest validation accuracy."""
    summary = read_summary(folder)
    if seed is None:
        values = summary["val_accuracy"]["values"]
        seed = summary["seeds"][max(range(len(values)), key=values.__getitem__)]
    if seed not in summary["seeds"]:
        raise UserError(
            f"{folder} has no seed {seed}: it has {', '.join(map(str, summary['seeds']))}"
        )
    return NodeClassifier.load(folder / f"seed-{seed}", device)


def classifier_of(experiment: Experiment, seed: int) -> NodeClassifier:
    """The classifier of one of the experiment's runs, not fitted yet."""
    settings = {k: v for k, v in experiment.config.to_dict().items() if k != "model"}
    return NodeClassifier(
        experiment.config.model, preset="none", seed=seed, device=experiment.device, **settings
    )


def checkpoint_of(folder: Path, seed: int) -> Path:
    """Where a run that is trained on rows keeps its state while it is not finished."""
    return _staging_of(folder) / f"seed-{seed}.checkpoint"


def _staging_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _missing(staging: Path, seeds: Sequence[int]) -> list[int]:
    return [seed for seed in seeds if not (staging / f"seed-{seed}").exists()]


def _run_packed(experiment: bytes, seed: int, staging: Path, folder: Path) -> None:
    """One run in a process of its own, whose news go to the one that started it and packed the experiment."""
    _run_seeds(pickle.loads(experiment), [seed], [seed], seldom(tell), staging, folder)


def _run_seeds(
    experiment: Experiment,
    seeds: Sequence[int],
    missing: Sequence[int],
    on_epoch: OnEpoch,
    staging: Path,
    folder: Path,
) -> None:
    """Train runs and write those that are missing."""
    for seed, classifier, data in _fit_seeds(experiment, seeds, on_epoch, folder):
        if seed in missing:
            _write_seed(staging / f"seed-{seed}", seed, classifier, data)


def _fit_seeds(
    experiment: Experiment, seeds: Sequence[int], on_epoch: OnEpoch, folder: Path
) -> Iterator[tuple[int, NodeClassifier, Data]]:
    classifiers = [classifier_of(experiment, seed) for seed in seeds]
    graphs = [split(experiment.data, experiment.protocol, seed) for seed in seeds]
    if len(seeds) == 1:
        Processes.current().agree(
            seeds[0], resolve_device(experiment.device)
        )  # the others train along
        classifiers[0].fit(graphs[0], on_epoch, checkpoint_of(folder, seeds[0]))
    else:
        fit_together(
            classifiers, graphs, lambda histories: on_epoch(max(histories, key=lambda h: h.epochs))
        )
    return zip(seeds, classifiers, graphs)


def _write_seed(target: Path, seed: int, classifier: NodeClassifier, data: Data) -> None:
    history, probabilities = classifier.history_, classifier.predict_proba(data)
    metrics: dict[str, Any] = {"seed": seed, **scores(probabilities, data)}
    metrics |= {
        "epochs": history.epochs,
        "best_epoch": history.best_epoch,
        "seconds": history.seconds,
    }
    metrics |= history.loading
    with atomic_folder(target) as partial:
        classifier._write(partial)
        if classifier.model_.has_coefficients:
            np.save(partial / "coefficients.npy", classifier.coefficients(data).numpy())
            basis = getattr(classifier.model_.prop, "basis")  # noqa: B009
            metrics["filter"] = {"basis": str(basis), "lambda_max": classifier.lambda_max(data)}
        history.write(partial / "history.csv")
        (partial / "metrics.json").write_text(json.dumps(metrics, indent=1), encoding="utf-8")


def _summarise(experiment: Experiment, staging: Path) -> dict[str, Any]:
    what = experiment.description()
    metrics = [_read_json(staging / f"seed-{seed}" / "metrics.json") for seed in experiment.seeds]
    seconds, epochs = sum(m["seconds"] for m in metrics), sum(m["epochs"] for m in metrics)
    measured = [key for key in metrics[0] if key.endswith(("_accuracy", "_roc_auc"))]
    return {
        "dataset": what["dataset"],
        "source": experiment.source,
        "model": experiment.config.model,
        "protocol": experiment.protocol,
        "seeds": list(experiment.seeds),
        **{key: summarise([m[key] for m in metrics]) for key in measured},
        "epochs": [m["epochs"] for m in metrics],
        "seconds": seconds,
        "epoch_ms": 1000 * seconds / max(epochs, 1),
        "device": device_name(experiment.device),
        "filter": metrics[0].get("filter"),
        "config": what["config"],
    }


@contextmanager
def _staging(experiment: Experiment, folder: Path, resume: bool) -> Iterator[Path]:
    """The folder that is worked in, held by this process alone."""
    staging = _staging_of(folder)
    staging.mkdir(parents=True, exist_ok=True)
    handle = os.open(staging, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not resume or not _same(staging, experiment, complete=False):
            for entry in staging.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            atomic_write(staging / "config.json", json.dumps(experiment.description(), indent=1))
        yield staging
    except BlockingIOError:
        raise UserError(
            f"another process is writing {folder}: wait for it, or name another folder with --out"
        ) from None
    finally:
        os.close(handle)


def _same(folder: Path, experiment: Experiment, complete: bool = True) -> bool:
    """Whether this folder holds this very experiment (and all of it)."""
    if not (folder / "config.json").is_file() or (
        complete and not (folder / "summary.json").is_file()
    ):
        return False
    return bool(
        _read_json(folder / "config.json") == json.loads(json.dumps(experiment.description()))
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return content
