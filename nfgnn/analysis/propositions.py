r"""What one hop says about two: Propositions 1 and 2 of Section 3 and their remarks, and a simulation of both.

The assumption: given a node's label, the labels of its t-hop neighbours are independent, equal to it with probability α
and of each other class with probability :math:`(1-α)/(C-1)`. Labels along a path then are a Markov chain with matrix
:math:`αI + \frac{1-α}{C-1}(J - I)`, whose second eigenvalue is :math:`μ = (αC - 1)/(C - 1)`, so s such steps (t·s hops)
lead to a node of the same label with probability

.. math:: P_s = \frac{1}{C} + \Big(1 - \frac{1}{C}\Big) μ^s, \qquad P_2 = α^2 + \frac{(1-α)^2}{C-1}.

- **Proposition 1**: for :math:`C \ge 3` and :math:`α \le 2/C`, :math:`P_2 \le 1/2`: 2t-hop neighbourhoods are expected
  to prefer other classes. The condition is sufficient, not necessary. Exactly, :math:`P_2 \le 1/2` up to
  :math:`α^* = (1 + \sqrt{1 + C(C-3)/2}) / C` (:func:`preference_threshold`), which is :math:`2/3 = 2/C` for three
  classes and tends to :math:`\sqrt{1/2}` as C grows.
- **Remarks**: :math:`α \ge \sqrt{1/2}` is enough for a preference of the own class, whatever C; two classes are enough,
  whatever α (but for :math:`α = 1/2`, where both are equally frequent and Definition 1 says heterophily-preferred).
- **Proposition 2**: :math:`P_2 > α` for :math:`α < 1/C`; for :math:`1/C < α < 1` it is the other way round.
"""

import math

import torch
from torch import Tensor

from nfgnn.analysis.neighbourhood import nested_class_counts

ALWAYS_HOMOPHILIC = math.sqrt(0.5)
"""Remark 1: from this α on 2-hop neighbourhoods prefer the own class for every number of classes."""


def same_class_probability(alpha: float, classes: int, steps: int = 2) -> float:
    """P_s: how probably a node ``steps`` steps away (two: 2t hops) has the same label."""
    _check(alpha, classes)
    second = (alpha * classes - 1) / (classes - 1)
    return 1 / classes + (1 - 1 / classes) * second**steps


def preference(alpha: float, classes: int, steps: int = 2) -> float:
    """ε = P(same class) - P(another class): positive where the neighbourhood is expected to be homophily-preferred."""
    return 2 * same_class_probability(alpha, classes, steps) - 1


def preference_threshold(classes: int) -> float:
    """The α from which on the 2-hop neighbourhood prefers the own class; 0 for two classes (Remark 2)."""
    _check(0.0, classes)
    return 0.0 if classes == 2 else (1 + math.sqrt(1 + classes * (classes - 3) / 2)) / classes


def surely_heterophilic(classes: int) -> float:
    """Proposition 1's sufficient bound 2/C: up to it 2-hop neighbourhoods prefer other classes."""
    _check(0.0, classes)
    return 2 / classes if classes > 2 else 0.0


def gains_from_two_hops(alpha: float, classes: int) -> bool:
    """Proposition 2: whether two steps lead to the own class more often than one, which is so for α < 1/C."""
    _check(alpha, classes)
    return alpha < 1 / classes


def simulate_same_class(
    alpha: float, classes: int, hops: int = 2, nodes: int = 2000, trees: int = 20, seed: int = 0
) -> tuple[float, float]:
    """P_hops measured on random trees whose labels fulfil the assumption: estimate and its standard error.

    Every node hangs on a random earlier one and draws its label given that one's, so neighbours are independent given
    the label of the node between them. All pairs at exactly this distance are counted; trees are independent, so their
    spread gives the error.
    """
    _check(alpha, classes)
    generator = torch.Generator().manual_seed(seed)
    shares = torch.stack(
        [_tree_share(alpha, classes, hops, nodes, generator) for _ in range(trees)]
    )
    return float(shares.mean()), float(shares.std() / math.sqrt(trees))


def _tree_share(
    alpha: float, classes: int, hops: int, nodes: int, generator: torch.Generator
) -> Tensor:
    draw = torch.rand(2, nodes, generator=generator, dtype=torch.float64)
    parent = (draw[0] * torch.arange(nodes)).long()
    shift = torch.randint(1, classes, (nodes,), generator=generator) * (draw[1] >= alpha)
    y, line = [int(torch.randint(classes, (1,), generator=generator))], parent.tolist()
    for v, change in enumerate(shift.tolist()[1:], start=1):
        y.append((y[line[v]] + change) % classes)
    child = torch.arange(1, nodes)
    edge_index = torch.stack([torch.cat([child, parent[1:]]), torch.cat([parent[1:], child])])
    labels = torch.tensor(y)
    counts = nested_class_counts(edge_index, labels, hops)
    exact = counts[-1] - counts[-2] if hops > 1 else counts[-1]
    same = exact.gather(1, labels[:, None]).sum()
    return same.double() / exact.sum()


def _check(alpha: float, classes: int) -> None:
    if classes < 2 or not 0 <= alpha <= 1:
        raise ValueError(
            f"needs at least 2 classes and a probability alpha, got classes={classes}, alpha={alpha}"
        )
