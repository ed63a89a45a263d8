"""From a configuration and seeds to records: the runs of one cell of a table, or of one batch of a search."""

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.training import Experiment, NodeClassifier, RunConfig
from nfgnn.training.device import device_name, usable_cores
from nfgnn.training.fit_together import fit_together
from nfgnn.training.history import History
from nfgnn.training.metrics import scores
from nfgnn.training.records.database import Record
from nfgnn.training.run_folder import fingerprint

Tell = Callable[[History], None]
TIMED = ", timed on "
_NUMBERS = {
    *("lr", "weight_decay", "dropout", "filter_lr", "filter_weight_decay", "filter_dropout"),
    *("alpha", "label_smoothing", "epochs", "patience"),
}


def train_runs(
    data: Data,
    protocol: str,
    runs: Sequence[tuple[RunConfig, int]],
    device: str = "auto",
    test: bool = True,
    tell: Tell | None = None,
) -> list[Record]:
    """Train runs (configuration, seed) as one computation and return their records, in the same order.

    Several runs must share the model's shape; :func:`runs_at_once` says how many the device takes. With
    ``test=False`` nothing but validation is scored, as a search must not see more.
    """
    classifiers = [
        NodeClassifier(seed=seed, device=device, **_settings(config)) for config, seed in runs
    ]
    graphs = [split(data, protocol, seed) for _, seed in runs]
    try:
        if len(runs) == 1:
            classifiers[0].fit(graphs[0], tell)
        else:
            fit_together(
                classifiers,
                graphs,
                None if tell is None else lambda h: tell(max(h, key=lambda x: x.epochs)),
            )
    except torch.OutOfMemoryError:
        raise UserError(
            f"{runs[0][0].model} on {data.get('name')} does not fit into the GPU's memory"
        ) from None
    known, where, machine = fingerprint(data), device_name(device), machine_name()
    name = str(data.get("name") or "graph")
    return [
        Record(
            name,
            known,
            protocol,
            seed,
            config.to_dict(),
            _measure(c, graph, test, len(runs)),
            where,
            machine,
        )
        for (config, seed), c, graph in zip(runs, classifiers, graphs)
    ]


def runs_at_once(data: Data, protocol: str, config: RunConfig, device: str) -> int:
    """How many runs of a configuration are one computation on this device: one on a CPU."""
    return Experiment(data, protocol, [0], config, device).runs_at_once()


def timed_protocol(protocol: str, device: str) -> str:
    """The protocol under which a run is recorded whose time counts: one on another machine is another run."""
    return f"{protocol}{TIMED}{device_name(device)}, {machine_name()}"


def takes_as_long(config: RunConfig) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an epoch of another configuration takes as long: mere numbers do not decide it, dense features do."""

    def weight(values: Mapping[str, Any]) -> dict[str, Any]:
        shape = {key: value for key, value in values.items() if key not in _NUMBERS}
        return {
            **shape,
            "features": values.get("features") == "standard",
        }  # others stay as sparse as they were

    return lambda other: weight(other) == weight(config.to_dict())


@lru_cache
def machine_name() -> str:
    """The processor, the number of its cores that may be used, and the version of torch."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        processor = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
            processor,
        )
    return f"{processor}, {usable_cores()} cores, torch {torch.__version__.partition('+')[0]}"


def _settings(config: RunConfig) -> dict[str, Any]:
    return {**config.to_dict(), "preset": "none"}


def _measure(classifier: NodeClassifier, data: Data, test: bool, together: int) -> dict[str, float]:
    """What is kept of a run. Six decimals: more would say nothing, and a CSV then holds the very same numbers."""
    history = classifier.history_
    best = history.best_epoch
    metrics: dict[str, float] = {
        "val_accuracy": history.val_accuracy[best],
        "val_loss": history.val_loss[best],
        "seconds": history.seconds,
    }
    if test:
        found = scores(classifier.predict_proba(data), data)
        metrics |= {
            name: value
            for name, value in found.items()
            if not name.startswith(("train_", "val_accuracy"))
        }
    rounded = {name: round(float(value), 6) for name, value in metrics.items()}
    return {**rounded, "epochs": history.epochs, "best_epoch": best, "runs_together": together}
