r"""How much local homophily varies beyond chance: the evidence that one filter may not fit all nodes.

If every neighbour of a node of class c were of its class with the same probability :math:`p_c`, h of a node with d
neighbours would still scatter around :math:`p_c` with variance :math:`p_c(1-p_c)/d`: a node with one neighbour has
h = 0 or 1 even in a graph with one single pattern. So the spread that counts is what is left,

.. math:: ρ = \frac{\sum_v \hat r_v}{\sum_v p_{y_v} (1 - p_{y_v})}, \qquad
          \hat r_v = \frac{1}{d_v (d_v - 1)} \sum_{m \ne m'} e_{vm}\, e_{vm'}, \qquad e_{vm} = [y_m = y_v] - p_{y_v},

over the nodes with two neighbours or more: the mean correlation of two neighbours of one node, given its class. Do
two neighbours agree in agreeing? 0: one pattern for all nodes of a class, all variety is chance; 1: every node is all
homophilic or all heterophilic. The standard error is that of a ratio of sums over nodes; it takes nodes as independent.

The two sides are nodes that one filter cannot serve alike: those with more neighbours of their own class than of all
others together (:math:`h > 1/2`, Definition 1: averaging helps) and those with fewer than chance would give
(:math:`h` below the share of links that end in their class: differences help).
"""

import math

from torch import Tensor

from nfgnn.analysis.homophily import class_links

KEYS = ("deviation", "by_chance", "correlation", "correlation_error", "above_half", "below_chance")


def homophily_spread(counts: Tensor, y: Tensor, edge_index: Tensor) -> dict[str, float]:
    """Standard deviation of h, its part by chance, ρ and its error, the shares of nodes on either side, or NaN.

    Args:
        counts: classes of the 1-hop neighbours, :func:`~nfgnn.analysis.neighbourhood.class_counts`.
        y: labels ``[n]``, -1 where there is none.
        edge_index: links in both directions.
    """
    nodes = (y >= 0) & (counts.sum(1) > 0)
    if not bool(nodes.any()):
        return dict.fromkeys(KEYS, math.nan)
    links = class_links(edge_index, y)
    own = counts.gather(1, y.clamp(min=0)[:, None])[nodes, 0].double()
    degree, label = counts.sum(1)[nodes].double(), y[nodes]
    h = own / degree
    p = (links.diagonal() / links.sum(1))[label]
    chance = (links.sum(1) / links.sum())[label]
    return {
        "deviation": float(h.std(correction=0)),
        "by_chance": float((p * (1 - p) / degree).mean().sqrt()),
        **_correlation(own, degree, p),
        "above_half": float((h > 0.5).double().mean()),
        "below_chance": float((h < chance).double().mean()),
    }


def _correlation(own: Tensor, degree: Tensor, p: Tensor) -> dict[str, float]:
    """ρ and its standard error from the numbers of neighbours of the own class."""
    several = degree > 1
    own, degree, p = own[several], degree[several], p[several]
    variance = p * (1 - p)
    if float(variance.sum()) == 0:
        return {"correlation": math.nan, "correlation_error": math.nan}
    squares = (
        own * (1 - p).square() + (degree - own) * p.square()
    )  # the pairs m = m' in the square of the sum
    together = ((own - degree * p).square() - squares) / (degree * (degree - 1))
    rho = together.sum() / variance.sum()
    error = (together - rho * variance).square().sum().sqrt() / variance.sum()
    return {"correlation": float(rho), "correlation_error": float(error)}
