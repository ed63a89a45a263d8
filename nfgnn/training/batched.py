"""Many runs as one computation: seeds, splits and numeric hyper-parameters may differ, the model's shape may not.

The weights of S runs lie in one matrix, a row each. ``torch.func`` maps the one model definition over the rows; where
it meets a sparse product, the runs become columns of a single one (:mod:`nfgnn.spectral.columns`). An epoch (training
step, evaluation, bookkeeping) needs no answer from the device, so on a GPU it is captured once and replayed.

The evaluation of an epoch and the training pass of the next one have the same weights, so they are computed together:
a model that has a method ``both`` shares work between them.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.utils._pytree import tree_map
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn import NodeModel
from nfgnn.spectral import CSR
from nfgnn.spectral.backend import serves_triton
from nfgnn.spectral.node_order import LARGE, degree_order
from nfgnn.training.config import TrainingConfig
from nfgnn.training.fused_loss import loss_and_accuracy
from nfgnn.training.history import History
from nfgnn.training.stacked_parameters import Adam, Layout, Tree, rates_of, rates_set

_LOOK_EVERY = 25  # epochs between two looks at what a GPU has done


@dataclass(frozen=True)
class Member:
    """One run: its model, the nodes it trains and validates on, how it is trained."""

    model: NodeModel
    train_mask: Tensor
    val_mask: Tensor
    config: TrainingConfig


def fit_many(
    members: Sequence[Member], data: Data, on_epochs: Callable[[list[History]], None] | None = None
) -> list[History]:
    """Train all members at once and leave each model with its weights of least validation loss.

    The rule is that of :func:`~nfgnn.training.fit`, member by member: a run that has stopped is frozen while others
    go on, and when no more than half are left, only these are computed further.
    """
    start = time.perf_counter()
    epochs = {member.config.epochs for member in members} | {
        member.config.patience for member in members
    }
    assert len(epochs) <= 2, "members share the numbers of epochs and of patience"
    with torch.no_grad():
        state = _State(members, data)
        run_epoch, plain_epochs, active = state.epoch, 0, len(members)
        for done in range(1, members[0].config.epochs + 1):
            run_epoch()
            plain_epochs += 1
            if data.x.is_cuda and plain_epochs == 2:  # by now every kernel is compiled
                run_epoch = _captured(state.epoch)
            look = not data.x.is_cuda or done % _LOOK_EVERY == 0
            if look and done > 1 and on_epochs is not None:
                on_epochs(state.histories())
            active = int(state.active.sum()) if look else len(members)
            if active == 0:
                break
            if active <= len(state.rows) // 2:
                state.retire()
                run_epoch, plain_epochs = state.epoch, 0
        if active > 0:
            state.note(torch.zeros_like(state.best_loss), *state.evaluate())
    histories = state.histories()
    for history in histories:
        history.seconds = (time.perf_counter() - start) / len(members)
    with torch.no_grad():
        state.restore_best()
    return histories


class _State:
    """Everything that an epoch reads and writes, in tensors that stay where they are.

    ``rows`` says which member a row belongs to; the results of members that have left are in ``finished``.
    """

    def __init__(self, members: Sequence[Member], data: Data) -> None:
        self.members, S = members, len(members)
        self.rows, self.finished = list(range(S)), dict[int, tuple[History, Tensor]]()
        x, edge_index, self.y = data.x, data.edge_index, data.y.clamp(min=0)
        masks = [
            torch.stack([getattr(m, name) for m in members]).to(x.device)
            for name in ("train_mask", "val_mask")
        ]
        if _order_matters(members[0].model, data):
            order, edge_index = degree_order(edge_index, data.num_nodes)
            x, self.y, *masks = x[order], self.y[order], *(mask[:, order] for mask in masks)
        x = x if x.layout == torch.strided else CSR.from_tensor(x)
        self.inputs = (x, edge_index, data.get("edge_weight"))
        device = self.y.device
        self.template = copy.deepcopy(members[0].model)
        self.pair = _Pair(self.template)
        self._warm_up()
        self.layout = Layout(members[0].model)
        self.theta = torch.stack([self.layout.flatten(member.model) for member in members])
        self.views = self.layout.views(self.theta)
        self.constants = self.layout.constants([member.model for member in members])
        self.rates = rates_of([member.model for member in members], device) if S > 1 else {}
        for name, mask in zip(("train_mask", "val_mask"), masks):
            if not bool(mask.any(1).all()):
                raise UserError(
                    f"{name} is empty: training needs nodes to train on and nodes to validate on"
                )
        self.train, self.val = (
            mask.to(self.theta.dtype) / mask.sum(1, keepdim=True) for mask in masks
        )
        self.adam = Adam(
            self.theta, self.layout.filter_start, [member.config for member in members]
        )
        smoothing = [member.config.label_smoothing for member in members]
        self.smoothing = (
            {"share": torch.tensor(smoothing, dtype=self.theta.dtype, device=device)}
            if any(smoothing)
            else {}
        )
        self.patience = members[0].config.patience
        self.t = torch.zeros(1, dtype=torch.long, device=device)
        self.active = torch.ones(S, dtype=torch.bool, device=device)
        self.epochs = torch.zeros(S, dtype=torch.long, device=device)
        self.improved = torch.zeros_like(self.active)
        self.best, self.best_loss = (
            self.theta.clone(),
            torch.full((S,), torch.inf, device=device).to(self.theta.dtype),
        )
        self.window = torch.zeros(self.patience, S, dtype=torch.float64, device=device)
        self.seen = torch.zeros(
            members[0].config.epochs + 1, 3, S, dtype=torch.float64, device=device
        )

    def retire(self) -> None:
        """Let the members go that have stopped; the others are computed on, in fewer rows."""
        self.finished |= {row: result for row, result, active in self._results() if not active}
        keep = self.active.nonzero()[:, 0]
        self.rows = [self.rows[i] for i in keep.tolist()]
        for name in ("theta", "train", "val", "active", "epochs", "improved", "best", "best_loss"):
            setattr(self, name, getattr(self, name)[keep].clone())
        self.views = self.layout.views(self.theta)
        trees = (self.constants, self.rates, self.smoothing)
        self.constants, self.rates, self.smoothing = tree_map(lambda t: t[keep], trees)
        self.window, self.seen = self.window[:, keep].clone(), self.seen[:, :, keep].clone()
        self.adam.keep(keep)

    def _warm_up(self) -> None:
        """A plain step: what is made once of a graph must be made outside of any transformation, and is kept.

        An evaluation comes first, so that the graph is prepared while nothing of a step is held.
        """
        self.template.eval()(*self.inputs)
        with torch.enable_grad():
            self.pair(*self.inputs)[0].sum().backward()
        self.template.zero_grad()

    def epoch(self) -> None:
        """A training pass and the evaluation of the same weights, what follows from the latter, and a step."""
        gradients, train_loss, val_loss, accuracy = self._pass()
        self.note(train_loss, val_loss, accuracy)
        self.adam.step(self.theta, self.layout.join(gradients), self.active)
        self.t += 1

    def note(self, train_loss: Tensor, val_loss: Tensor, accuracy: Tensor) -> None:
        """Keep what the training pass of step t + 1 and the evaluation after step t tell, and who stops.

        The evaluation before the first step tells nothing.
        """
        told = (train_loss, val_loss, accuracy)
        if serves_triton(self.theta):
            from nfgnn.kernels import training_step

            books = (
                self.seen,
                self.window,
                self.active,
                self.epochs,
                self.best_loss,
                self.improved,
            )
            training_step.note(*told, self.t, *books)
        else:
            last, (train_loss, val_loss, accuracy) = self.t - 1, torch.stack(told).double()
            self.seen[:, 0].index_copy_(0, self.t, train_loss[None])
            self.seen[:, 1:].index_copy_(
                0, last.clamp(min=0), torch.stack([val_loss, accuracy])[None]
            )
            stop = (last >= self.patience) & (val_loss > self.window.mean(0))
            self.window.index_copy_(0, last % self.patience, val_loss[None])
            self.epochs.copy_(torch.where(self.active, self.t, self.epochs))
            self.improved.copy_(self.active & (told[1] < self.best_loss) & (self.t > 0))
            self.best_loss.copy_(torch.where(self.improved, told[1], self.best_loss))
            self.active &= ~stop
        self._keep_best()

    def _pass(self) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
        """Gradients and training loss, validation loss and accuracy, all of the weights as they are."""

        def loss(
            views: Tree, constants: Tree, rates: Tree, smoothing: Tree, train: Tensor, val: Tensor
        ) -> tuple[Tensor, Any]:
            with rates_set(self.template, rates):
                parameters = {f"model.{name}": value for name, value in (views | constants).items()}
                logits, held = functional_call(self.pair, parameters, self.inputs)
            return loss_and_accuracy(logits, train, self.y, **smoothing)[0], loss_and_accuracy(
                held, val, self.y
            )

        gradients, (train_loss, aux) = self._mapped(grad_and_value(loss, has_aux=True))(
            self.views, self.constants, self.rates, self.smoothing, self.train, self.val
        )
        return gradients, train_loss, *aux

    def evaluate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy."""
        self.template.eval()

        def scores(views: Tree, constants: Tree, weight: Tensor) -> tuple[Tensor, Tensor]:
            logits: Tensor = functional_call(self.template, views | constants, self.inputs)
            return loss_and_accuracy(logits, weight, self.y)

        loss, accuracy = self._mapped(scores)(self.views, self.constants, self.val)
        return loss, accuracy

    def _mapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one run, for all runs; a single run needs no mapping."""
        if len(self.rows) > 1:
            return vmap(function, randomness="different")
        return lambda *trees: tree_map(
            lambda t: t[None], function(*tree_map(lambda t: t[0], trees))
        )

    def _keep_best(self) -> None:
        if self.theta.is_cuda:  # the same work whatever the answer, so that it can be captured
            torch.where(self.improved[:, None], self.theta, self.best, out=self.best)
        else:
            rows = self.improved.nonzero()[:, 0]
            self.best[rows] = self.theta[rows]

    def _results(self) -> Iterator[tuple[int, tuple[History, Tensor], bool]]:
        """Of every row: its member; history and best weights; whether it still goes on."""
        seen, epochs, active = (
            self.seen[: int(self.t)].cpu(),
            self.epochs.tolist(),
            self.active.tolist(),
        )
        for s, row in enumerate(self.rows):
            yield row, (History(*seen[: epochs[s], :, s].T.tolist()), self.best[s]), active[s]

    def results(self) -> list[tuple[History, Tensor]]:
        """History and best weights of every member."""
        all_of_them = self.finished | {row: result for row, result, _ in self._results()}
        return [all_of_them[row] for row in range(len(self.members))]

    def histories(self) -> list[History]:
        return [history for history, _ in self.results()]

    def restore_best(self) -> None:
        views = self.layout.views(torch.stack([best for _, best in self.results()]))
        for s, member in enumerate(self.members):
            parameters = dict(member.model.named_parameters())
            for name, view in views.items():
                parameters[name].copy_(view[s])


class _Pair(nn.Module):
    """A module whose forward pass is a model's ``forward_pair``."""

    def __init__(self, model: NodeModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> tuple[Tensor, Tensor]:
        return self.model.forward_pair(*inputs)


def _order_matters(model: nn.Module, data: Data) -> bool:
    """Whether the graph is large enough for its nodes to be put in order. Weights that belong to nodes forbid it, and
    sparse features, whose rows lie one after the other."""
    if not serves_triton(data.x) or data.x.layout != torch.strided or data.num_nodes <= LARGE:
        return False
    return not any(data.num_nodes in p.shape for p in model.parameters())


def _captured(epoch: Callable[[], None]) -> Callable[[], None]:
    """The epoch as a CUDA graph: launched as one, without Python."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        epoch()
    return graph.replay
