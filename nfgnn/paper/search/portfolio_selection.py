"""Choose the portfolio of ``nfgnn auto`` from recorded runs.

The regret of a candidate on a graph is by how many points of the metric, on validation nodes, it is
worse than the best candidate. Greedy selection takes the candidate that lowers most the mean over
graphs of the smallest regret so far. When nothing lowers it any more, every graph has a good
configuration, and the selection starts over with the remaining candidates.

- A candidate without result on a graph is no help there.
- Of candidates that help about as much, the cheapest is taken.
- The first entries are cheap, and soon one of them ignores the edges and one ignores the features,
  so that a search answers early what the graph is worth.
"""

import numpy as np

from nfgnn.auto import FEATURES, LINKS
from nfgnn.paper.search.portfolio_matrix import Matrix, Values

ENTRIES = 28
"""Number of configurations that ship."""
CHEAP_ENTRIES = 4
"""So many entries are at most as expensive as the median candidate."""
FAMILY_ENTRIES = 6
"""So many entries contain one that ignores the edges and one that ignores the features."""
TOLERANCE = 0.05
"""Gains that differ by less, in points, are equal."""


def select_portfolio(matrix: Matrix, count: int = ENTRIES) -> list[int]:
    """Return the rows of the chosen candidates, in the order of the selection."""
    regret = np.where(np.isnan(matrix.validation), np.inf, matrix.regret())
    # Where nothing is chosen yet, the worst candidate is what one has.
    worst = np.max(np.where(np.isinf(regret), 0.0, regret), axis=0)
    best = worst.copy()
    chosen: list[int] = []
    while len(chosen) < min(count, len(matrix.candidates)):
        allowed = np.array(_allowed(matrix, chosen))
        gains = _gains(regret[allowed], best)
        if gains.max() <= TOLERANCE and not np.array_equal(best, worst):
            best = worst.copy()
            continue
        equal = allowed[gains >= gains.max() - TOLERANCE]
        cheapest = equal[np.argmin(matrix.cost[equal])]
        chosen.append(int(cheapest))
        best = np.minimum(best, regret[cheapest])
    return chosen


def _gains(regret: Values, best: Values) -> Values:
    """Return by how much each candidate lowers the mean over graphs of the smallest regret."""
    gains: Values = np.mean(best - np.minimum(best, regret), axis=1)
    return gains


def _allowed(matrix: Matrix, chosen: list[int]) -> list[int]:
    """Return the candidates that may come next."""
    families = matrix.families
    rows = [row for row in range(len(families)) if row not in chosen]
    required = ({FEATURES, LINKS} & set(families)) - {families[row] for row in chosen}
    if required and len(chosen) + len(required) >= FAMILY_ENTRIES:
        rows = [row for row in rows if families[row] in required]
    cheap = [row for row in rows if matrix.cost[row] <= np.median(matrix.cost)]
    if cheap and len(chosen) < CHEAP_ENTRIES:
        return cheap
    return rows
