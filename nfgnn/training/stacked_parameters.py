"""The weights of many runs as rows of one matrix: where they lie, how they are stepped, which rates go with them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from nfgnn.spectral.backend import serves_triton
from nfgnn.training.config import TrainingConfig

Tree = dict[str, Tensor]
_RATES = ("dropout", "filter_dropout")


class Layout:
    """Where each parameter lies in a run's row: the filter's come last."""

    def __init__(self, model: nn.Module) -> None:
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        ordered = sorted(trained, key=lambda name: name.startswith("prop."))
        self.shapes = {name: trained[name].shape for name in ordered}
        self.filter_start = sum(
            trained[name].numel() for name in ordered if not name.startswith("prop.")
        )

    def flatten(self, model: nn.Module) -> Tensor:
        parameters = dict(model.named_parameters())
        return torch.cat([parameters[name].detach().flatten() for name in self.shapes])

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = rows.split(sizes, dim=1)
        return {
            name: part.unflatten(1, shape)
            for (name, shape), part in zip(self.shapes.items(), parts)
        }

    def join(self, values: dict[str, Tensor]) -> Tensor:
        return torch.cat([values[name].flatten(1) for name in self.shapes], dim=1)

    def constants(self, models: Sequence[nn.Module]) -> dict[str, Tensor]:
        """Parameters that are not trained, and buffers, stacked."""
        states = [
            {**dict(model.named_parameters()), **dict(model.named_buffers())} for model in models
        ]
        names = [name for name in states[0] if name not in self.shapes]
        return {name: torch.stack([state[name].detach() for state in states]) for name in names}


class Adam:
    """Adam with L2 penalty, a learning rate and a penalty for every run and either optimiser group."""

    def __init__(self, theta: Tensor, filter_start: int, configs: Sequence[TrainingConfig]) -> None:
        self.m, self.v, self.filter_start = (
            torch.zeros_like(theta),
            torch.zeros_like(theta),
            filter_start,
        )
        self.betas = torch.tensor([0.9, 0.999], dtype=torch.float64, device=theta.device)
        self.powers = torch.ones_like(self.betas)
        rates = [(c.lr, c.filter_lr) for c in configs]
        decays = [(c.weight_decay, c.filter_weight_decay) for c in configs]
        self.lr, self.weight_decay = torch.tensor(
            [rates, decays], dtype=theta.dtype, device=theta.device
        )

    def keep(self, rows: Tensor) -> None:
        for name in ("m", "v", "lr", "weight_decay"):
            setattr(self, name, getattr(self, name)[rows].clone())

    def step(self, theta: Tensor, gradient: Tensor, active: Tensor) -> None:
        self.powers.mul_(self.betas)
        if serves_triton(theta):
            from nfgnn.kernels import training_step

            rates = self.powers, self.lr, self.weight_decay
            training_step.adam(theta, gradient, self.m, self.v, *rates, active, self.filter_start)
            return
        correction_1, correction_2 = (1 - self.powers).to(theta.dtype)
        for group, part in enumerate((slice(0, self.filter_start), slice(self.filter_start, None))):
            p, m, v = theta[:, part], self.m[:, part], self.v[:, part]
            g = torch.addcmul(gradient[:, part], p, self.weight_decay[:, group, None])
            m.lerp_(g, 0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            root = v.sqrt().div_(correction_2.sqrt()).add_(1e-8)
            p.addcdiv_(m * (-self.lr[:, group, None] * active[:, None] / correction_1), root)


def rates_of(models: Sequence[nn.Module], device: torch.device) -> dict[str, Tensor]:
    """The dropout rates of every run, stacked: ``"mlp.dropout" → [S]``.

    Handed in as data even where all are equal: it is by them that ``vmap`` knows that every run draws for itself.
    """
    found: dict[str, list[float]] = {}
    for model in models:
        for path, module in model.named_modules():
            for attribute in _RATES:
                if isinstance(value := getattr(module, attribute, None), float | int):
                    found.setdefault(f"{path}.{attribute}", []).append(float(value))
    return {
        key: torch.tensor(values, device=device) for key, values in found.items() if any(values)
    }


@contextmanager
def rates_set(model: nn.Module, rates: dict[str, Tensor]) -> Iterator[None]:
    """The model with these rates in place of its own."""
    places = [
        (model.get_submodule(key.rpartition(".")[0]), key.rpartition(".")[2], rate)
        for key, rate in rates.items()
    ]
    before = [getattr(module, attribute) for module, attribute, _ in places]
    try:
        for module, attribute, rate in places:
            setattr(module, attribute, rate)
        yield
    finally:
        for (module, attribute, _), value in zip(places, before):
            setattr(module, attribute, value)
