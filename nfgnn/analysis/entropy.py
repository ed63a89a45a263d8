r"""How mixed the classes around a node are: the label entropy of Section 3.

.. math::
    S_{N_i}(v) = -\sum_{y} \Big(\frac{|N_i^{(y)}(v)|}{|N_i(v)|} + ε\Big)
                            \log \Big(\frac{|N_i^{(y)}(v)|}{|N_i(v)|} + ε\Big), \qquad ε = 10^{-10}

in nats: (nearly) 0 where all neighbours are of one class, :math:`\log |\mathcal{Y}|` where all classes are equally
frequent. The node's own label plays no part, so nodes without a label have an entropy too; a node without labelled
neighbours has none (NaN). ε is the paper's; it moves values by less than :math:`10^{-8}`.
"""

import torch
from torch import Tensor

from nfgnn.analysis.neighbourhood import class_counts

EPSILON = 1e-10
_ROWS = 1 << 16


def label_entropy(edge_index: Tensor, y: Tensor, hops: int = 1, within: bool = False) -> Tensor:
    """S of every node, float64 ``[n]``; NaN where there is no labelled neighbour.

    Args:
        edge_index: links in both directions, ``[2, 2E]``.
        y: labels ``[n]``, -1 where there is none.
        hops: distance of the neighbours.
        within: take all neighbours within ``hops``, not only those at exactly this distance.
    """
    return entropy_of_counts(class_counts(edge_index, y, hops, within))


def entropy_of_counts(counts: Tensor) -> Tensor:
    """S of every row of :func:`~nfgnn.analysis.neighbourhood.class_counts`, block by block."""
    entropy = torch.empty(len(counts), dtype=torch.float64)
    for start in range(0, len(counts), _ROWS):
        block = counts[start : start + _ROWS].double()
        share = (
            block / block.sum(1, keepdim=True) + EPSILON
        )  # 0 / 0 is NaN: no neighbours, no entropy
        entropy[start : start + _ROWS] = -(share * share.log()).sum(1)
    return entropy
