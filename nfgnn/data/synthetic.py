r"""The built-in graph: a contextual stochastic block model with a dial for *mixed* local homophily.

Every node has a class and a **local pattern**. Nodes of pattern 0 are homophilic, nodes of pattern 1 are
heterophilic and nodes of pattern 2 have random neighbourhoods. Links join nodes of the same pattern only, so
a node's whole neighbourhood follows its pattern: a link stays within the class with probability
``homophily[pattern]`` (:math:`1/C` for pattern 2) and goes to one of the other classes, uniformly, otherwise.
Features are

.. math::
    x_i = s \, \tfrac{\sqrt{f}}{2} \, \mu_{y_i} + \varepsilon_i, \qquad \varepsilon_i \sim \mathcal{N}(0, I),

with unit class means :math:`\mu_c` and signal :math:`s`. One filter for all nodes cannot serve both patterns,
which is why this graph is the first thing to try a node-oriented filter on.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from nfgnn.data.validate import check_graph
from nfgnn.errors import UserError


def mixed_graph(
    num_nodes: int = 3000,
    num_classes: int = 4,
    degree: float = 8,
    num_features: int = 32,
    signal: float = 0.4,
    shares: Sequence[float] = (0.5, 0.5, 0.0),
    homophily: Sequence[float] = (0.7, 0.0),
    seed: int = 0,
) -> Data:
    """Generate the graph; the same arguments give the same graph on every machine.

    Args:
        num_nodes: number of nodes.
        num_classes: number of classes, at least 2.
        degree: expected number of neighbours before duplicates are merged.
        num_features: number of features.
        signal: strength of the class means; 0 makes the features useless.
        shares: shares of the homophilic, heterophilic and random pattern; they sum to 1.
        homophily: probability that a link stays in its class, for the homophilic and the heterophilic
            pattern.
        seed: seed of the generator.

    Returns:
        A checked graph; ``data.pattern`` holds the true local pattern (0, 1, 2) of every node.
    """
    _check_arguments(num_nodes, num_classes, degree, num_features, shares, homophily)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, num_classes, num_nodes)
    pattern = rng.choice(3, num_nodes, p=np.asarray(shares, dtype=float) / sum(shares))
    stays = np.array([*homophily, 1 / num_classes])[pattern]
    edge_index = _draw_links(rng, y, pattern, stays, num_classes, degree)
    means = rng.standard_normal((num_classes, num_features))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    noise = rng.standard_normal((num_nodes, num_features))
    x = signal * np.sqrt(num_features) / 2 * means[y] + noise
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(edge_index),
        y=torch.from_numpy(y),
        pattern=torch.from_numpy(pattern.astype(np.int64)),
        class_names=[f"class {c}" for c in range(num_classes)],
    )
    data = check_graph(data, name="mixed")
    data.notes = []  # what the gate mends here (links drawn twice) is part of the recipe
    return data


def _draw_links(
    rng: np.random.Generator,
    y: np.ndarray,
    pattern: np.ndarray,
    stays: np.ndarray,
    num_classes: int,
    degree: float,
) -> np.ndarray:
    """Each node draws Poisson(degree / 2) partners from the nodes of its pattern and of the drawn class."""
    source = np.repeat(np.arange(len(y)), rng.poisson(degree / 2, len(y)))
    same = rng.random(len(source)) < stays[source]
    shift = np.where(same, 0, 1 + rng.integers(0, num_classes - 1, len(source)))
    pool = pattern[source] * num_classes + (y[source] + shift) % num_classes
    group = pattern * num_classes + y
    members = np.argsort(group, kind="stable")
    size = np.bincount(group, minlength=3 * num_classes)
    start = np.cumsum(size) - size
    pick = start[pool] + (rng.random(len(source)) * size[pool]).astype(np.int64)
    possible = size[pool] > 0
    return np.stack([source[possible], members[pick[possible]]]).astype(np.int64)


def _check_arguments(
    num_nodes: int,
    num_classes: int,
    degree: float,
    num_features: int,
    shares: Sequence[float],
    homophily: Sequence[float],
) -> None:
    if num_classes < 2 or num_nodes < num_classes or num_features < 1 or not degree > 0:
        raise UserError(
            "mixed: needs num_classes >= 2, num_nodes >= num_classes, num_features >= 1 and degree > 0; got "
            f"num_classes={num_classes}, num_nodes={num_nodes}, num_features={num_features}, degree={degree}."
        )
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 0.02:
        raise UserError(
            f"mixed: shares must be three shares that sum to 1 (homophilic, heterophilic, random); got {shares}."
        )
    if len(homophily) != 2 or not all(0 <= h <= 1 for h in homophily):
        raise UserError(
            f"mixed: homophily must be two probabilities (homophilic, heterophilic); got {homophily}."
        )
