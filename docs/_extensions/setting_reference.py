"""The settings of the training and of the models, with their ranges and defaults."""

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields

from sphinx.pycode import ModuleAnalyzer

from nfgnn.nn import GATES
from nfgnn.nn.gates import ACTIVATIONS
from nfgnn.nn.head_gates import HEAD_GATES
from nfgnn.nn.models import LINK_CHOICES, MODELS
from nfgnn.nn.models.residual_stack import NORMS
from nfgnn.spectral import BASES
from nfgnn.spectral.response import RESPONSES
from nfgnn.training.config import TrainingConfig
from nfgnn.training.settings import SETTINGS


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# Names that the model looks up, so that their declaration does not list them.
NAMES = {
    "activation": _listed(ACTIVATIONS),
    "basis": _listed(BASES),
    "gate": f"{_listed(GATES)}; in `NFNet` {_listed(['none', *HEAD_GATES])}",
    "init": _listed(["ppr", *RESPONSES]),
    "link": _listed(LINK_CHOICES),
    "norm": _listed(NORMS),
}


def settings() -> str:
    """Return a list of the settings of the training, and a table of those of the models."""
    return "\n".join(["## Training", *_training(), "", "## Models", "", *_models()])


def _training() -> list[str]:
    analyzer = ModuleAnalyzer.for_module(TrainingConfig.__module__)
    comments = analyzer.find_attr_docs()
    lines = []
    for field in fields(TrainingConfig):
        meaning = " ".join(comments[TrainingConfig.__name__, field.name]).strip()
        accepted = f"{SETTINGS[field.name]}, default `{field.default}`"
        lines += ["", f"`{field.name}` ({accepted})", f": {_markdown(meaning)}"]
    return lines


def _models() -> list[str]:
    """Return every setting once, with the models that have it and their defaults."""
    defaults: dict[str, dict[str, list[str]]] = {}
    for entry in sorted(MODELS.values(), key=lambda entry: entry.name.lower()):
        for name, parameter in inspect.signature(entry.model).parameters.items():
            if parameter.default is inspect.Parameter.empty or name == "num_nodes":
                continue
            by_value = defaults.setdefault(name, {})
            by_value.setdefault(str(parameter.default), []).append(entry.name)
    lines = ["| setting | values | defaults |", "|---|---|---|"]
    for name in sorted(defaults, key=str.lower):
        given = [
            f"`{value}`: {', '.join(_link(model) for model in models)}"
            for value, models in defaults[name].items()
        ]
        lines.append(
            f"| `{name}` | {NAMES.get(name) or SETTINGS.get(name, '')} | {'<br>'.join(given)} |"
        )
    return lines


def _link(model: str) -> str:
    return f"[{model}](models.md#{model.lower()})"


def _markdown(text: str) -> str:
    """Return a docstring as Markdown."""
    text = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", text)
    return text.replace("``", "`")
