"""The summary of several runs of one configuration, and the line that reports one run."""

from collections.abc import Mapping, Sequence
from typing import Any

from nfgnn.training.metrics import summarise
from nfgnn.training.run import RunSpec
from nfgnn.training.split_check import PARTS, missing_classes


def summarise_runs(
    metrics: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of ``summary.json``.

    Args:
        metrics: of every run, in the order of the seeds.
        facts: fields of the summary that do not come from the runs.
    """
    seconds = sum(run["seconds"] for run in metrics)
    epochs = sum(run["epochs"] for run in metrics)
    measured = [key for key in _score_keys(facts["metric"]) if all(key in run for run in metrics)]
    return {
        "dataset": facts["dataset"],
        "source": facts["source"],
        "model": facts["model"],
        "protocol": facts["protocol"],
        "metric": facts["metric"],
        "seeds": [run["seed"] for run in metrics],
        **{key: summarise([run[key] for run in metrics]) for key in measured},
        **_references(metrics, facts["classes"]),
        "epochs": [run["epochs"] for run in metrics],
        **dead_run_summary(metrics, measured),
        "seconds": seconds,
        "epoch_ms": 1000 * seconds / max(epochs, 1),
        "device": facts["device"],
        "filter": metrics[0].get("filter"),
        **{key: value for key, value in metrics[0].items() if key == "features"},
        "config": facts["config"],
    }


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
