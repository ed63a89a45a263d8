"""What a user has typed on the command line, as values; what is not understood is named."""

import tomllib
from typing import Any

from nfgnn.errors import UserError


def columns(items: list[str] | None) -> dict[str, Any]:
    """``["label=class", "drop=name"]`` as options of ``load_dataset``."""
    options: dict[str, Any] = {}
    for item in items or []:
        role, equals, name = item.partition("=")
        roles = ("id", "label", "split", "source", "target", "weight", "drop")
        if not equals or not name or role not in roles:
            raise UserError(
                f"--column {item} is not understood: write ROLE=NAME, for example label=class"
            )
        if role == "drop":
            options["drop_columns"] = (*options.get("drop_columns", ()), name)
        else:
            options[f"{role}_column"] = name
    return options


def words(text: str | None) -> list[str] | None:
    """``"texas, cornell"`` as a list."""
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[int]:
    """``"0-9"`` or ``"0,3,5"`` as a list."""
    try:
        parts = [part.partition("-") for part in text.split(",")]
        return [n for low, _, high in parts for n in range(int(low), int(high or low) + 1)]
    except ValueError:
        raise UserError(f"--seeds {text} is not understood: write 0-9, or 0,1,2") from None


def settings(items: list[str]) -> dict[str, Any]:
    """``["K=5", "basis=bernstein"]`` as a dictionary; values as TOML writes them, bare words are strings."""
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key.strip():
            raise UserError(
                f"--set {item} is not understood: write --set KEY=VALUE, for example --set K=5"
            )
        try:
            settings[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = text.strip()
    return settings


def command(*words: str, **options: Any) -> str:
    """The command line that makes the same again."""
    given = [f"--{key} {value}" for key, value in options.items() if value is not None]
    return " ".join(["nfgnn", *words, *given])
