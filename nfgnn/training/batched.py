"""Many runs as one computation.

Seeds, splits and numeric hyper-parameters may differ between the runs, the shape of the model may
not. The weights of S runs are the rows of one matrix. ``torch.func`` maps the one model definition
over the rows. In a sparse product the runs become columns of a single dense matrix
(:mod:`nfgnn.spectral.autograd`). An epoch never reads a result back from the device, so on a GPU
it is captured once as a CUDA graph and replayed.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils._pytree import tree_map
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.kernels import LARGE, degree_order
from nfgnn.nn import NodeModel
from nfgnn.spectral import CSR, triton_supports
from nfgnn.training.class_weight import balanced_weights
from nfgnn.training.config import TrainingConfig
from nfgnn.training.criterion import Criterion
from nfgnn.training.fused_loss import loss_and_accuracy
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.optimizer import StackedAdam
from nfgnn.training.stacked_parameters import Layout, Tree, dropout_rates, dropout_rates_set
from nfgnn.training.stacked_statistics import StackedStatistics
from nfgnn.training.stopping import BatchedStopping
from nfgnn.training.trainer import Trainer, train

_MAX_RUNS = 256
_EPOCHS_BEFORE_CAPTURE = 2  # by then every kernel is compiled
_GPU_CHECK_INTERVAL = 25  # epochs; a check makes the GPU wait for Python


@dataclass(frozen=True)
class Member:
    """One of the runs: its model, the nodes it trains and validates on, how it is trained."""

    model: NodeModel
    train_mask: Tensor
    val_mask: Tensor
    config: TrainingConfig
    x: Tensor | None = None
    """Scaled features of this run, if those of the runs differ; all members have them or none."""


def fit_batched(
    members: Sequence[Member], data: Data, on_epoch: OnEpoch | None = None
) -> list[History]:
    """Train all members at once and leave each model with the weights of its best epoch.

    Every member stops by the rule of :func:`~nfgnn.training.fit`. Its weights are then frozen until
    the others stop. When at most half of the runs are left, the others leave the computation.

    Args:
        members: runs that share the number of epochs, the patience and the criterion.
        data: the graph with scaled features, on the models' device. Masks are the members'.
        on_epoch: called with the history of the longest run.
    """
    lengths = {(member.config.epochs, member.config.patience) for member in members}
    if len(lengths) != 1:
        raise UserError("batched runs must share the settings epochs and patience")
    with torch.no_grad():
        trainer = BatchedTrainer(members, data)
        return train(trainer, members[0].config.epochs, on_epoch)


class BatchedTrainer(Trainer):
    """An epoch of all runs, in tensors that are updated in place, as a CUDA graph needs it.

    ``rows[r]`` is the member that row r of the weights belongs to. Members that have stopped leave
    the computation; their histories, best weights and statistics are in ``_finished``.
    """

    def __init__(self, members: Sequence[Member], data: Data) -> None:
        super().__init__()
        self.members = members
        self.rows = list(range(len(members)))
        self._finished: dict[int, _Result] = {}
        self._prepare_inputs(data)
        models = [member.model for member in members]
        # functional_call puts the weights of a run into this copy. The members' own models are
        # only written at the end.
        self.template = copy.deepcopy(models[0])
        self.pair = _Pair(self.template)
        self.layout = Layout(models[0])
        self.weights = torch.stack([self.layout.flatten(model) for model in models])
        self.precision = self._shared_precision()
        self._warm_up()
        self.statistics = StackedStatistics(models, self.weights.device)
        self.constants = self.layout.constants(models) | self.statistics.views()
        # Rates are tensors even if all are equal, because vmap only draws a mask for every run
        # if an argument of dropout is mapped.
        self.rates = dropout_rates(models, self.weights.device) if len(members) > 1 else {}
        self.train_weight, self.val_weight = self._node_weights()
        configs = [member.config for member in members]
        self.criterion = self._shared_criterion(data)
        self.val_nodes, self.val_inside = self._val_nodes()
        self.optimizer = StackedAdam(self.weights, self.layout.filter_start, configs)
        self.stopping = BatchedStopping(
            self.weights, configs[0].epochs, configs[0].patience, self.criterion
        )
        self.smoothing: Tree = {}
        shares = [config.label_smoothing for config in configs]
        if any(shares):
            self.smoothing = {"share": self.weights.new_tensor(shares)}
        if self.weights.is_cuda:
            self.check_interval = _GPU_CHECK_INTERVAL
        self._run: Callable[[], None] = self.epoch
        self._plain_epochs = 0
        self._all_stopped = False

    def _shared_precision(self) -> torch.dtype:
        """Return the precision of the passes, which all members share."""
        device = self.weights.device
        halves = {
            member.config.uses_half_precision(member.model, device) for member in self.members
        }
        if len(halves) != 1:
            raise UserError("batched runs must share the setting precision")
        return torch.bfloat16 if halves == {True} else self.weights.dtype

    def _prepare_inputs(self, data: Data) -> None:
        x = data.x
        edge_index = data.edge_index
        y = data.y.clamp(min=0)  # unlabelled nodes are in no mask
        own = [member.x for member in self.members if member.x is not None]
        self.features: Tree = {}
        if own:
            x = own[0]
            self.features = {"x": torch.stack(own)}
        self.train_mask = torch.stack([member.train_mask for member in self.members]).to(x.device)
        self.val_mask = torch.stack([member.val_mask for member in self.members]).to(x.device)
        if _sorts_by_degree(self.members[0].model, data):
            order, edge_index = degree_order(edge_index, data.num_nodes)
            x = x[order]
            self.features = {name: value[:, order] for name, value in self.features.items()}
            y = y[order]
            self.train_mask = self.train_mask[:, order]
            self.val_mask = self.val_mask[:, order]
        if x.layout != torch.strided:
            x = CSR.from_tensor(x)
        self.y = y
        self.inputs = (x, edge_index, data.get("edge_weight"))

    def _node_weights(self) -> tuple[Tensor, Tensor]:
        """Weights that turn sums over all nodes into means over the nodes of a mask."""
        for name, mask in (("train_mask", self.train_mask), ("val_mask", self.val_mask)):
            if not bool(mask.any(1).all()):
                raise UserError(
                    f"{name} is empty: training needs both training and validation nodes"
                )
        dtype = self.weights.dtype
        train = self.train_mask.to(dtype) / self.train_mask.sum(1, keepdim=True)
        val = self.val_mask.to(dtype) / self.val_mask.sum(1, keepdim=True)
        for weight, mask, member in zip(train, self.train_mask, self.members):
            if member.config.class_weight == "balanced":
                weight[mask] *= balanced_weights(self.y[mask]).to(dtype)
        return train, val

    def _shared_criterion(self, data: Data) -> Criterion:
        """Return the criterion of all members, and check that it is defined for each of them."""
        criteria = {
            Criterion.of(member.config.metric, member.config.select, data)
            for member in self.members
        }
        if len(criteria) != 1:
            raise UserError("batched runs must share the settings metric and select")
        (criterion,) = criteria
        for mask in self.val_mask:
            criterion.check(self.y[mask], data)
        return criterion

    def _val_nodes(self) -> tuple[Tensor, Tensor]:
        """Return the validation nodes of every run, ``[runs, m]``, and which of them count.

        Rows of runs with fewer nodes are filled up, so that all runs have one shape.
        """
        most = int(self.val_mask.sum(1).max())
        inside, nodes = self.val_mask.byte().sort(dim=1, descending=True, stable=True)
        return nodes[:, :most].clone(), inside[:, :most].double()

    def _warm_up(self) -> None:
        """Run a plain step, because the graph has to be prepared outside of any transformation.

        An evaluation comes first, so that this happens while a step holds no memory. Both have the
        precision of the passes, because what is prepared may depend on it.
        """
        with torch.enable_grad():
            weights = {
                name: value.to(self.precision) for name, value in self.template.named_parameters()
            }
        functional_call(self.template.eval(), weights, self.inputs)
        with torch.enable_grad():
            values = {f"model.{name}": value for name, value in weights.items()}
            functional_call(self.pair, values, self.inputs)[0].sum().backward()
        self.template.zero_grad()

    def run_epoch(self) -> None:
        self._run()
        self._plain_epochs += 1
        if self.weights.is_cuda and self._plain_epochs == _EPOCHS_BEFORE_CAPTURE:
            self._run = capture_cuda_graph(self.epoch)

    def epoch(self) -> None:
        """A training pass and an evaluation of the same weights, then the update."""
        self.statistics.mark_evaluated()
        gradients, train_loss, evaluation = self._pass()
        self.stopping.record(self.weights, train_loss, *evaluation)
        self.statistics.keep_best(self.stopping.improved)
        gradient = self.layout.join(gradients).to(self.weights.dtype)
        self.optimizer.step(self.weights, gradient, self.stopping.active)
        self.stopping.epoch += 1

    def _views(self) -> Tree:
        """Return the parameters of all runs, in the precision of the passes."""
        if self.precision == self.weights.dtype:
            return self.layout.views(self.weights)
        # Rounded all at once. Rows start at multiples of 16 bytes, as fast products need it.
        runs, size = self.weights.shape
        padded = self.weights.new_empty(runs, size + -size % 8, dtype=self.precision)
        rounded = padded[:, :size]
        rounded.copy_(self.weights)
        return self.layout.views(rounded)

    def _pass(self) -> tuple[Tree, Tensor, tuple[Tensor, ...]]:
        """Return gradients, training loss and evaluation of the weights."""

        def loss(
            views: Tree,
            constants: Tree,
            rates: Tree,
            smoothing: Tree,
            features: Tree,
            train_weight: Tensor,
            val_weight: Tensor,
        ) -> tuple[Tensor, Any]:
            inputs = (features.get("x", self.inputs[0]), *self.inputs[1:])
            with dropout_rates_set(self.template, rates):
                values = {f"model.{name}": value for name, value in (views | constants).items()}
                training_logits, logits = functional_call(self.pair, values, inputs)
            logits = logits.to(train_weight.dtype)
            training_logits = training_logits.to(train_weight.dtype)
            train_loss, _ = loss_and_accuracy(training_logits, train_weight, self.y, **smoothing)
            return train_loss, self._evaluated(logits, val_weight)

        gradients, (train_loss, evaluated) = self._mapped(grad_and_value(loss, has_aux=True))(
            self._views(),
            self.constants,
            self.rates,
            self.smoothing,
            self.features,
            self.train_weight,
            self.val_weight,
        )
        return gradients, train_loss, self._with_metric(*evaluated)

    def evaluate(self) -> tuple[Tensor, ...]:
        """Return validation loss, accuracy and, if it is another one, the metric."""
        self.template.eval()

        def scores(
            views: Tree, constants: Tree, features: Tree, weight: Tensor
        ) -> tuple[Tensor, ...]:
            inputs = (features.get("x", self.inputs[0]), *self.inputs[1:])
            logits: Tensor = functional_call(self.template, views | constants, inputs)
            return self._evaluated(logits.to(weight.dtype), weight)

        evaluated = self._mapped(scores)(
            self._views(), self.constants, self.features, self.val_weight
        )
        return self._with_metric(*evaluated)

    def _evaluated(self, logits: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        """Return validation loss and accuracy of one run, and the logits if a metric needs them."""
        loss, accuracy = loss_and_accuracy(logits, weight, self.y)
        return (loss, accuracy, logits) if self.criterion.has_curve else (loss, accuracy)

    def _with_metric(
        self, loss: Tensor, accuracy: Tensor, logits: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Compute the metric of all runs from their logits, ``[runs, n, classes]``."""
        if logits is None:
            return loss, accuracy
        # Only the validation nodes, because sorting all nodes would cost more than the model.
        nodes = self.val_nodes[:, :, None].expand(-1, -1, logits.shape[-1])
        probabilities = logits.gather(1, nodes).softmax(-1)
        metric = self.criterion.metric.value(probabilities, self.y[self.val_nodes], self.val_inside)
        return loss, accuracy, metric

    def _mapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Map the function of one run over all runs. A single run needs no transformation."""
        if len(self.rows) > 1:
            return vmap(function, randomness="different")

        def single(*trees: Any) -> Any:
            result = function(*tree_map(lambda t: t[0], trees))
            return tree_map(lambda t: t[None], result)

        return single

    def check(self) -> bool:
        active = int(self.stopping.active.sum())
        # Not for every run that stops, because a smaller batch has to be captured again.
        self._all_stopped = active == 0
        if 0 < active <= len(self.rows) // 2:
            self._drop_stopped()
        return active > 0

    def _drop_stopped(self) -> None:
        """Compute only the runs that have not stopped, in fewer rows."""
        active = self.stopping.active.tolist()
        for member, result, is_active in zip(self.rows, self._results(), active):
            if not is_active:
                self._finished[member] = result
        keep = self.stopping.active.nonzero()[:, 0]
        self.rows = [self.rows[i] for i in keep.tolist()]
        self.weights = self.weights[keep].clone()
        self.train_weight = self.train_weight[keep].clone()
        self.val_weight = self.val_weight[keep].clone()
        self.val_nodes = self.val_nodes[keep].clone()
        self.val_inside = self.val_inside[keep].clone()
        self.statistics.keep_rows(keep)
        constants = {name: value[keep] for name, value in self.constants.items()}
        self.constants = constants | self.statistics.views()
        self.rates = {name: value[keep] for name, value in self.rates.items()}
        self.smoothing = {name: value[keep] for name, value in self.smoothing.items()}
        self.features = {name: value[keep] for name, value in self.features.items()}
        self.stopping.keep_rows(keep)
        self.optimizer.keep_rows(keep)
        # The tensors have moved, so the captured graph is no longer valid.
        self._run = self.epoch
        self._plain_epochs = 0

    def _results(self) -> list["_Result"]:
        """Return the result of every row."""
        rows = zip(self.stopping.histories(), self.stopping.best, self.statistics.best)
        return [_Result(*row) for row in rows]

    def _all_results(self) -> list["_Result"]:
        """Return the result of every member."""
        by_member = {**self._finished, **dict(zip(self.rows, self._results()))}
        return [by_member[member] for member in range(len(self.members))]

    def histories(self) -> list[History]:
        return [result.history for result in self._all_results()]

    def finish(self) -> list[History]:
        if not self._all_stopped:
            # The last update has not been evaluated yet.
            self.statistics.mark_evaluated()
            loss, *scores = self.evaluate()
            self.stopping.record(self.weights, torch.zeros_like(loss), loss, *scores)
            self.statistics.keep_best(self.stopping.improved)
        results = self._all_results()
        views = self.layout.views(torch.stack([result.weights for result in results]))
        for number, member in enumerate(self.members):
            parameters = dict(member.model.named_parameters())
            for name, view in views.items():
                parameters[name].copy_(view[number])
            self.statistics.write(results[number].statistics, member.model)
        return [result.history for result in results]


class _Result(NamedTuple):
    """What remains of a run: its history, and weights and statistics of its best epoch."""

    history: History
    weights: Tensor
    statistics: Tensor


class _Pair(nn.Module):
    """A model called by :meth:`~nfgnn.nn.NodeModel.forward_pair`, as ``functional_call`` needs."""

    def __init__(self, model: NodeModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        return self.model.forward_pair(*inputs)


def _sorts_by_degree(model: nn.Module, data: Data) -> bool:
    """Whether to sort the nodes by degree, which makes memory access on large graphs coalesced.

    Not for models with a weight per node, whose order is fixed, and not for sparse features.
    """
    if not triton_supports(data.x) or data.x.layout != torch.strided:
        return False
    if data.num_nodes <= LARGE:
        return False
    return not any(data.num_nodes in p.shape for p in model.parameters())


def capture_cuda_graph(epoch: Callable[[], None]) -> Callable[[], None]:
    """Capture an epoch as a CUDA graph, which is launched as a whole."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        epoch()
    return graph.replay


def max_batched_runs(module: NodeModel, data: Data, device: torch.device) -> int:
    """How many runs of a model are trained as one computation on a device.

    As many as fit into four fifths of a GPU's memory. On a CPU runs are trained one by one,
    because there is little work that they could share.
    """
    if device.type != "cuda" or not module.batchable:
        return 1
    total = torch.cuda.get_device_properties(device).total_memory
    fitting = int(0.8 * total / bytes_per_run(module, data))
    return max(1, min(_MAX_RUNS, fitting))


def bytes_per_run(module: nn.Module, data: Data) -> int:
    """Estimate the memory of one run.

    Three times what a training step saves for its backward pass, and seven copies of the weights.
    """
    own = {p.data_ptr() for p in [*module.parameters(), *module.buffers()]}
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided and tensor.data_ptr() not in own:
            saved[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        module.train()(data.x, data.edge_index, data.get("edge_weight")).sum()
    weights = sum(p.numel() * p.element_size() for p in module.parameters())
    return 3 * sum(saved.values()) + 7 * weights
