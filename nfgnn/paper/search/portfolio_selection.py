"""Choose the portfolio of ``nfgnn auto`` from recorded runs.

The regret of a candidate on a graph is by how many points of the metric, on validation nodes, it is
worse than the best candidate. Greedy selection takes the candidate that lowers most the mean over
graphs of the smallest regret so far. When nothing lowers it any more, every graph has a good
configuration, and the selection starts over with the remaining candidates.

- The regret of a candidate that has no result on a graph is estimated from those candidates that
  do most alike on other graphs. A missing result neither favours nor punishes it.
- Of candidates that help about as much, the cheapest is taken.
- The first entry has no weights per node, because it is the default of ``nfgnn train``, whose
  models are also applied to new nodes.
- The first entries are cheap, and soon one of them ignores the edges and one ignores the features,
  so that a search answers early what the graph is worth.
- Those that ignore the edges have every scaling of the features. With a single one, features that
  need another would seem worthless.
"""

from collections.abc import Sequence

import numpy as np

from nfgnn.auto import FEATURES, LINKS
from nfgnn.paper.search.portfolio_matrix import Matrix, Values

ENTRIES = 28
"""Number of configurations that ship."""
CHEAP_ENTRIES = 4
"""So many entries are at most as expensive as the median candidate."""
FAMILY_ENTRIES = 6
"""So many entries contain one that ignores the edges and one that ignores the features."""
SCALING_ENTRIES = 12
"""So many entries contain one with every scaling of the features that ignores the edges."""
TOLERANCE = 0.05
"""Gains that differ by less, in points, are equal."""
_NEIGHBOURS = 10


def select_portfolio(matrix: Matrix, count: int = ENTRIES) -> list[int]:
    """Return the rows of the chosen candidates, in the order of the selection."""
    regret = estimated_regret(matrix)
    # Where nothing is chosen yet, the worst candidate is what one has.
    worst = np.max(regret, axis=0)
    best = worst.copy()
    chosen: list[int] = []
    while len(chosen) < min(count, len(matrix.candidates)):
        required = _required(matrix, chosen)
        allowed = np.array(_allowed(matrix, chosen, required))
        # An entry that must be there is the best of its kind alone.
        gains = _gains(regret[allowed], worst if required else best)
        if gains.max() <= TOLERANCE and not np.array_equal(best, worst):
            best = worst.copy()
            continue
        equal = allowed[gains >= gains.max() - TOLERANCE]
        cheapest = int(equal[np.argmin(matrix.cost[equal])])
        chosen.append(cheapest)
        best = np.minimum(best, regret[cheapest])
    return chosen


def estimated_regret(matrix: Matrix) -> Values:
    """Return the regret of all candidates, estimated where a result is missing."""
    from sklearn.impute import KNNImputer

    imputer = KNNImputer(n_neighbors=_NEIGHBOURS, weights="distance")
    regret: Values = imputer.fit_transform(matrix.regret())
    return regret


def _gains(regret: Values, best: Values) -> Values:
    """Return by how much each candidate lowers the mean over graphs of the smallest regret."""
    gains: Values = np.mean(best - np.minimum(best, regret), axis=1)
    return gains


def _required(matrix: Matrix, chosen: Sequence[int]) -> list[int]:
    """Return the candidates of which one must come next; empty if any candidate may."""
    families = [family if family in (FEATURES, LINKS) else "" for family in matrix.families]
    scalings = [
        candidate.config.training.features if family == FEATURES else ""
        for candidate, family in zip(matrix.candidates, matrix.families)
    ]
    for limit, kinds in ((FAMILY_ENTRIES, families), (SCALING_ENTRIES, scalings)):
        missing = set(kinds) - {""} - {kinds[row] for row in chosen}
        if missing and len(chosen) + len(missing) >= limit:
            return [row for row, kind in enumerate(kinds) if kind in missing]
    return []


def _allowed(matrix: Matrix, chosen: Sequence[int], required: Sequence[int]) -> list[int]:
    """Return the candidates that may come next."""
    rows = [row for row in required or range(len(matrix.candidates)) if row not in chosen]
    if not chosen:
        rows = [row for row in rows if not matrix.tied[row]] or rows
    cheap = [row for row in rows if matrix.cost[row] <= np.median(matrix.cost)]
    if cheap and len(chosen) < CHEAP_ENTRIES:
        return cheap
    return rows
