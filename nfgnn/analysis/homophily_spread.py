r"""How much local homophily varies beyond chance: evidence that one filter may not fit all nodes.

If every neighbour of a node of class c had the same class with the same probability :math:`p_c`, h
of a node with d neighbours would still vary around :math:`p_c` with variance
:math:`p_c(1-p_c)/d`: a node with one neighbour has h = 0 or 1 even in a graph with a single
pattern. What counts is the variation beyond that,

.. math:: ρ = \frac{\sum_v \hat r_v}{\sum_v p_{y_v} (1 - p_{y_v})}, \qquad
          \hat r_v = \frac{1}{d_v (d_v - 1)} \sum_{m \ne m'} e_{vm}\, e_{vm'}, \qquad
          e_{vm} = [y_m = y_v] - p_{y_v},

over the nodes with at least two neighbours: the mean correlation between two neighbours of a node,
given its class. If ρ = 0, all nodes of a class share one pattern and all variation is chance; if
ρ = 1, every node is entirely homophilic or entirely heterophilic. The standard error is that of a
ratio of sums over nodes, which are taken as independent.

Chance gives a node of class c a share of same-class neighbours equal to the share of all edge ends
that are in c. This value divides the nodes into two sides: nodes with at least that share
(``above_chance``), for which averaging over neighbours is informative, and nodes with a smaller one
(``below_chance``), for which differences from neighbours are. The two shares add up to 1. The
majority of Definition 1 (:math:`h > 1/2`, ``above_half``) is no such division: with one large class
a node can have :math:`h > 1/2` and still fewer neighbours of its class than chance gives.
"""

import math

from torch import Tensor

from nfgnn.analysis.homophily import edges_between_classes, own_class_counts

KEYS = (
    "deviation",
    "by_chance",
    "correlation",
    "correlation_error",
    "above_half",
    "above_chance",
    "below_chance",
)


def homophily_spread(counts: Tensor, y: Tensor, edge_index: Tensor) -> dict[str, float]:
    """Return how much h varies, or NaN for all values of a graph without labelled neighbours.

    - ``deviation``: standard deviation of h; ``by_chance``: its expectation with one pattern per
      class, from the differences between the classes and from chance within them.
    - ``correlation`` and ``correlation_error``: ρ and its standard error.
    - ``above_half``: share of nodes with h > 1/2.
    - ``above_chance`` and ``below_chance``: shares of nodes on the two sides of chance.

    Args:
        counts: classes of the 1-hop neighbours, from :func:`~nfgnn.analysis.class_counts`.
        y: labels ``[n]``, -1 where unlabelled.
        edge_index: edges in both directions, ``[2, 2E]``.
    """
    neighbours = counts.sum(1)
    nodes = (y >= 0) & (neighbours > 0)
    if not bool(nodes.any()):
        return dict.fromkeys(KEYS, math.nan)
    label = y[nodes]
    own = own_class_counts(counts, y)[nodes].double()
    degree = neighbours[nodes].double()
    h = own / degree
    edges = edges_between_classes(edge_index, y)
    from_class = edges.sum(1)
    p = (edges.diagonal() / from_class)[label]
    chance = (from_class / edges.sum())[label]
    variance_by_chance = p * (1 - p) / degree
    rho, error = _correlation(own, degree, p)
    below_chance = float((h < chance).double().mean())
    return {
        "deviation": float(h.std(correction=0)),
        "by_chance": float((variance_by_chance.mean() + p.var(correction=0)).sqrt()),
        "correlation": rho,
        "correlation_error": error,
        "above_half": float((h > 0.5).double().mean()),
        "above_chance": 1 - below_chance,
        "below_chance": below_chance,
    }


def _correlation(own: Tensor, degree: Tensor, p: Tensor) -> tuple[float, float]:
    """Return ρ and its standard error from the numbers of neighbours of the own class."""
    several = degree > 1
    own = own[several]
    degree = degree[several]
    p = p[several]
    variance = p * (1 - p)
    total = variance.sum()
    if float(total) == 0:
        return math.nan, math.nan
    # The square of the sum of e, without its terms m = m'.
    squares = own * (1 - p).square() + (degree - own) * p.square()
    pairs = (own - degree * p).square() - squares
    r = pairs / (degree * (degree - 1))
    rho = r.sum() / total
    residual = r - rho * variance
    error = residual.square().sum().sqrt() / total
    return float(rho), float(error)
