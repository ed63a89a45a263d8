"""Several classifiers on splits of one graph, fitted as one computation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn.models import find_model
from nfgnn.training.batched import Member, fit_many
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.history import History

_MOST = 256


def fit_together(
    classifiers: Sequence[NodeClassifier],
    graphs: Sequence[Data],
    on_epochs: Callable[[list[History]], None] | None = None,
) -> None:
    """Fit classifiers of the same model, each with its own seed, split and numeric hyper-parameters.

    ``graphs`` are splits of one graph. Equal to fitting one after the other, but for the random numbers of dropout.
    Under the inductive protocol every run has a graph of its own, so they are fitted one after the other.
    """
    if any(graph.get("unobserved_mask") is not None for graph in graphs):
        for classifier, graph in zip(classifiers, graphs):
            classifier.fit(graph)
        return
    with classifiers[0]._random():
        members = []
        for classifier, graph in zip(classifiers, graphs):
            classifier._begin(graph)
            members.append(
                Member(
                    classifier.model_, graph.train_mask, graph.val_mask, classifier.config_.training
                )
            )
        if len({classifier.scaling_.how for classifier in classifiers}) > 1:
            raise UserError("runs that are trained together share one scaling of the features")
        torch.manual_seed(classifiers[0].seed)
        histories = fit_many(members, classifiers[0]._prepare(graphs[0]), on_epochs)
    for classifier, history in zip(classifiers, histories):
        classifier.history_ = history
    for history in histories:
        history.check()


def runs_at_once(model: str, module: nn.Module, data: Data, device: torch.device) -> int:
    """How many runs of a model are trained together on this device: as many as fit in four fifths of a GPU's memory.

    On a CPU runs are trained one by one: what they could share is little there beside what each computes.
    """
    if device.type != "cuda" or not find_model(model).model.batchable:
        return 1
    total = torch.cuda.get_device_properties(device).total_memory
    return max(1, min(_MOST, int(0.8 * total / bytes_per_run(module, data))))


def bytes_per_run(module: nn.Module, data: Data) -> int:
    """Estimate of the memory that one run takes: three times what a training step keeps, and seven copies of the
    weights."""
    own = {p.data_ptr() for p in [*module.parameters(), *module.buffers()]}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided and tensor.data_ptr() not in own:
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        module.train()(data.x, data.edge_index, data.get("edge_weight")).sum()
    weights = sum(p.numel() * p.element_size() for p in module.parameters())
    return 3 * sum(kept.values()) + 7 * weights
