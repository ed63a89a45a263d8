r"""How much linked nodes agree: homophily of nodes and of whole graphs.

All measures take the two-way ``edge_index`` and the labels ``y`` of a checked graph. Unlabelled nodes (-1)
and their links are left out. Writing :math:`n_{ab}` for the number of links from class a to class b,
:math:`D_a = \sum_b n_{ab}`, :math:`m = \sum_a D_a` and :math:`C` classes:

- **node**: the mean over nodes of the share of neighbours in the node's own class,
  :math:`h_{N_1}(v) = |\{m \in N_1(v): y_m = y_v\}| / |N_1(v)|`. A node without neighbours has no such share; it is
  left out, or counted as 0 with ``isolated="zero"``, the convention of PyG and of published values.
- **edge**: :math:`h = \sum_a n_{aa} / m`.
- **class-insensitive** (Lim et al., 2021): :math:`\frac{1}{C-1} \sum_a \max(0, n_{aa}/D_a - N_a/N)` with
  class sizes :math:`N_a`; 0 for random links, whatever the sizes of the classes.
- **adjusted** (Platonov et al., 2023): :math:`(h - \sum_a p_a^2) / (1 - \sum_a p_a^2)` with :math:`p_a =
  D_a / m`; 0 for random links, 1 for perfect agreement, comparable between graphs.
- **label informativeness** (Platonov et al., 2023): the share of a node's label entropy that the label of
  one random neighbour takes away, :math:`2 - H(p_{ab}) / H(p_a)` with :math:`p_{ab} = n_{ab} / m`; high for
  any regular pattern, homophilic or not.

Whatever is undefined (no links, one class) is NaN.
"""

import math

import torch
from torch import Tensor

from nfgnn.analysis.neighbourhood import class_counts
from nfgnn.errors import UserError


def homophily(edge_index: Tensor, y: Tensor, isolated: str = "omit") -> dict[str, float]:
    """The four homophily measures of a graph: ``node``, ``edge``, ``class_insensitive``, ``adjusted``.

    Args:
        edge_index: links in both directions, [2, 2E].
        y: labels [n], -1 where there is none.
        isolated: ``"omit"`` nodes without (labelled) neighbours from the node mean, or count them as
            ``"zero"``.
    """
    if isolated not in ("omit", "zero"):
        raise UserError(f"isolated={isolated!r} is not known; it is 'omit' or 'zero'.")
    local = local_homophily(edge_index, y)
    node = local[y >= 0].nan_to_num(0.0) if isolated == "zero" else local[~local.isnan()]
    links = class_links(edge_index, y)
    share = links / links.sum()
    degree = share.sum(dim=1)
    edge, chance = share.trace(), degree.square().sum()
    return {
        "node": float(node.mean()),
        "edge": float(edge),
        "class_insensitive": _class_insensitive(links, y),
        "adjusted": float((edge - chance) / (1 - chance)),
    }


def local_homophily(edge_index: Tensor, y: Tensor, hops: int = 1, within: bool = False) -> Tensor:
    """The share of each node's labelled neighbours in its own class, float64 [n]; NaN where undefined.

    Args:
        edge_index: links in both directions, [2, 2E].
        y: labels [n], -1 where there is none.
        hops: distance of the neighbours.
        within: take all neighbours within ``hops``, not only those at exactly this distance.
    """
    if hops > 1:
        return homophily_of_counts(class_counts(edge_index, y, hops, within), y)
    row, col = _labelled_links(edge_index, y)
    degree = torch.bincount(row, minlength=len(y)).double()
    same = torch.bincount(row[y[row] == y[col]], minlength=len(y)).double()
    return same / degree  # 0 / 0 is NaN, which is what a node without neighbours has


def homophily_of_counts(counts: Tensor, y: Tensor) -> Tensor:
    """h of every node from the rows of :func:`~nfgnn.analysis.neighbourhood.class_counts`."""
    own = counts.gather(1, y.clamp(min=0)[:, None].to(counts.device))[:, 0].double()
    return torch.where(y >= 0, own / counts.sum(1), math.nan)


def label_informativeness(edge_index: Tensor, y: Tensor) -> float:
    """How much the label of a random neighbour tells about a node's own, from 0 to 1."""
    share = class_links(edge_index, y)
    share = share / share.sum()
    return float(2 - _entropy(share) / _entropy(share.sum(dim=1)))


def class_links(edge_index: Tensor, y: Tensor) -> Tensor:
    """The number of links between every two classes, float64 [C, C], each link counted in both directions."""
    row, col = _labelled_links(edge_index, y)
    classes = max(1, int(y.max()) + 1)
    counts = torch.bincount(y[row] * classes + y[col], minlength=classes * classes)
    return counts.reshape(classes, classes).double()


def _labelled_links(edge_index: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    row, col = edge_index
    if bool((y < 0).any()):
        known = (y[row] >= 0) & (y[col] >= 0)
        row, col = row[known], col[known]
    return row, col


def _class_insensitive(links: Tensor, y: Tensor) -> float:
    classes = len(links)
    if classes < 2 or not bool(links.any()):
        return math.nan
    size = torch.bincount(y[y >= 0], minlength=classes).double()
    within = (links.diagonal() / links.sum(dim=1)).nan_to_num(
        0.0
    )  # a class without links adds nothing
    return float((within - size / size.sum()).clamp(min=0).sum() / (classes - 1))


def _entropy(share: Tensor) -> Tensor:
    entropy: Tensor = -torch.special.xlogy(share, share).sum()
    return entropy
