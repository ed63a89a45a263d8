"""Everything that decides a run, beside the data and the seed."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from nfgnn.errors import UserError, suggestion
from nfgnn.nn import NodeModel
from nfgnn.nn.conv import GATES
from nfgnn.nn.models import find_model
from nfgnn.training.presets import preset


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    The paper's protocol: Adam, at most 1000 epochs; after ``patience`` epochs training stops as soon as the
    validation loss exceeds the mean of its last ``patience`` values; the model of least validation loss is kept.
    """

    lr: float = 0.01
    """Learning rate of everything but the filter."""
    weight_decay: float = 5e-4
    """L2 penalty of everything but the filter."""
    filter_lr: float = 0.01
    """Learning rate of the filter."""
    filter_weight_decay: float = 0.0
    """L2 penalty of the filter."""
    epochs: int = 1000
    patience: int = 200
    features: str = "auto"
    """Feature scaling: see :class:`nfgnn.data.FeatureScaling`."""
    label_smoothing: float = 0.0
    """Share of the target that the training loss spreads evenly over all classes; the validation loss has none."""
    batch_size: int = 0
    """Rows of a step, for models that are trained on rows (:class:`nfgnn.nn.models.Scalable`); 0 is all of them."""


@dataclass(frozen=True)
class RunConfig:
    """A model's name with its hyper-parameters, and how it is trained."""

    model: str
    hyper: dict[str, Any] = field(default_factory=dict)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @classmethod
    def resolve(
        cls,
        model: str,
        settings: Mapping[str, Any],
        dataset: str | None,
        protocol: str | None,
        kind: str = "best",
    ) -> "RunConfig":
        """The preset of the dataset, overridden by ``settings``; every value written out."""
        entry = find_model(model)
        defaults = {
            name: p.default
            for name, p in inspect.signature(entry.model).parameters.items()
            if p.default is not inspect.Parameter.empty
            and name != "num_nodes"  # the graph's, not a setting
        }
        known = {f.name: f.default for f in fields(TrainingConfig)}
        values = {**_fitting(preset(entry.name, dataset, protocol, kind), settings), **settings}
        for key, value in values.items():
            if key not in defaults and key not in known:
                choices = [*defaults, *known]
                raise UserError(
                    f"{entry.name} has no setting '{key}': choose one of {', '.join(choices)}"
                    f"{suggestion(key, choices)}"
                )
            values[key] = _coerce(key, value, (defaults | known)[key])
        hyper = {key: values.get(key, default) for key, default in defaults.items()}
        return cls(
            entry.name, hyper, TrainingConfig(**{k: v for k, v in values.items() if k in known})
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """The inverse of :meth:`to_dict`."""
        settings = dict(values)
        return cls.resolve(settings.pop("model"), settings, None, None, "none")

    def to_dict(self) -> dict[str, Any]:
        """One flat table: the model's name and its settings."""
        return {
            "model": self.model,
            **{k: v for k, v in self.settings().items() if k not in _UNSAID or v},
        }

    def settings(self) -> dict[str, Any]:
        """All hyper-parameters of the model and the training's."""
        plain = {
            k: v if isinstance(v, int | float | str | None) else str(v)
            for k, v in self.hyper.items()
        }
        return {**plain, **asdict(self.training)}

    def build(self, num_features: int, num_classes: int, num_nodes: int | None = None) -> NodeModel:
        """The model with fresh weights. Only one that asks for ``num_nodes``, such as LINK, is told it."""
        constructor = find_model(self.model).model
        size = (
            {"num_nodes": num_nodes}
            if "num_nodes" in inspect.signature(constructor).parameters
            else {}
        )
        try:
            model: NodeModel = constructor(num_features, num_classes, **size, **self.hyper)
        except ValueError as error:
            raise UserError(f"{self.model}: {error}") from error
        return model


_UNSAID = (
    "batch_size",
    "label_smoothing",
)  # where 0: runs from before there was such a setting keep their name


def _fitting(preset: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The preset without its gate, where the user wants fewer base filters than that gate can do with."""
    gate = GATES.get(preset.get("gate", ""))
    if (
        gate is None
        or "gate" in settings
        or settings.get("rank", gate.least_rank) >= gate.least_rank
    ):
        return preset
    return {key: value for key, value in preset.items() if key != "gate"}


def _coerce(key: str, value: Any, default: Any) -> Any:
    """``value``, if it is of the default's kind; whole numbers pass for real ones."""
    if (key == "lambda_max" and value == "estimate") or default is None:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match default:
        case bool():
            fits = isinstance(value, bool)
        case int():
            fits = number and value == int(value)
        case float():
            fits = number
        case _:
            fits = not number and not isinstance(value, bool)
    if not fits:
        raise UserError(f"{key} = {value!r} is not valid: it takes a value like {default!r}")
    return type(default)(value) if number else value
