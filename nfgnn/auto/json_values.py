"""Nested dataclasses as JSON values, and back with every type checked."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from nfgnn.training import RunConfig

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return a dataclass as JSON values. Numbers that are not finite become ``None``."""
    if isinstance(value, RunConfig):
        return to_json(value.to_dict())
    if is_dataclass(value):
        return {field.name: to_json(vars(value)[field.name]) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_json(kind: type[T], value: Any, place: str = "") -> T:
    """Return the dataclass that :func:`to_json` has described.

    Args:
        kind: the class.
        value: JSON values. Keys that the class does not have are ignored, so that files of later
            versions can be read.
        place: where the value is, for messages.

    Raises:
        ValueError: with the place and what is expected there.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the file'} is not an object")
    found = {}
    for name, field_type in get_type_hints(kind).items():
        path = f"{place}.{name}".lstrip(".")
        if name not in value:
            raise ValueError(f"{path} is missing")
        found[name] = _checked(field_type, value[name], path)
    return kind(**found)


def _checked(kind: Any, value: Any, place: str) -> Any:
    """Return a JSON value as an annotated type."""
    origin = get_origin(kind)
    if origin is UnionType:
        # All unions here are of one type and None.
        if value is None:
            return None
        return _checked(get_args(kind)[0], value, place)
    if origin is list or origin is tuple:
        items = _instance(list, value, place)
        item_type = get_args(kind)[0]
        return origin(_checked(item_type, item, f"{place}[{i}]") for i, item in enumerate(items))
    if origin is dict:
        table = _instance(dict, value, place)
        item_type = get_args(kind)[1]
        return {key: _checked(item_type, item, f"{place}.{key}") for key, item in table.items()}
    if kind is RunConfig:
        return RunConfig.from_dict(_instance(dict, value, place))
    if isinstance(kind, type) and is_dataclass(kind):
        return from_json(kind, value, place)
    if kind is float:
        return math.nan if value is None else float(_instance((int, float), value, place))
    return _instance(kind, value, place)


def _instance(kind: Any, value: Any, place: str) -> Any:
    # A bool is an int for Python, but not for JSON.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{place} has an unexpected value")
    return value
