"""The table of models: one decorator per class."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from nfgnn.errors import unknown_name

M = TypeVar("M", bound=type[nn.Module])


@dataclass(frozen=True)
class ModelEntry:
    """What ``nfgnn models`` tells about a model."""

    name: str
    model: type[nn.Module]
    title: str
    """The paper that introduced it."""
    year: int
    complexity: str
    """Cost of one forward pass. n nodes, m edges, f features, h hidden channels, c classes, K the degree."""
    mini_batch: bool = False
    """Whether it can be trained on mini-batches of rows."""
    many_seeds: bool = False
    """Whether many runs of it can share one computation."""


MODELS: dict[str, ModelEntry] = {}


def register_model(
    title: str, year: int, complexity: str, mini_batch: bool = False, many_seeds: bool = False
) -> Callable[[M], M]:
    """Class decorator: make a model known by its class name to ``nfgnn train``, ``nfgnn models``, ``NodeClassifier``.

    The class takes ``in_channels`` and ``out_channels`` and keyword arguments with defaults, which are its
    hyper-parameters; ``forward(x, edge_index, edge_weight=None)`` returns logits; a submodule called ``prop`` is
    trained with the filter's learning rate.
    """

    def register(model: M) -> M:
        name = model.__name__
        MODELS[name] = ModelEntry(name, model, title, year, complexity, mini_batch, many_seeds)
        return model

    return register


def find_model(name: str) -> ModelEntry:
    """The entry of a model by its name, in upper or lower case."""
    by_lower = {key.lower(): entry for key, entry in MODELS.items()}
    if name.lower() not in by_lower:
        raise unknown_name("model", name, sorted(MODELS))
    return by_lower[name.lower()]
