"""A preset in a file of the user: what ``nfgnn tune`` writes, or a file written by hand.

A preset file is TOML. It names a model and its settings::

    model = "NFGNN"
    K = 5
    lr = 0.02

The settings may also be in one table, whose name has no meaning here. ``nfgnn tune`` writes
``[PROTOCOL.GRAPH]``, so that the table can be moved to a preset file of the package. Settings that
are not given have the model's defaults.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.files import expand_user, require_regular_file

_MAX_BYTES = 2**20


@dataclass(frozen=True)
class PresetFile:
    """The content of a preset file."""

    path: Path
    model: str | None
    """``None`` if the file is for any model with these settings."""
    settings: dict[str, Any]
    lines: tuple[str, ...]

    def settings_of(self, model: str) -> dict[str, Any]:
        """Return the settings; refuse a model that the file is not for."""
        if self.model is not None and self.model.lower() != model.lower():
            raise UserError(
                f"{self.place('model')}the preset is for {self.model}, not for {model}: leave the "
                "model out, or use another preset"
            )
        return self.settings

    def place(self, key: str) -> str:
        """Return file and line of a key, as the beginning of a message."""
        definition = re.compile(rf"(^|[\s{{,])[\"']?{re.escape(key)}[\"']?\s*=")
        for number, line in enumerate(self.lines, start=1):
            if definition.search(line.partition("#")[0]):
                return f"{self.path}, line {number}: "
        return f"{self.path}: "


def is_preset_file(preset: str | Path) -> bool:
    """Whether a preset is given as a file, which has an extension, not as a kind like ``best``."""
    return bool(Path(preset).suffix)


def preset_model(preset: str | Path) -> str | None:
    """Return the model that a preset file names; ``None`` for a kind and for other files."""
    return read_preset_file(preset).model if is_preset_file(preset) else None


def read_preset_file(path: str | Path) -> PresetFile:
    """Read a preset file; refuse one that is not a model and one table of settings."""
    place = expand_user(path)
    if not place.exists():
        raise UserError(f"preset file {path} does not exist: check the path")
    require_regular_file(place)
    stat = place.stat()
    return _read(place, stat.st_size, stat.st_mtime_ns)


# A search resolves one configuration per trial, so the file is not parsed each time.
@lru_cache(maxsize=8)
def _read(path: Path, size: int, changed: int) -> PresetFile:
    if size > _MAX_BYTES:
        raise UserError(f"{path}: has {size:,} bytes, which is no preset; check the path")
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, or of the encoding
        raise UserError(f"{path}: is not valid TOML: {error}; correct it") from None
    file = PresetFile(path, content.pop("model", None), {}, tuple(text.splitlines()))
    if file.model is not None and not isinstance(file.model, str):
        raise UserError(f'{file.place("model")}model is a name, such as model = "NFGNN"')
    tables = _tables_of_settings(content)
    if len(tables) > 1:
        names = ", ".join(name or "the top of the file" for name in tables)
        raise UserError(
            f"{path}: a preset has one table of settings, this file has {len(tables)} ({names}): "
            "keep the settings of one"
        )
    if not tables and file.model is None:
        raise UserError(f"{path}: has neither a model nor settings; check the path")
    settings = next(iter(tables.values()), {})
    return PresetFile(path, file.model, settings, file.lines)


def _tables_of_settings(content: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Return the tables that hold settings, by their dotted names; the name of the top is empty."""
    found: dict[str, dict[str, Any]] = {}
    own = {key: value for key, value in content.items() if not isinstance(value, dict)}
    if own:
        found[path] = own
    for key, value in content.items():
        if isinstance(value, dict):
            found |= _tables_of_settings(value, f"{path}.{key}".lstrip("."))
    return found
