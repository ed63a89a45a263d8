"""Parse values that users type on the command line."""

import re
import tomllib
from typing import Any

from nfgnn.errors import UserError, suggestion

_ROLES = ("id", "label", "split", "source", "target", "weight", "drop", "category")
_REPEATED = ("drop", "category")
_MAX_SEEDS = 10_000
_DECIMAL = re.compile(r"[+-]?([0-9]+\.|\.[0-9]+|[0-9]+\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
"""Decimal numbers, also without digits before or after the point, which TOML requires."""


def columns(items: list[str] | None) -> dict[str, Any]:
    """Return ``["label=class", "drop=name"]`` as keyword arguments of ``load_dataset``."""
    options: dict[str, Any] = {}
    for item in items or []:
        role, _, name = item.partition("=")
        if role not in _ROLES or not name:
            raise UserError(
                f"--column {item} is not valid: use ROLE=NAME, for example label=class, where "
                f"ROLE is one of {', '.join(_ROLES)}{suggestion(role, _ROLES)}"
            )
        if role in _REPEATED:
            key = f"{role}_columns"
            options[key] = (*options.get(key, ()), name)
        else:
            options[f"{role}_column"] = name
    return options


def words(text: str | None) -> list[str] | None:
    """Return ``"texas, cornell"`` as a list; ``None`` stays ``None``."""
    if text is None:
        return None
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    """Return ``"0-9"`` or ``"0,3,5"`` as a list of numbers."""
    found: list[int] = []
    try:
        for part in text.split(","):
            low, _, high = part.partition("-")
            seeds = range(int(low), int(high or low) + 1)
            if len(seeds) > _MAX_SEEDS:
                raise UserError(
                    f"--seeds {text} is not valid: at most {_MAX_SEEDS} seeds are allowed"
                )
            found.extend(seeds)
    except UserError:
        raise
    except (ValueError, OverflowError):
        raise UserError(
            f"--seeds {text} is not valid: use a range such as 0-9 or a list such as 0,1,2"
        ) from None
    return found


def settings(items: list[str] | None, **options: str | None) -> dict[str, Any]:
    """Return ``["K=5", "basis=bernstein"]`` as a dictionary.

    Values are parsed as TOML, and also as Python writes them: ``True``, ``.5``. Any other value,
    such as a bare word, is a string.

    Args:
        items: values of the option ``--set``.
        options: settings that have their own option; ``None`` means that the option was omitted.
    """
    parsed: dict[str, Any] = {}
    for item in items or []:
        key, equals, text = item.partition("=")
        if not equals or not key.strip():
            raise UserError(
                f"--set {item} is not valid: use --set KEY=VALUE, for example --set K=5"
            )
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            # A number with thousands of digits and deep brackets are not valid TOML either.
            value = _python_value(text.strip())
        parsed[key.strip()] = value
    given = {key: value for key, value in options.items() if value is not None}
    return parsed | given


def _python_value(text: str) -> bool | float | str:
    """Return the Boolean or the number that Python would read, otherwise the text itself."""
    if text in ("True", "False"):
        return text == "True"
    if not _DECIMAL.fullmatch(text):
        return text
    return float(text)


def command(*words: str, **options: Any) -> str:
    """Return the command line that repeats a call; options that are ``None`` are left out."""
    given = [
        f"--{key.replace('_', '-')} {value}" for key, value in options.items() if value is not None
    ]
    return " ".join(["nfgnn", *words, *given])
