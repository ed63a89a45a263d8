"""The registered metrics."""

from nfgnn.training.metrics import METRICS

USES = {
    "class": "the predicted class of a node",
    "ranking": "the order of the nodes by probability",
    "probabilities": "the probabilities",
}


def metrics() -> str:
    """Return a table of all metrics."""
    lines = ["| name | title | better | computed from | every class needs a node |"]
    lines.append("|---|---|---|---|:-:|")
    for metric in METRICS.values():
        better = "higher" if metric.greater_is_better else "lower"
        needed = "✓" if metric.needs_every_class else "–"
        lines.append(
            f"| `{metric.name}` | {metric.title} | {better} | {USES[metric.uses]} | {needed} |"
        )
    return "\n".join(lines)
