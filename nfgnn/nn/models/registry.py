"""The registry of models, and the decorator that adds a class to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from nfgnn import plugins
from nfgnn.nn.node_model import NodeModel

M = TypeVar("M", bound=type[NodeModel])


@dataclass(frozen=True)
class ModelEntry:
    """A registered model and what ``nfgnn models`` reports about it."""

    name: str
    model: type[NodeModel]
    title: str
    """The paper that introduced it."""
    year: int
    complexity: str
    """Cost of a forward pass with n nodes, m edges, f features, h hidden channels, c classes."""
    mini_batch: bool = False
    """Whether it can be trained on mini-batches of rows."""


MODELS: dict[str, ModelEntry] = {}


def register_model(
    title: str, year: int, complexity: str, mini_batch: bool = False
) -> Callable[[M], M]:
    """Class decorator: register a model under its class name.

    ``nfgnn train``, ``nfgnn models`` and ``NodeClassifier`` then find it. The class derives from
    :class:`~nfgnn.nn.NodeModel` and takes ``in_channels``, ``out_channels`` and keyword arguments
    with defaults, which are its hyper-parameters.

    Args:
        title, year, complexity, mini_batch: see :class:`ModelEntry`.
    """

    def register(model: M) -> M:
        name = model.__name__
        if not (isinstance(model, type) and issubclass(model, NodeModel)):
            raise TypeError(
                f"{name} cannot be registered: derive it from nfgnn.nn.NodeModel "
                f"(`class {name}(NodeModel)`)"
            )
        MODELS[name] = ModelEntry(name, model, title, year, complexity, mini_batch)
        return model

    return register


def find_model(name: str) -> ModelEntry:
    """Return the entry of a model by its name, ignoring case.

    A name that is not registered is looked up in other packages: see :mod:`nfgnn.plugins`.
    """
    entry = _registered(name)
    if entry is not None:
        return entry
    loaded = plugins.load_plugin(plugins.MODELS, name)
    entry = _registered(name)
    if entry is not None:
        return entry
    if loaded is not None:
        raise plugins.plugin_error(
            plugins.MODELS,
            name,
            "does not register a model of that name; it must name a class under @register_model",
        )
    known = sorted({*MODELS, *plugins.plugin_names(plugins.MODELS)})
    hint = " (a model of your own needs its module: --import MODULE, or import it in Python)"
    raise plugins.unknown_plugin("model", name, known, hint)


def _registered(name: str) -> ModelEntry | None:
    by_lower = {key.lower(): entry for key, entry in MODELS.items()}
    return MODELS.get(name) or by_lower.get(name.lower())
