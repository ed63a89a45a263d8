"""A finished run as a row of facts."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nfgnn.errors import UserError
from nfgnn.training.config import RunConfig
from nfgnn.training.device import device_name, machine_name
from nfgnn.training.metrics import scores
from nfgnn.training.run import RunResult

RESULTS_VERSION = 1
"""Raised by hand when results change by more than rounding; older records are then not used."""
_TIMED_SUFFIX = ", timed on "
"""Older versions appended this and the machine to the protocol of a timed run."""


@dataclass(frozen=True)
class Record:
    """One run and its scores."""

    dataset: str
    fingerprint: str
    """Hash of the graph's content: :func:`nfgnn.training.inputs.fingerprint`."""
    protocol: str
    seed: int
    config: Mapping[str, Any]
    """:meth:`RunConfig.to_dict`: the name of the model and every setting."""
    metrics: Mapping[str, float]
    """``test_accuracy``, ``val_loss``, ``epochs``, ``seconds``, …: fractions and seconds.

    ``restarts`` and ``dead`` (:mod:`nfgnn.training.dead_runs`) are there where they are not 0.
    """
    device: str
    machine: str
    version: int = RESULTS_VERSION
    timed: bool = False
    """Whether the run was made for its time: alone, after a warm-up."""

    def check(self) -> None:
        """Raise :class:`ValueError` if a value from a file cannot be that of a run."""
        texts = (self.dataset, self.fingerprint, self.protocol, self.device, self.machine)
        whole = (self.seed, self.version)
        right = all(isinstance(text, str) for text in texts)
        right &= all(isinstance(number, int) and 0 <= number < 2**63 for number in whole)
        right &= isinstance(self.config, Mapping) and isinstance(self.config.get("model"), str)
        right &= isinstance(self.metrics, Mapping)
        if not right or not all(isinstance(v, int | float) for v in self.metrics.values()):
            raise ValueError("a value does not belong to a run")

    @property
    def model(self) -> str:
        return str(self.config["model"])

    @property
    def dead(self) -> bool:
        """Whether the run never rose above chance: see :mod:`nfgnn.training.dead_runs`."""
        return bool(self.metrics.get("dead"))

    @property
    def key(self) -> str:
        """Hash of everything that identifies the run. Timed runs differ by machine."""
        where = (self.device, self.machine) if self.timed else None
        return run_key(self.fingerprint, self.protocol, self.seed, self.config, self.version, where)

    @classmethod
    def of(cls, result: RunResult, score_test: bool = True) -> "Record":
        """Return the record of a finished run.

        Args:
            result: the run.
            score_test: whether to score the test nodes. A search must not see them.
        """
        spec = result.spec
        return cls(
            dataset=spec.graph.name,
            fingerprint=spec.graph.fingerprint,
            protocol=spec.protocol,
            seed=spec.seed,
            config=spec.config.to_dict(),
            metrics=_metrics(result, score_test),
            device=device_name(result.classifier.device),
            machine=machine_name(),
            timed=spec.timed,
        )

    def normalised(self) -> "Record":
        """Return the record as the present version writes it.

        Settings that were added since get their defaults, so a new setting does not separate old
        runs from new ones.
        """
        return replace(self.with_plain_protocol(), config=up_to_date(self.config))

    def with_plain_protocol(self) -> "Record":
        """Return the record with the field ``timed`` for a machine appended to the protocol."""
        protocol, suffix, _ = self.protocol.partition(_TIMED_SUFFIX)
        return replace(self, protocol=protocol, timed=self.timed or bool(suffix))


def run_key(
    fingerprint: str,
    protocol: str,
    seed: int,
    config: Mapping[str, Any],
    version: int = RESULTS_VERSION,
    timed_on: tuple[str, str] | None = None,
) -> str:
    """Return the hash that identifies a run.

    Args:
        timed_on: device and machine of a timed run. The time of a run on another machine is
            another result.
    """
    parts: list[Any] = [fingerprint, protocol, seed, dict(config), version]
    if timed_on is not None:
        parts.append({"timed_on": list(timed_on)})
    return digest(parts)


def up_to_date(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded configuration with the settings that were added since."""
    try:
        return RunConfig.from_dict(config).to_dict()
    except UserError:  # the model or a setting no longer exists
        return dict(config)


def digest(value: Any) -> str:
    """Return a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _metrics(result: RunResult, score_test: bool) -> dict[str, float]:
    """The scores of a run, rounded to six decimals, so that text files hold the same numbers."""
    classifier = result.classifier
    history = classifier.history_
    best = history.best_epoch
    metrics: dict[str, float] = {
        "val_accuracy": history.val_accuracy[best],
        "val_loss": history.val_loss[best],
        "seconds": history.seconds,
    }
    metric = result.spec.metric
    if history.criterion.has_curve and not math.isnan(history.val_metric[best]):
        metrics[f"val_{metric.name}"] = history.val_metric[best]
    if score_test:
        found = scores(classifier.predict_proba(result.data), result.data, metric)
        for name, value in found.items():
            if not name.startswith("train_"):
                metrics.setdefault(name, value)
    rounded = {name: round(float(value), 6) for name, value in metrics.items()}
    return {
        **rounded,
        "epochs": history.epochs,
        "best_epoch": best,
        "runs_together": result.batch_size,
        **result.dead_run_metrics(),
    }
