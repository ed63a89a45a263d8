"""Everything that decides a run, beside the data and the seed."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn.data import require_memory
from nfgnn.errors import UserError, suggestion
from nfgnn.nn import GATES, NodeModel, find_model
from nfgnn.training.criterion import BY_LOSS, resolve_select
from nfgnn.training.metrics import AUTO, resolve_metric
from nfgnn.training.model_size import CheckedAllocation
from nfgnn.training.presets import PresetFile, is_preset_file, preset, read_preset_file
from nfgnn.training.settings import check_setting

_OMITTED = {
    "batch_size": 0,
    "label_smoothing": 0.0,
    "restarts": 1,
    "warmup_epochs": 0,
    "metric": AUTO,
    "select": BY_LOSS,
    "class_weight": "none",
    "partitions": 0,
    "partitions_per_batch": 1,
    "precision": "float32",
    "norm": "layer",
    "input_dropout": 0.0,
}
"""Settings that were added later, with the values that old records stand for. Omitting these values
keeps the keys of the records."""


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    The paper's protocol: Adam, at most 1000 epochs. After ``patience`` epochs training stops as
    soon as the validation loss exceeds the mean of its last ``patience`` values. The weights of
    least validation loss are kept. With ``select="metric"`` the metric takes the place of the loss.
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
    """Largest number of epochs."""
    patience: int = 200
    """Number of epochs whose mean validation loss must not be exceeded."""
    features: str = "auto"
    """Feature scaling: see :class:`nfgnn.data.FeatureScaling`."""
    label_smoothing: float = 0.0
    """Share of the training target that is spread evenly over all classes."""
    batch_size: int = 0
    """Rows per step, for models that are trained on rows; 0 takes all rows."""
    warmup_epochs: int = 0
    """Number of epochs in which the learning rates rise linearly; 0 starts with their full value.

    With a learning rate far above the initial weights, the first steps of Adam are larger than the
    weights, and a strong L2 penalty may then pull all of them to 0. A warm-up prevents that.
    """
    restarts: int = 1
    """How often a run that never rises above chance is restarted with other weights."""
    metric: str = AUTO
    """The metric that runs are scored by: see :func:`nfgnn.training.resolve_metric`."""
    select: str = AUTO
    """What selects the epoch and stops the training: ``"loss"`` (the validation loss) or
    ``"metric"``. ``"auto"`` is the loss where the metric is accuracy, else the metric."""
    class_weight: str = "none"
    """``"balanced"`` gives a training node of class c the weight n / (C n_c) in the loss."""
    partitions: int = 0
    """Number of parts that the graph is cut into for mini-batch training; 0 trains on the whole
    graph: see :mod:`nfgnn.training.partition_batches`."""
    partitions_per_batch: int = 1
    """Number of parts, drawn anew in every epoch, whose induced subgraph is one mini-batch."""
    precision: str = "float32"
    """``"bfloat16"`` computes the passes in half precision; weights and optimizer stay float32.
    ``"auto"`` does so on a GPU, for models that support it."""

    def uses_half_precision(self, model: NodeModel, device: torch.device) -> bool:
        """Return whether the passes of a model are computed in bfloat16 on a device."""
        if self.precision == "auto":
            return model.half_precision and device.type == "cuda"
        return self.precision == "bfloat16"

    def __post_init__(self) -> None:
        for setting in fields(self):
            check_setting(setting.name, vars(self)[setting.name], setting.default)

    @property
    def num_partition_batches(self) -> int:
        """Number of mini-batches that the parts of a graph form; 1 for a whole graph."""
        return max(1, math.ceil(self.partitions / self.partitions_per_batch))


@dataclass(frozen=True)
class RunConfig:
    """The name of a model, its hyper-parameters, and how it is trained."""

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
        """Return the preset of a dataset, overridden by ``settings``, with every value given.

        Args:
            model: name of the model.
            settings: hyper-parameters of the model and of the training.
            dataset, protocol, kind: select the preset: see :func:`nfgnn.training.presets.preset`.
                ``kind`` may also be the path of a preset file.
        """
        entry = find_model(model)
        hyper_defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(entry.model).parameters.items()
            if parameter.default is not inspect.Parameter.empty and name != "num_nodes"
        }
        training_defaults = {f.name: f.default for f in fields(TrainingConfig)}
        defaults = {**hyper_defaults, **training_defaults}
        given = _checked(entry.name, settings, defaults)
        file = None
        if is_preset_file(kind):
            file = read_preset_file(kind)
            chosen = file.settings_of(entry.name)
        else:
            chosen = preset(entry.name, dataset, protocol, kind)
        values = _checked(entry.name, _applicable(chosen, given), defaults, file) | given
        hyper = {key: values.get(key, default) for key, default in hyper_defaults.items()}
        training = {key: value for key, value in values.items() if key in training_defaults}
        return cls(entry.name, hyper, TrainingConfig(**training))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Return the configuration that :meth:`to_dict` describes."""
        settings = dict(values)
        model = settings.pop("model", None)
        if not isinstance(model, str):
            raise UserError("the configuration does not specify a model")
        # Settings of some models only.
        known = cls.resolve(model, {}, None, None, "none").settings()
        omitted = {name: value for name, value in _OMITTED.items() if name in known}
        return cls.resolve(model, {**omitted, **settings}, None, None, "none")

    def to_dict(self) -> dict[str, Any]:
        """Return one flat table: the name of the model and all settings."""
        settings = {
            key: value
            for key, value in self.settings().items()
            if key not in _OMITTED or value != _OMITTED[key]
        }
        return {"model": self.model, **settings}

    def settings(self) -> dict[str, Any]:
        """Return the hyper-parameters of the model and of the training."""
        hyper = {
            key: value if isinstance(value, int | float | str | None) else str(value)
            for key, value in self.hyper.items()
        }
        return {**hyper, **asdict(self.training)}

    def for_graph(self, data: Data) -> "RunConfig":
        """Return the configuration with the rule that selects epochs on this graph.

        ``select`` becomes ``"loss"`` or ``"metric"``. ``metric`` stays or becomes ``"auto"`` where
        it is the metric that the graph has anyway, so that equal runs have equal configurations.
        """
        metric = resolve_metric(self.training.metric, data)
        is_automatic = metric == resolve_metric(AUTO, data)
        training = replace(
            self.training,
            metric=AUTO if is_automatic else metric.name,
            select=resolve_select(self.training.select, metric),
        )
        return replace(self, training=training)

    def build(self, num_features: int, num_classes: int, num_nodes: int | None = None) -> NodeModel:
        """Return the model with fresh weights.

        ``num_nodes`` is passed to models with weights per node only, such as LINK.
        """
        where = f"{self.model} with these settings"
        constructor = find_model(self.model).model
        if self.training.precision == "bfloat16" and not constructor.half_precision:
            raise UserError(f"{self.model} supports only float32: omit the setting precision")
        sizes = {}
        if "num_nodes" in inspect.signature(constructor).parameters:
            sizes["num_nodes"] = num_nodes

        def check(num_bytes: int) -> None:
            # Gradients and the two moments of Adam take as much as the weights.
            require_memory(4 * num_bytes, where)

        try:
            with CheckedAllocation(check):
                return constructor(num_features, num_classes, **sizes, **self.hyper)
        except UserError:
            raise
        except ValueError as error:
            raise UserError(f"{self.model}: {error}") from error


def _applicable(preset: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the gate of a preset if the user sets a rank that is too small for it."""
    gate = GATES.get(preset.get("gate", ""))
    if gate is None or "gate" in settings:
        return preset
    if settings.get("rank", gate.least_rank) >= gate.least_rank:
        return preset
    return {key: value for key, value in preset.items() if key != "gate"}


def _checked(
    model: str,
    settings: Mapping[str, Any],
    defaults: Mapping[str, Any],
    file: PresetFile | None = None,
) -> dict[str, Any]:
    """Return settings as their declared types; refuse unknown names and invalid values.

    Messages name the line of ``file`` if the settings are from a preset file.
    """
    checked = {}
    for key, value in settings.items():
        place = "" if file is None else file.place(key)
        if key not in defaults:
            raise UserError(
                f"{place}{model} has no setting '{key}': choose one of {', '.join(defaults)}"
                f"{suggestion(key, defaults)}"
            )
        try:
            checked[key] = check_setting(key, value, defaults[key])
        except UserError as error:
            raise UserError(f"{place}{error}") from None
    return checked
