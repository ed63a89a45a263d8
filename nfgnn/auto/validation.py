"""The nodes that configurations are compared on.

A configuration is chosen by its score on validation nodes. Fewer than 200 of them would let the
choice overfit, so configurations are then compared by their mean over several splits of the
training and validation nodes. Test nodes are the same in all of them.
"""

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.errors import UserError
from nfgnn.training import Graph, Metric, RunConfig, RunSpec, checked_split

FEW_NODES = 200
"""With fewer validation nodes, configurations are compared on several splits."""
REPEATS = 5
"""Number of these splits, the given one included."""
_SEEDS = 2**63


@dataclass(frozen=True)
class ValidationSplits:
    """A graph with the splits that configurations are trained and compared on."""

    graph: Graph
    """Its masks are those of all splits, one column each if there are several."""
    seeds: tuple[int, ...]
    """Seed of the runs of every split. The given split comes first and has the given seed."""
    scored: ScoredNodes
    """Validation nodes and labels of every split."""

    @property
    def count(self) -> int:
        """Number of splits."""
        return len(self.seeds)

    def spec(self, config: RunConfig, split: int) -> RunSpec:
        """Return the run of a configuration on a split."""
        # The seed also selects the column of the masks: see `nfgnn.data.splits.public`.
        return RunSpec(self.graph, "public", self.seeds[split], config)


def validation_splits(graph: Graph, protocol: str, seed: int, metric: Metric) -> ValidationSplits:
    """Return the split of a protocol and, where it has few validation nodes, repeated ones.

    Args:
        graph: the graph.
        protocol: how its nodes are split.
        seed: of the split, and of the repeated ones.
        metric: must be defined on validation and test nodes.
    """
    if protocol == "inductive":
        raise UserError(
            "auto compares models on the whole graph, but the protocol 'inductive' hides a part of "
            "it: choose another protocol, or train one model with `nfgnn train`"
        )
    given = checked_split(graph.data, protocol, seed, metric)
    masks = [(given.train_mask, given.val_mask)]
    if int(given.val_mask.sum()) < FEW_NODES:
        generator = torch.Generator().manual_seed(seed)
        masks += [resplit(given, generator) for _ in range(REPEATS - 1)]
    seeds = _run_seeds(seed, len(masks))
    labelled = given.y >= 0
    nodes = tuple((val & labelled).nonzero().flatten() for _, val in masks)
    return ValidationSplits(
        Graph.of(_with_columns(given, masks, seeds)),
        seeds,
        ScoredNodes(nodes, tuple(given.y[index] for index in nodes), given.num_classes),
    )


def resplit(data: Data, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw training and validation nodes anew from the union of both.

    Every class keeps its numbers of training and validation nodes, because some protocols choose
    these numbers class by class.

    Args:
        data: a graph with masks.
        generator: of the random numbers.
    """
    train = torch.zeros_like(data.train_mask)
    val = torch.zeros_like(data.val_mask)
    known = data.train_mask | data.val_mask
    for label in data.y[known].unique():
        members = (known & (data.y == label)).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        num_train = int(data.train_mask[members].sum())
        train[members[:num_train]] = True
        val[members[num_train:]] = True
    return train, val


def _run_seeds(seed: int, count: int) -> tuple[int, ...]:
    step = 1 if seed + count < _SEEDS else -1
    return tuple(seed + step * i for i in range(count))


def _with_columns(given: Data, masks: list[tuple[Tensor, Tensor]], seeds: tuple[int, ...]) -> Data:
    """Return a graph in which the seed of a run selects its masks, by the protocol ``public``."""
    data = copy(given)
    if len(masks) == 1:
        return data
    by_column = sorted(range(len(masks)), key=lambda i: seeds[i] % len(masks))
    data.train_mask = torch.stack([masks[i][0] for i in by_column], dim=1)
    data.val_mask = torch.stack([masks[i][1] for i in by_column], dim=1)
    data.test_mask = given.test_mask[:, None].repeat(1, len(masks))
    return data
