"""Nodes worth a look, and one sentence on how much the filters of a run differ.

Distances between filters are root mean squares over the frequencies, relative to the response of
the global filter, which is the mean of Ψ over all nodes.
"""

from dataclasses import dataclass

import numpy as np

from nfgnn.explain.explorer.layout import principal_components
from nfgnn.explain.explorer.node_table import DEGENERATE, FilterColumns, NodeTable, RunColumns

LISTED = 5
CLOSE = 0.05
"""Two filters are close if their responses differ by less than this, relatively."""
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class SurprisingNodes:
    """Nodes that are surprising for the same reason, the most surprising one first."""

    title: str
    nodes: np.ndarray
    reasons: list[str]
    """One sentence per node."""


def response_distance(filters: FilterColumns, reference: np.ndarray) -> np.ndarray:
    """Return the distance of every node's response from that of the coefficients ``reference``."""
    gram = filters.terms.T @ filters.terms
    difference = filters.psi - reference
    square = np.einsum("nk,kl,nl->n", difference, gram, difference)
    scale = float(reference @ gram @ reference)
    return np.asarray(np.sqrt(square.clip(0) / max(scale, 1e-12)))


def surprising_nodes(table: NodeTable) -> list[SurprisingNodes]:
    """Return the nodes with unusual filters, confident mistakes and confident disagreements."""
    lists = []
    several = len(table.runs) > 1
    for run in table.runs:
        lists.append(_unusual_filters(run, several))
    for i, run in enumerate(table.runs):
        of = f", {run.name}" if several else ""
        wrong = (table.label >= 0) & ~table.correct(i)
        lists.append(_confident_mistakes(run, wrong, f"Most confident mistakes{of}"))
    if len(table.runs) == 2:
        lists.append(_disagreements(table.runs[0], table.runs[1]))
    return [found for found in lists if len(found.nodes)]


def filter_summary(run: RunColumns) -> str | None:
    """Return a sentence on filters whose first component holds nearly all of their variance."""
    if run.filters is None or run.filters.shared:
        return None
    components = principal_components(run.filters.psi)
    first_share = 1.0 if components is None else components[1][0]
    if first_share <= DEGENERATE:
        return None
    # The median, unlike the mean, is the filter of the majority if there is one.
    typical = np.median(run.filters.psi, axis=0).astype(np.float64)
    close = float((response_distance(run.filters, typical) < CLOSE).mean())
    if close < _NEARLY_ALL:
        return (
            f"The filters of {run.name} differ in one direction only: "
            f"the first principal component holds {_percent(first_share)} of their variance."
        )
    share = "all" if close == 1 else f"{_percent(close)} of the"
    return (
        f"Nearly all nodes share one filter: {share} responses of {run.name} "
        f"are within {100 * CLOSE:.0f} % of the median filter."
    )


def _percent(share: float) -> str:
    """Return a percentage that is rounded down, so that 100 % means all of them."""
    return f"{np.floor(1000 * share + 1e-9) / 10:g} %"


def _unusual_filters(run: RunColumns, several: bool) -> SurprisingNodes:
    title = f"Unusual filter, {run.name}" if several else "Unusual filter"
    if run.filters is None:
        return SurprisingNodes(title, np.empty(0, np.int64), [])
    distance = response_distance(run.filters, run.filters.mean)
    nodes = _largest(distance, distance >= CLOSE)
    subject = f"Its response in {run.name}" if several else "Its response"
    reasons = []
    for node in nodes:
        reasons.append(f"{subject} differs from the mean filter by {100 * distance[node]:.0f} %.")
    return SurprisingNodes(title, nodes, reasons)


def _confident_mistakes(run: RunColumns, wrong: np.ndarray, title: str) -> SurprisingNodes:
    nodes = _largest(run.confidence, wrong)
    reasons = []
    for node in nodes:
        confidence = 100 * run.confidence[node]
        reasons.append(f"{run.name} is wrong with a confidence of {confidence:.1f} %.")
    return SurprisingNodes(title, nodes, reasons)


def _disagreements(first: RunColumns, second: RunColumns) -> SurprisingNodes:
    both = np.minimum(first.confidence, second.confidence)
    nodes = _largest(both, first.predicted != second.predicted)
    reasons = []
    for node in nodes:
        reasons.append(
            f"{first.name} and {second.name} predict different classes, "
            f"both with a confidence of at least {100 * both[node]:.1f} %."
        )
    return SurprisingNodes("Most confident disagreements", nodes, reasons)


def _largest(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the nodes of a mask with the largest values, in descending order."""
    nodes = np.flatnonzero(mask)
    return nodes[np.argsort(-values[nodes], kind="stable")[:LISTED]]
