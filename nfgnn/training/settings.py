"""What a setting may be: its type and its range, declared once for every source of settings.

``--set``, the arguments of :class:`~nfgnn.training.NodeClassifier`, presets, ``classifier.json``
and records all pass :func:`check_setting`, so they refuse the same values with the same message.
Names that only the model can check, such as ``basis`` and ``gate``, are declared as text; the
constructor of the model refuses unknown ones.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, time
from typing import Any

import numpy as np

from nfgnn.data import SCALINGS
from nfgnn.errors import UserError
from nfgnn.training.metrics import AUTO, METRICS

_PLAIN = (bool, int, float, bytes, list, tuple, dict, set, date, time)


class Declaration(ABC):
    """What values a setting takes. ``str()`` of it completes "it takes …"."""

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Return the value as the declared type; raise ``ValueError`` if it is not valid."""


@dataclass(frozen=True)
class Number(Declaration):
    """A finite number in a range.

    Args:
        low, high: the bounds; ``None`` for no bound.
        whole: whether only whole numbers are valid.
        low_excluded, high_excluded: whether the bound itself is not valid.
        words: texts that are valid in place of a number.
    """

    low: float | None = None
    high: float | None = None
    whole: bool = False
    low_excluded: bool = False
    high_excluded: bool = False
    words: tuple[str, ...] = ()

    def read(self, value: Any) -> float | int | str:
        if isinstance(value, str) and value in self.words:
            return value
        number = _finite(value)
        too_low = self.low is not None and number < self.low
        too_high = self.high is not None and number > self.high
        on_low = self.low_excluded and number == self.low
        on_high = self.high_excluded and number == self.high
        if too_low or too_high or on_low or on_high:
            raise ValueError
        if not self.whole:
            return number
        if number != int(number):
            raise ValueError
        return int(value)

    def __str__(self) -> str:
        noun = "whole number" if self.whole else "number"
        low = f"{self.low:,.10g}" if self.low is not None else ""
        high = f"{self.high:,.10g}" if self.high is not None else ""
        if not low:
            text = f"a finite {noun}"
        elif high:
            text = f"a {noun} from {low} to {high}"
            excluded = [low] * self.low_excluded + [high] * self.high_excluded
            if excluded:
                text += f" ({' and '.join(excluded)} excluded)"
        else:
            text = f"a {noun} {'greater than' if self.low_excluded else 'of at least'} {low}"
        return " or ".join([text, *map(repr, self.words)])


@dataclass(frozen=True)
class Flag(Declaration):
    """``True`` or ``False``."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Choice(Declaration):
    """One of several names."""

    names: tuple[str, ...]

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.names:
            raise ValueError
        return value

    def __str__(self) -> str:
        return f"one of {', '.join(self.names)}"


@dataclass(frozen=True)
class Name(Declaration):
    """A name that the model looks up. In Python an object may take its place, such as a basis.

    Args:
        example: a valid name.
        optional: whether ``None`` is valid.
    """

    example: str
    optional: bool = False

    def read(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if value is None or isinstance(value, _PLAIN):
            raise ValueError
        return value

    def __str__(self) -> str:
        return f"a name like {self.example!r}"


# Upper bounds are far above useful values. They keep a typing error, or a damaged file, from
# allocating all memory.
_WIDTH = Number(1, 65_536, whole=True)
_COUNT = Number(1, 1_000, whole=True)
_EPOCHS = Number(1, 100_000_000, whole=True)
_SHARE = Number(0, 1)
_BELOW_ONE = Number(0, 1, high_excluded=True)
_NOT_NEGATIVE = Number(0)
_SCALE = Number(-1e6, 1e6)

MAX_DEGREE = 1_000

SETTINGS: dict[str, Declaration] = {
    # Training
    "lr": _NOT_NEGATIVE,
    "weight_decay": _NOT_NEGATIVE,
    "filter_lr": _NOT_NEGATIVE,
    "filter_weight_decay": _NOT_NEGATIVE,
    "epochs": _EPOCHS,
    "patience": _EPOCHS,
    "features": Choice(tuple(SCALINGS)),
    "label_smoothing": _BELOW_ONE,
    "batch_size": Number(0, 2**31 - 1, whole=True),
    "restarts": Number(0, 100, whole=True),
    "metric": Choice((AUTO, *METRICS)),
    "select": Choice((AUTO, "loss", "metric")),
    "class_weight": Choice(("none", "balanced")),
    "warmup_epochs": Number(0, 100_000_000, whole=True),
    "partitions": Number(0, 1_000_000, whole=True),
    "partitions_per_batch": Number(1, 1_000_000, whole=True),
    "precision": Choice(("float32", "bfloat16", "auto")),
    # Shape of a model
    "hidden_channels": _WIDTH,
    "num_layers": _COUNT,
    "num_edge_layers": _COUNT,
    "num_node_layers": _COUNT,
    "num_stacks": _COUNT,
    "heads": _COUNT,
    "out_heads": _COUNT,
    "ffn_channels": _WIDTH,
    "batch_norm": Flag(),
    "dropout": _BELOW_ONE,
    "filter_dropout": _BELOW_ONE,
    "input_dropout": _BELOW_ONE,
    "sketch": Number(0, 1_000_000, whole=True),
    "two_hop": Number(0, 1_000_000, whole=True),
    "sketch_dropout": _BELOW_ONE,
    "degree": Flag(),
    "agreement": Flag(),
    "attention": Number(0, 1_000, whole=True),
    "mlp_dropout": _BELOW_ONE,
    "skip_dropout": _BELOW_ONE,
    "link": Name("none"),
    "structure": Flag(),
    "normalize": Flag(),
    "jumping": Name("last"),
    "norm": Name("layer"),
    "root_weight": Flag(),
    "recompute": Flag(),
    "operator": Name("symmetric"),
    # Filters
    "K": Number(0, MAX_DEGREE, whole=True),
    "rank": _COUNT,
    "basis": Name("chebyshev"),
    "gate": Name("term"),
    "activation": Name("tanh", optional=True),
    "init": Name("ppr"),
    "alpha": _SHARE,
    "self_loops": Flag(),
    # A smaller bound than any graph has, so that 2 / lambda_max is a float32.
    "lambda_max": Number(1e-6, 1e6, words=("estimate",)),
    # Single models
    "eps": _SCALE,
    "enhance": _SCALE,
    "self_loop": _SCALE,
    "pretrain_epochs": _EPOCHS,
    "damping": Number(0, 100),
}
"""Declarations of the settings of the training and of the models of this package."""


def check_setting(name: str, value: Any, default: Any) -> Any:
    """Return a setting as its declared type, or raise a :class:`~nfgnn.errors.UserError`.

    Args:
        name: of the setting.
        value: as it was given.
        default: what the model has for it. It decides the type of settings that
            :data:`SETTINGS` does not declare, or that a model uses in another sense.
    """
    if isinstance(value, np.generic):
        value = value.item()
    declared = SETTINGS.get(name)
    if declared is None or not _accepts(declared, default):
        declared = _declaration_like(default)
    try:
        checked = declared.read(value)
    except ValueError:
        raise UserError(f"{name} = {_shown(value)} is not valid: it takes {declared}") from None
    # An integer is a valid float, but records must not hold both forms.
    if isinstance(default, float) and isinstance(checked, int):
        return float(checked)
    return checked


def _accepts(declared: Declaration, value: Any) -> bool:
    try:
        declared.read(value)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _Anything(Declaration):
    """Any value, for settings whose default is neither a number nor a text."""

    def read(self, value: Any) -> Any:
        return _finite(value) if isinstance(value, float) else value

    def __str__(self) -> str:
        return "a finite number"


def _declaration_like(default: Any) -> Declaration:
    """Return what the type of a default suggests."""
    match default:
        case bool():
            return Flag()
        case int():
            return Number(whole=True)
        case float():
            return Number()
        case str():
            return Name(default)
        case _:
            return _Anything()


def _finite(value: Any) -> float:
    """Return a number as a float; raise ``ValueError`` for all else, infinity and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    try:
        number = float(value)
    except OverflowError:
        raise ValueError from None
    if not math.isfinite(number):
        raise ValueError
    return number


def _shown(value: Any) -> str:
    """Return a value for a message, shortened."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"  # Python refuses to print very long ones
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
