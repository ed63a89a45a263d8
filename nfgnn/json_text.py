"""JSON that every parser reads: numbers that are not finite become ``null``."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON text. ``NaN`` and ``Infinity`` are not part of JSON."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
