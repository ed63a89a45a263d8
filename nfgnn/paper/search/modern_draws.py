"""The configurations that the search on the newer benchmarks tries.

Every model gets the same number of draws. Settings that matter most take their values in turn, so
that a few draws cover them: the depth from structure to structure, and learning rate, dropout and
weight decay from draw to draw, as in a Latin square. The others are random: the value of a setting
in a draw depends only on the graph, the name of the setting and the number of the draw. Models that
share a setting and its values therefore try the same ones, and further draws or a new setting leave
earlier values as they are. The spaces are in ``modern_spaces.toml``.
"""

import random
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC, Space, search_space

Settings = dict[str, Any]
DRAWS_PER_STRUCTURE = 3
"""Draws that differ in numbers only. They are trained as one computation where a device can."""
_MAX_ATTEMPTS = 100
"""For one draw that differs from the earlier ones and that the model accepts."""


@lru_cache(maxsize=1024)
def modern_draws(graph: str, model: str, count: int) -> tuple[Settings, ...]:
    """Return the first ``count`` draws of a model for a graph.

    Args:
        graph: text that identifies graph and protocol.
        model: name of the model.
        count: number of draws. A larger number only adds draws.
    """
    space = modern_space(model)
    found: list[Settings] = []
    index = 0
    while len(found) < count:
        settings = {**_spaces()["fixed"], **_draw(graph, space, index)}
        if settings not in found and _can_be_built(model, settings):
            found.append(settings)
        index += 1
        if index > _MAX_ATTEMPTS * count:
            raise UserError(
                f"the search space of {model} has no {count} different configurations: request "
                "fewer draws"
            )
    return tuple(found)


def final_settings() -> Settings:
    """Return the settings that replace those of a draw when it is a finalist."""
    return dict(_spaces()["final"])


def modern_space(model: str) -> Space:
    """Return the values that the draws of a model choose from."""
    tables = _spaces()
    names = RunConfig.resolve(model, {}, None, None, "none").settings()
    space = dict(tables["common"])
    if model not in tables and not any(model in _models(table) for table in tables.values()):
        structures = search_space(model, "best", {})
        space |= {name: structures[name] for name in structures if name not in NUMERIC}
    for table in tables.values():
        if model in _models(table):
            space |= table
    space |= tables.get(model, {})
    return {name: tuple(values) for name, values in space.items() if name in names}


def _models(table: dict[str, Any]) -> list[str]:
    models: list[str] = table.get("models", [])
    return models


@lru_cache
def _spaces() -> dict[str, dict[str, Any]]:
    text = (files(__package__) / "modern_spaces.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _draw(graph: str, space: Space, index: int) -> Settings:
    settings = {}
    structure = index // DRAWS_PER_STRUCTURE
    turns = _spaces()["turns"]
    for name, values in space.items():
        if name in turns["structures"]:
            settings[name] = values[structure % len(values)]
            continue
        if name in turns["numbers"]:
            # Shifted from structure to structure, so that other values meet.
            shift = turns["numbers"].index(name) * structure
            settings[name] = values[(index + shift) % len(values)]
            continue
        place = index if name in NUMERIC else f"structure {structure}"
        settings[name] = random.Random(f"{graph} {name} {place}").choice(values)
    return settings


def _can_be_built(model: str, settings: Settings) -> bool:
    """Whether the model accepts this combination of settings."""
    try:
        RunConfig.resolve(model, settings, None, None, "none").build(2, 2, 2)
    except UserError:
        return False
    return True
