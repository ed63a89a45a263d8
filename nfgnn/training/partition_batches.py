"""Training on mini-batches of graph partitions, for graphs too large for whole-graph training.

These are the stochastic multiple partitions of `ClusterGCN <https://arxiv.org/abs/1905.07953>`_.
The graph is cut once into ``partitions`` parts with few edges between them
(:func:`nfgnn.data.partition_graph`). Every epoch draws groups of ``partitions_per_batch`` parts at
random. A step of Adam sees the subgraph that a group induces, including the edges between its
parts, and the mean loss of its training nodes.

Models normalise the subgraph as if it were a graph of its own, so they compute on degrees within
the group. Evaluation uses the whole graph, which takes far less memory without gradients. Where
even that exceeds the memory of a GPU, the trainer evaluates groups from then on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import kept_edges, partition_graph
from nfgnn.errors import UserError
from nfgnn.nn import NodeModel, Scalable, has_weights_per_node
from nfgnn.training.config import TrainingConfig
from nfgnn.training.graph_trainer import GraphTrainer


@dataclass(frozen=True)
class Subgraph:
    """The subgraph that some nodes induce."""

    nodes: Tensor
    """The nodes in ascending order, as numbered in the whole graph."""
    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.x, self.edge_index, self.edge_weight


class GraphParts:
    """A graph that is cut into parts, and the subgraphs of groups of them.

    Args:
        data: the graph: ``x``, dense or sparse, ``edge_index`` and maybe ``edge_weight``.
        part: the part of every node, ``[num_nodes]``.
    """

    def __init__(self, data: Data, part: Tensor) -> None:
        self.x: Tensor = data.x
        source, target = data.edge_index
        self._target = target
        self._weight: Tensor | None = data.get("edge_weight")
        if bool((source.diff() < 0).any()):
            source, order = source.sort(stable=True)
            self._target = target[order]
            self._weight = None if self._weight is None else self._weight[order]
        self._row_starts = _row_starts(torch.bincount(source, minlength=len(part)))
        sizes = torch.bincount(part).tolist()
        self.nodes = part.argsort(stable=True).split(sizes)
        """The nodes of every part."""
        self._number = torch.full_like(part, -1)

    def subgraph(self, parts: list[int]) -> Subgraph:
        """Return the subgraph of a group of parts. It takes time in proportion to its edges."""
        nodes = torch.cat([self.nodes[part] for part in parts]).sort().values
        self._number[nodes] = torch.arange(len(nodes), device=nodes.device)
        starts, entries = _select_rows(self._row_starts, nodes)
        source = torch.repeat_interleave(starts.diff())
        target = self._number[self._target[entries]]
        self._number[nodes] = -1
        inside = (target >= 0).nonzero().flatten()
        edge_index = torch.stack([source[inside], target[inside]])
        weight = None if self._weight is None else self._weight[entries[inside]]
        return Subgraph(nodes, self._features(nodes), edge_index, weight)

    def _features(self, nodes: Tensor) -> Tensor:
        if self.x.layout == torch.strided:
            return self.x[nodes]
        x = self._sparse_features
        starts, entries = _select_rows(x.crow_indices(), nodes)
        columns = x.col_indices()[entries]
        values = x.values()[entries]
        shape = (len(nodes), x.shape[1])
        return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)

    @cached_property
    def _sparse_features(self) -> Tensor:
        return self.x.to_sparse_csr()


class PartitionTrainer(GraphTrainer):
    """An epoch of one step per group of parts.

    Groups are drawn from a generator of their own, with the seed of torch's global generator. So a
    single group draws the same random numbers for dropout as training on the whole graph.
    """

    def __init__(self, model: NodeModel, data: Data, config: TrainingConfig) -> None:
        check_partitions(model, data.num_nodes, config)
        super().__init__(model, data, config)
        part = data.get("part")
        if part is None:
            part = partition_graph(data.edge_index, data.num_nodes, config.partitions)
        _check_part(part, data.num_nodes, config.partitions)
        part = part.to(data.x.device)
        kept = edges_kept(data.edge_index, part, config.partitions_per_batch)
        self.history.loading = {"edges_kept": kept}
        self.parts = GraphParts(data, part)
        # The place of training nodes in `train_nodes`, -1 for other nodes.
        self._train_number = torch.full_like(data.y, -1)
        self._train_number[self.train_nodes] = torch.arange(
            len(self.train_nodes), device=data.y.device
        )
        self._generator = torch.Generator().manual_seed(torch.initial_seed())
        self._fits_memory = True
        # Groups of one part are the same in every epoch, and so are operators built from them.
        self._single_parts: list[Subgraph] = []
        if config.partitions_per_batch == 1:
            self._single_parts = [self.parts.subgraph([i]) for i in range(config.partitions)]

    def _train(self) -> float:
        order = torch.randperm(self.config.partitions, generator=self._generator)
        total = torch.zeros((), dtype=torch.float64, device=self.y_train.device)
        for batch in self._batches(order.tolist()):
            numbers = self._train_number[batch.nodes]
            nodes = (numbers >= 0).nonzero().flatten()
            if len(nodes) == 0:
                continue
            chosen = numbers[nodes]
            options = {name: value[chosen] for name, value in self.loss_options.items()}
            self.model.train()
            with self.autocast():
                loss = self.model.training_loss(
                    *batch.inputs,
                    nodes,
                    self.y_train[chosen],
                    self.config.label_smoothing,
                    **options,
                )
            loss.backward()
            self.optimizer.step(self.history.epochs)
            total += loss.detach().double() * len(nodes)
        return float(total) / len(self.train_nodes)

    def _batches(self, order: list[int]) -> Iterator[Subgraph]:
        """Yield the subgraphs of groups of parts that follow each other in ``order``."""
        if self._single_parts:
            yield from (self._single_parts[part] for part in order)
            return
        size = self.config.partitions_per_batch
        for first in range(0, len(order), size):
            yield self.parts.subgraph(order[first : first + size])

    def _evaluate(self) -> Tensor:
        if self._fits_memory:
            try:
                return self._evaluate_whole_graph()
            except torch.OutOfMemoryError:
                self._fits_memory = False
        return self._evaluate_groups()

    @torch.no_grad()
    def _evaluate_groups(self) -> Tensor:
        """Return logits computed group by group, in the same groups in every epoch."""
        self.model.eval()
        found = []
        nodes = []
        for batch in self._batches(list(range(self.config.partitions))):
            with self.autocast():
                found.append(self.model(*batch.inputs))
            nodes.append(batch.nodes)
        logits = torch.cat(found)
        return torch.empty_like(logits).index_copy_(0, torch.cat(nodes), logits)


def edges_kept(edge_index: Tensor, part: Tensor, per_batch: int) -> float:
    """Return the expected share of the edges that are in a group, in an epoch of random groups."""
    num_parts = int(part.max()) + 1
    within = kept_edges(edge_index, part)
    if num_parts == 1:
        return within
    full_groups, rest = divmod(num_parts, per_batch)
    pairs = full_groups * per_batch * (per_batch - 1) + rest * (rest - 1)
    # Two different parts are in the same group with this probability.
    return within + (1 - within) * pairs / (num_parts * (num_parts - 1))


def check_partitions(model: NodeModel, num_nodes: int, config: TrainingConfig) -> None:
    """Refuse a model that cannot be trained on parts of a graph, and more parts than nodes."""
    if not config.partitions:
        return
    name = type(model).__name__
    if isinstance(model, Scalable):
        raise UserError(
            f"{name} is trained on rows, so it cannot be trained with partitions = "
            f"{config.partitions}: set batch_size instead"
        )
    if has_weights_per_node(model):
        raise UserError(
            f"{name} has weights for every node, so it cannot be trained with partitions = "
            f"{config.partitions}: set partitions = 0 or choose a model or link without them"
        )
    if config.partitions > num_nodes:
        raise UserError(
            f"partitions = {config.partitions:,} exceeds the {num_nodes:,} nodes of the graph: set "
            "fewer partitions"
        )


def _check_part(part: Tensor, num_nodes: int, partitions: int) -> None:
    """Refuse parts of another graph, and more or fewer parts than the settings declare."""
    if part.shape != (num_nodes,):
        raise UserError(
            f"part has the shape {list(part.shape)}, but must contain the part of every node, "
            f"[{num_nodes}]"
        )
    found = int(part.max()) + 1
    if found != partitions:
        raise UserError(
            f"part numbers {found:,} parts, but partitions = {partitions:,}: set partitions = "
            f"{found}"
        )


def _row_starts(counts: Tensor) -> Tensor:
    """Return where the rows of a CSR matrix start, from the number of entries per row."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _select_rows(row_starts: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row starts of some rows of a CSR matrix and the places of their entries."""
    counts = row_starts.diff()[rows]
    starts = _row_starts(counts)
    shift = torch.repeat_interleave(row_starts[rows] - starts[:-1], counts)
    return starts, shift + torch.arange(len(shift), device=rows.device)
