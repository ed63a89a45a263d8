r"""What one hop implies for two: Propositions 1 and 2 of Section 3, their remarks, a simulation.

The assumption: given a node's label, the labels of its t-hop neighbours are independent, equal to
it with probability α and of each other class with probability :math:`(1-α)/(C-1)`. Labels along a
path then form a Markov chain with matrix :math:`αI + \frac{1-α}{C-1}(J - I)`, whose second
eigenvalue is :math:`μ = (αC - 1)/(C - 1)`, so s such steps (t·s hops) lead to a node of the same
label with probability

.. math:: P_s = \frac{1}{C} + \Big(1 - \frac{1}{C}\Big) μ^s, \qquad
          P_2 = α^2 + \frac{(1-α)^2}{C-1}.

- **Proposition 1**: for :math:`C \ge 3` and :math:`α \le 2/C`, :math:`P_2 \le 1/2`: 2t-hop
  neighbourhoods are expected to prefer other classes. The condition is sufficient, not necessary.
  Exactly, :math:`P_2 \le 1/2` up to :math:`α^* = (1 + \sqrt{1 + C(C-3)/2}) / C`
  (:func:`preference_threshold`), which is :math:`2/3 = 2/C` for three classes and tends to
  :math:`\sqrt{1/2}` as C grows.
- **Remarks**: :math:`α \ge \sqrt{1/2}` is sufficient for a preference of the own class, whatever C;
  so are two classes, whatever α (except :math:`α = 1/2`, where both are equally frequent and
  Definition 1 says heterophily-preferred).
- **Proposition 2**: :math:`P_2 > α` for :math:`α < 1/C`; for :math:`1/C < α < 1` it is the other
  way round.
"""

import math

import torch
from torch import Tensor

from nfgnn.analysis.neighbourhood import class_counts

ALWAYS_HOMOPHILIC = math.sqrt(0.5)
"""Remark 1: from this α on, 2-hop neighbourhoods prefer the own class for any number of classes."""


def same_class_probability(alpha: float, classes: int, steps: int = 2) -> float:
    """Return P_s, the probability that a node ``steps`` steps away has the same label."""
    _check(alpha, classes)
    second = (alpha * classes - 1) / (classes - 1)
    return 1 / classes + (1 - 1 / classes) * second**steps


def preference(alpha: float, classes: int, steps: int = 2) -> float:
    """Return ε = P(same class) - P(another class), positive if homophily-preferred."""
    return 2 * same_class_probability(alpha, classes, steps) - 1


def preference_threshold(classes: int) -> float:
    """Return the α above which 2-hop neighbourhoods prefer the own class; 0 for two classes."""
    _check(0.0, classes)
    if classes == 2:
        return 0.0  # Remark 2
    root = math.sqrt(1 + classes * (classes - 3) / 2)
    return (1 + root) / classes


def surely_heterophilic(classes: int) -> float:
    """Return the bound 2/C of Proposition 1, up to which 2-hop neighbourhoods prefer others."""
    _check(0.0, classes)
    return 2 / classes if classes > 2 else 0.0


def gains_from_two_hops(alpha: float, classes: int) -> bool:
    """Return whether two steps lead to the own class more often than one (Proposition 2)."""
    _check(alpha, classes)
    return alpha < 1 / classes


def simulate_same_class(
    alpha: float, classes: int, hops: int = 2, nodes: int = 2000, trees: int = 20, seed: int = 0
) -> tuple[float, float]:
    """Estimate P_hops on random trees that satisfy the assumption; return it and its error.

    Every node is attached to a random earlier one and draws its label given that one's, so
    neighbours are independent given the label of the node between them. All pairs at exactly this
    distance are counted. Trees are independent, so their spread gives the standard error.
    """
    _check(alpha, classes)
    generator = torch.Generator().manual_seed(seed)
    shares = [_tree_share(alpha, classes, hops, nodes, generator) for _ in range(trees)]
    stacked = torch.stack(shares)
    error = stacked.std() / math.sqrt(trees)
    return float(stacked.mean()), float(error)


def _tree_share(
    alpha: float, classes: int, hops: int, nodes: int, generator: torch.Generator
) -> Tensor:
    """Return the share of same-class pairs at distance ``hops`` in one random tree."""
    draw = torch.rand(2, nodes, generator=generator, dtype=torch.float64)
    parent = (draw[0] * torch.arange(nodes)).long()
    shift = torch.randint(1, classes, (nodes,), generator=generator)
    shift = shift * (draw[1] >= alpha)
    labels = [int(torch.randint(classes, (1,), generator=generator))]
    for origin, change in zip(parent.tolist()[1:], shift.tolist()[1:]):
        labels.append((labels[origin] + change) % classes)
    y = torch.tensor(labels)
    one_way = torch.stack([torch.arange(1, nodes), parent[1:]])
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    counts = class_counts(edge_index, y, hops)
    same = counts.gather(1, y[:, None]).sum()
    return same.double() / counts.sum()


def _check(alpha: float, classes: int) -> None:
    if classes < 2 or not 0 <= alpha <= 1:
        raise ValueError(
            "at least 2 classes and a probability alpha are required, "
            f"got classes={classes}, alpha={alpha}"
        )
