"""The weights of many runs as rows of one matrix, and the dropout rates that go with them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Tree = dict[str, Tensor]
_RATES = ("dropout", "filter_dropout", "input_dropout")
_FILTER_PREFIX = "prop."  # names of the filter's parameters start with this


class Layout:
    """The columns of each parameter in the weight matrix. Those of the filter come last."""

    def __init__(self, model: nn.Module) -> None:
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        # With the filter last, one column separates the two parameter groups of the optimizer.
        ordered = sorted(trained, key=lambda name: name.startswith(_FILTER_PREFIX))
        others = [name for name in ordered if not name.startswith(_FILTER_PREFIX)]
        self.shapes = {name: trained[name].shape for name in ordered}
        self.filter_start = sum(trained[name].numel() for name in others)

    def flatten(self, model: nn.Module) -> Tensor:
        """Return the parameters of a model as one row, ``[size]``."""
        parameters = dict(model.named_parameters())
        return torch.cat([parameters[name].detach().flatten() for name in self.shapes])

    def views(self, rows: Tensor) -> Tree:
        """Return each parameter of all rows as a view, ``[runs, *shape]``."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = rows.split(sizes, dim=1)
        return {
            name: part.unflatten(1, shape)
            for (name, shape), part in zip(self.shapes.items(), parts)
        }

    def join(self, values: Tree) -> Tensor:
        """Return values of all parameters as rows: the inverse of :meth:`views`, copied."""
        return torch.cat([values[name].flatten(1) for name in self.shapes], dim=1)

    def constants(self, models: Sequence[nn.Module]) -> Tree:
        """Return buffers and parameters that are not trained, stacked over the models."""
        states = [{**dict(m.named_parameters()), **dict(m.named_buffers())} for m in models]
        names = [name for name in states[0] if name not in self.shapes]
        return {name: torch.stack([state[name].detach() for state in states]) for name in names}


def dropout_rates(models: Sequence[nn.Module], device: torch.device) -> Tree:
    """Return the dropout rates of all models, stacked: ``"mlp.dropout"`` → ``[runs]``."""
    found: dict[str, list[float]] = {}
    for model in models:
        for path, module in model.named_modules():
            for attribute in _RATES:
                value = vars(module).get(attribute)
                if isinstance(value, float | int):
                    found.setdefault(f"{path}.{attribute}", []).append(float(value))
    # A rate that is zero in all runs stays a number, and its dropout is skipped.
    return {
        key: torch.tensor(values, device=device) for key, values in found.items() if any(values)
    }


@contextmanager
def dropout_rates_set(model: nn.Module, rates: Tree) -> Iterator[None]:
    """Give the model these dropout rates inside the block."""
    modules = []
    for key, rate in rates.items():
        path, _, attribute = key.rpartition(".")
        module = model.get_submodule(path)
        modules.append((module, attribute, vars(module)[attribute]))
        vars(module)[attribute] = rate
    try:
        yield
    finally:
        for module, attribute, value in modules:
            vars(module)[attribute] = value
