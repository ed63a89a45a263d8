r"""Homophily and label entropy of nodes and of whole graphs.

All measures take the two-way ``edge_index`` and the labels ``y`` of a validated graph. Unlabelled
nodes (-1) and their edges are left out. With :math:`n_{ab}` edges from class a to class b,
:math:`D_a = \sum_b n_{ab}`, :math:`m = \sum_a D_a` and :math:`C` classes:

- **node**: the mean over nodes of the share of neighbours in the node's own class,
  :math:`h_{N_1}(v) = |\{m \in N_1(v): y_m = y_v\}| / |N_1(v)|`. Nodes without neighbours have no
  such share. They are left out, or count as 0 with ``isolated="zero"``, the convention of PyG and
  of most published values.
- **edge**: :math:`h = \sum_a n_{aa} / m`.
- **class-insensitive** (Lim et al., 2021):
  :math:`\frac{1}{C-1} \sum_a \max(0, n_{aa}/D_a - N_a/N)` with class sizes :math:`N_a`; 0 for
  random edges, whatever the class sizes.
- **chance**: edge homophily that random edges with the same degrees would have,
  :math:`\sum_a p_a^2` with :math:`p_a = D_a / m`.
- **adjusted** (Platonov et al., 2023): :math:`(h - \sum_a p_a^2) / (1 - \sum_a p_a^2)`; 0 for
  random edges, 1 for perfect agreement, comparable between graphs.
- **label informativeness** (Platonov et al., 2023): the share of a node's label entropy that the
  label of one random neighbour removes, :math:`2 - H(p_{ab}) / H(p_a)` with
  :math:`p_{ab} = n_{ab} / m`; high for any regular pattern, homophilic or not.
- **label entropy** (Section 3 of the paper), in nats:

  .. math::
      S_{N_i}(v) = -\sum_{y} \Big(\frac{|N_i^{(y)}(v)|}{|N_i(v)|} + ε\Big)
                              \log \Big(\frac{|N_i^{(y)}(v)|}{|N_i(v)|} + ε\Big),
      \qquad ε = 10^{-10}

  It is (nearly) 0 if all neighbours have one class, and :math:`\log |\mathcal{Y}|` if all classes
  are equally frequent. A node's own label plays no part, so unlabelled nodes have an entropy too.
  ε is the paper's; it changes values by less than :math:`10^{-8}`.

Undefined values (no edges, one class) are NaN.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.analysis.neighbourhood import class_counts
from nfgnn.errors import UserError

EPSILON = 1e-10
_BLOCK_ROWS = 1 << 16


def homophily(edge_index: Tensor, y: Tensor, isolated: str = "omit") -> dict[str, float]:
    """Return the measures ``node``, ``edge``, ``class_insensitive`` and ``adjusted`` of a graph.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
        isolated: ``"omit"`` nodes without labelled neighbours from the node mean, or count them as
            ``"zero"``.
    """
    if isolated not in ("omit", "zero"):
        raise UserError(f"isolated={isolated!r} is not valid: use 'omit' or 'zero'")
    local = local_homophily(edge_index, y)
    if isolated == "zero":
        local = local[y >= 0].nan_to_num(0.0)
    else:
        local = local[~local.isnan()]
    edges = edges_between_classes(edge_index, y)
    share = edges / edges.sum()
    # A quotient of sums of whole numbers: the sum of the shares can exceed 1 by rounding.
    edge = edges.trace() / edges.sum()
    chance = _agreement_by_chance(share)
    return {
        "node": float(local.mean()),
        "edge": float(edge),
        "class_insensitive": _class_insensitive(edges, y),
        "adjusted": float((edge - chance) / (1 - chance)),
    }


def homophily_by_chance(edge_index: Tensor, y: Tensor) -> float:
    """Return the edge homophily that random edges with the same degrees would have.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
    """
    edges = edges_between_classes(edge_index, y)
    return float(_agreement_by_chance(edges / edges.sum()))


def local_homophily(edge_index: Tensor, y: Tensor, hops: int = 1, within: bool = False) -> Tensor:
    """Return the share of labelled neighbours in each node's class, float64 ``[n]``.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
        hops: distance of the neighbours.
        within: take all neighbours within ``hops``, not only those at exactly this distance.
    """
    if hops > 1:
        return homophily_of_counts(class_counts(edge_index, y, hops, within), y)
    row, col = _labelled_edges(edge_index, y)
    agrees = y[row] == y[col]
    same = torch.bincount(row[agrees], minlength=len(y))
    degree = torch.bincount(row, minlength=len(y))
    return same.double() / degree  # 0 / 0 is NaN, as intended for a node without neighbours


def homophily_of_counts(counts: Tensor, y: Tensor) -> Tensor:
    """Return h of every node from its row of :func:`~nfgnn.analysis.class_counts`."""
    own = own_class_counts(counts, y).double()
    return torch.where(y >= 0, own / counts.sum(1), math.nan)


def own_class_counts(counts: Tensor, y: Tensor) -> Tensor:
    """Return the entry of each node's own class; meaningless for unlabelled nodes."""
    column = y.clamp(min=0).to(counts.device)
    return counts.gather(1, column[:, None]).squeeze(1)


def label_entropy(edge_index: Tensor, y: Tensor, hops: int = 1, within: bool = False) -> Tensor:
    """Return S of every node, float64 ``[n]``; NaN for nodes without labelled neighbours.

    Args:
        edge_index: edges in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where unlabelled.
        hops: distance of the neighbours.
        within: take all neighbours within ``hops``, not only those at exactly this distance.
    """
    return entropy_of_counts(class_counts(edge_index, y, hops, within))


def entropy_of_counts(counts: Tensor) -> Tensor:
    """Return S of every row of :func:`~nfgnn.analysis.class_counts`."""
    entropy = torch.empty(len(counts), dtype=torch.float64)
    # Blocks of rows bound the memory of the float64 copies.
    for start in range(0, len(counts), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        block = counts[rows].double()
        share = block / block.sum(1, keepdim=True) + EPSILON
        entropy[rows] = -(share * share.log()).sum(1)
    return entropy


def label_informativeness(edge_index: Tensor, y: Tensor) -> float:
    """Return how much the label of a random neighbour reveals about a node's own, from 0 to 1."""
    edges = edges_between_classes(edge_index, y)
    share = edges / edges.sum()
    return float(2 - _entropy(share) / _entropy(share.sum(dim=1)))


def edges_between_classes(edge_index: Tensor, y: Tensor) -> Tensor:
    """Return the number of edges between every two classes, in both directions, ``[C, C]``."""
    row, col = _labelled_edges(edge_index, y)
    classes = max(1, int(y.max()) + 1)
    pair = y[row] * classes + y[col]
    counts = torch.bincount(pair, minlength=classes**2)
    return counts.reshape(classes, classes).double()


@dataclass(frozen=True)
class AccuracyByHomophily:
    """Accuracy in equal intervals of h from 0 to 1; the last one includes 1."""

    limits: Tensor
    """Limits of the intervals, ``[intervals + 1]``."""
    nodes: Tensor
    """Number of nodes in each interval, int64."""
    accuracy: Tensor
    """Share of correctly classified nodes, float64; NaN for intervals without nodes."""


def accuracy_by_homophily(correct: Tensor, h: Tensor, intervals: int = 5) -> AccuracyByHomophily:
    """Return the accuracy by interval of local homophily; nodes without h are left out.

    Args:
        correct: whether each node is classified correctly, boolean ``[n]``.
        h: local homophily of the same nodes, NaN where undefined.
        intervals: number of equal intervals of [0, 1].
    """
    interval = homophily_interval(h, intervals)
    defined = interval >= 0
    nodes = torch.bincount(interval[defined], minlength=intervals)
    right = torch.bincount(interval[defined & correct], minlength=intervals)
    limits = torch.linspace(0, 1, intervals + 1, dtype=torch.float64)
    return AccuracyByHomophily(limits, nodes, right.double() / nodes)


def homophily_interval(h: Tensor, intervals: int) -> Tensor:
    """Return the index of each node's interval of [0, 1], int64; -1 where h is undefined."""
    # A share such as 3/5 may fall short of a limit by a rounding error.
    position = h.nan_to_num(0.0) * intervals + 1e-9
    index = position.long().clamp(max=intervals - 1)
    return index.masked_fill(h.isnan(), -1)


def _labelled_edges(edge_index: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    row, col = edge_index
    if bool((y < 0).any()):
        labelled = (y[row] >= 0) & (y[col] >= 0)
        row = row[labelled]
        col = col[labelled]
    return row, col


def _agreement_by_chance(share: Tensor) -> Tensor:
    """Return how often two random ends of edges have one class, from shares of edges [C, C]."""
    return share.sum(dim=1).square().sum()


def _class_insensitive(edges: Tensor, y: Tensor) -> float:
    classes = len(edges)
    if classes < 2 or not bool(edges.any()):
        return math.nan
    size = torch.bincount(y[y >= 0], minlength=classes).double()
    # A class without edges adds nothing.
    within = edges.diagonal() / edges.sum(dim=1)
    excess = within.nan_to_num(0.0) - size / size.sum()
    return float(excess.clamp(min=0).sum() / (classes - 1))


def _entropy(share: Tensor) -> Tensor:
    entropy: Tensor = -torch.special.xlogy(share, share).sum()
    return entropy
