r"""How much local homophily varies beyond chance: the evidence that one filter may not fit all nodes.

If every neighbour of a node of class c were of its class with the same probability :math:`p_c`, h of a node with d
neighbours would still scatter around :math:`p_c` with variance :math:`p_c(1-p_c)/d`: a node with one neighbour has
h = 0 or 1 even in a graph with one single pattern. So the spread that counts is what is left,

.. math:: ρ = \frac{\sum_v d_v (d_v - 1) \,\hat r_v}{\sum_v d_v (d_v - 1)\, p_{y_v} (1 - p_{y_v})}, \qquad
          d_v (d_v - 1)\, \hat r_v = \Big( \sum_{m \in N(v)} e_{vm} \Big)^2 - \sum_{m \in N(v)} e_{vm}^2,
          \qquad e_{vm} = [y_m = y_v] - p_{y_v},

the mean correlation of two neighbours of one node, given its class: do two neighbours agree in agreeing? 0: one pattern
for all nodes of a class, all variety is chance; 1: every node is all homophilic or all heterophilic. (With the graph's
own means for :math:`p_c` an independent graph gives slightly less than 0.)

``sides`` are the nodes that one filter cannot serve alike: those with more neighbours of their own class than of all
others together (:math:`h > 1/2`, Definition 1: averaging helps) and those with fewer than chance would give
(:math:`h` below the share of links that end in their class: differences help).
"""

import math

from torch import Tensor

from nfgnn.analysis.homophily import class_links


def homophily_spread(counts: Tensor, y: Tensor, edge_index: Tensor) -> dict[str, float]:
    """Standard deviation of h, its part by chance, ρ, and the shares of nodes on either side; NaN where undefined.

    Args:
        counts: classes of the 1-hop neighbours, :func:`~nfgnn.analysis.neighbourhood.class_counts`.
        y: labels ``[n]``, -1 where there is none.
        edge_index: links in both directions.
    """
    nodes = (y >= 0) & (counts.sum(1) > 0)
    if not bool(nodes.any()):
        return dict.fromkeys(("deviation", "by_chance", "correlation", "above_half", "below_chance"), math.nan)
    links = class_links(edge_index, y)
    own = counts.gather(1, y.clamp(min=0)[:, None])[nodes, 0].double()
    degree, label = counts.sum(1)[nodes].double(), y[nodes]
    h = own / degree
    p = (links.diagonal() / links.sum(1))[label]
    chance = (links.sum(1) / links.sum())[label]
    squared = own * (1 - p).square() + (degree - own) * p.square()
    together = ((own - degree * p).square() - squared).sum()
    possible = (degree * (degree - 1) * p * (1 - p)).sum()
    return {
        "deviation": float(h.std(correction=0)),
        "by_chance": float((p * (1 - p) / degree).mean().sqrt()),
        "correlation": float(together / possible),
        "above_half": float((h > 0.5).double().mean()),
        "below_chance": float((h < chance).double().mean()),
    }
