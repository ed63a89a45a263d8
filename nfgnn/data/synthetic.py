r"""The built-in synthetic graph: a contextual stochastic block model with mixed local homophily.

Every node has a class and a **local pattern**: nodes of pattern 0 are homophilic, nodes of pattern
1 heterophilic, and nodes of pattern 2 have random neighbourhoods. Edges join nodes of the same
pattern, so that a whole neighbourhood follows one pattern; only a share ``crossing`` of them, 0 by
default, joins nodes of different patterns. An edge is drawn from one of its nodes. It stays within
the class with probability ``homophily[pattern]`` of that node (:math:`1/C` for pattern 2) and
otherwise goes to one of the other classes, chosen uniformly. Features are

.. math::
    x_i = s \, \tfrac{\sqrt{f}}{2} \, \mu_{y_i} + \varepsilon_i, \qquad \varepsilon_i \sim
    \mathcal{N}(0, I),

with unit class means :math:`\mu_c` and signal :math:`s`. No single filter serves both patterns,
which makes this graph the simplest test of a node-oriented filter.
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
    crossing: float = 0.0,
) -> Data:
    """Generate the graph. The same arguments give the same graph on every machine.

    Args:
        num_nodes: number of nodes.
        num_classes: number of classes, at least 2.
        degree: expected number of neighbours before duplicates are merged.
        num_features: number of features.
        signal: strength of the class means; with 0 the features contain no information.
        shares: shares of the homophilic, heterophilic and random pattern; they sum to 1.
        homophily: probability that an edge stays in its class, for the homophilic and the
            heterophilic pattern.
        seed: seed of the random numbers.
        crossing: share of the edges that join nodes of different patterns. The other pattern is
            drawn in proportion to its number of nodes.

    Returns:
        A validated graph; ``data.pattern`` is the true local pattern (0, 1, 2) of every node.
    """
    if num_classes < 2 or num_nodes < num_classes or num_features < 1 or not degree > 0:
        raise UserError(
            "mixed: num_classes >= 2, num_nodes >= num_classes, num_features >= 1 and degree > 0 "
            f"are required; got num_classes={num_classes}, num_nodes={num_nodes}, "
            f"num_features={num_features}, degree={degree}."
        )
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 0.02:
        raise UserError(
            "mixed: shares must be three numbers that sum to 1 (homophilic, heterophilic, random); "
            f"got {shares}."
        )
    if len(homophily) != 2 or not all(0 <= h <= 1 for h in homophily):
        raise UserError(
            "mixed: homophily must be two probabilities (homophilic, heterophilic); "
            f"got {homophily}."
        )
    if not 0 <= crossing <= 1:
        raise UserError(f"mixed: crossing must be a share from 0 to 1; got {crossing}.")
    rng = np.random.default_rng(seed)
    y = rng.integers(0, num_classes, num_nodes)
    pattern = rng.choice(3, num_nodes, p=np.asarray(shares, dtype=float) / sum(shares))
    stay = np.array([*homophily, 1 / num_classes])[pattern]
    if crossing and len(np.unique(pattern)) < 2:
        raise UserError("mixed: crossing edges need two patterns, but all nodes have the same one.")
    edge_index = _draw_edges(rng, y, pattern, stay, num_classes, degree, crossing)
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
    data = check_graph(data, name="mixed", metric="accuracy")
    data.registered_name = "mixed"
    data.notes = []  # duplicates are part of the model, not an issue of the data
    return data


def _draw_edges(
    rng: np.random.Generator,
    y: np.ndarray,
    pattern: np.ndarray,
    stay: np.ndarray,
    num_classes: int,
    degree: float,
    crossing: float,
) -> np.ndarray:
    """Draw Poisson(degree / 2) partners per node, of its pattern and of a drawn class.

    A share ``crossing`` of the partners, chosen at random, has another pattern.
    """
    source = np.repeat(np.arange(len(y)), rng.poisson(degree / 2, len(y)))
    same_class = rng.random(len(source)) < stay[source]
    shift = np.where(same_class, 0, 1 + rng.integers(0, num_classes - 1, len(source)))
    wanted_pattern = pattern[source]
    if crossing:  # without crossing edges no random number is drawn
        edges = rng.choice(len(source), round(crossing * len(source)), replace=False)
        wanted_pattern[edges] = _other_pattern(rng, pattern, wanted_pattern[edges])
    wanted = wanted_pattern * num_classes + (y[source] + shift) % num_classes
    # Nodes sorted by (pattern, class): a partner is a random place within the wanted group.
    group = pattern * num_classes + y
    members = np.argsort(group, kind="stable")
    size = np.bincount(group, minlength=3 * num_classes)
    start = np.cumsum(size) - size
    place = start[wanted] + (rng.random(len(source)) * size[wanted]).astype(np.int64)
    possible = size[wanted] > 0
    return np.stack([source[possible], members[place[possible]]]).astype(np.int64)


def _other_pattern(rng: np.random.Generator, pattern: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Draw a pattern that differs from ``own``, in proportion to the numbers of nodes."""
    size = np.bincount(pattern, minlength=3)
    others = np.tile(size, (len(own), 1))
    others[np.arange(len(own)), own] = 0
    bounds = np.cumsum(others, axis=1)
    drawn = rng.random(len(own)) * bounds[:, -1]
    chosen: np.ndarray = (bounds <= drawn[:, None]).sum(axis=1)
    return chosen
