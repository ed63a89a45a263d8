"""The configurations that the search on the newer benchmarks tries.

Every model gets as many draws as a search requests, and a search may train fewer of them. The first
nine are from ``modern_spaces.toml``. Settings that matter most take their values in turn, so that a
few draws cover them: the depth from structure to structure, and learning rate, dropout and weight
decay from draw to draw, as in a Latin square. The others are random: the value of a setting in a
draw depends only on the graph, the name of the setting and the number of the draw. Models that
share a setting and its values therefore try the same ones, and further draws or a new setting leave
earlier values as they are.

Further draws of the residual networks are from ``modern_second_spaces.toml``: the published
settings of a network, where there are some, then wider, narrower, deeper and batch-normalised
networks, in turn. Those of other models continue with the first space.
"""

import itertools
import random
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC, Space, search_space

Settings = dict[str, Any]
DRAWS_PER_STRUCTURE = 3
"""Draws that differ in numbers only. They are trained as one computation where a device can."""
NUMBERS = frozenset((*NUMERIC, "input_dropout"))
"""Settings that do not change the shape of a model."""
FIRST_DRAWS = 9
"""Draws from the first space."""
SMALL_GRAPH = 6000
"""Graphs with fewer nodes have a second space of their own, and a longer selection."""
_MAX_ATTEMPTS = 100
"""For one draw that differs from the earlier ones and that the model accepts."""


@lru_cache(maxsize=1024)
def modern_draws(
    graph: str, model: str, count: int, is_small: bool = False
) -> tuple[Settings, ...]:
    """Return the first ``count`` draws of a model for a graph.

    Args:
        graph: text that identifies graph and protocol.
        model: name of the model.
        count: number of draws. A larger number only adds draws.
        is_small: whether the graph has fewer nodes than :data:`SMALL_GRAPH`.
    """
    found: list[Settings] = []
    first = _first_proposals(graph, model)
    _accept(found, first, model, min(count, FIRST_DRAWS))
    _accept(found, _further_proposals(graph, model, is_small, first), model, count)
    return tuple(found)


def _accept(found: list[Settings], proposals: Iterator[Settings], model: str, count: int) -> None:
    """Add proposals that are new and that the model accepts, until there are ``count``."""
    attempts = 0
    while len(found) < count:
        settings = {**_spaces()["fixed"], **next(proposals)}
        if settings not in found and _can_be_built(model, settings):
            found.append(settings)
        attempts += 1
        if attempts > _MAX_ATTEMPTS * count:
            raise UserError(
                f"the search space of {model} has no {count} different configurations: request "
                "fewer draws"
            )


def _first_proposals(graph: str, model: str) -> Iterator[Settings]:
    space = modern_space(model)
    turns = _spaces()["turns"]
    for index in itertools.count():
        yield _draw(graph, space, index, turns["structures"], turns["numbers"])


def _further_proposals(
    graph: str, model: str, is_small: bool, first: Iterator[Settings]
) -> Iterator[Settings]:
    yield from published_draws(graph, model)
    space = second_space(model, is_small)
    if not space:
        yield from first
    numbers = _second_spaces()["turns"]["numbers"]
    structures = [name for name in space if name not in numbers]
    for index in itertools.count():
        yield _draw(graph, space, index, structures, numbers)


def published_draws(graph: str, model: str) -> list[Settings]:
    """Return the published settings that a model tries on a graph, at most one."""
    names = _setting_names(model)
    found = []
    for entry in _second_spaces()["published"]:
        if entry["graph"] == graph and model in entry["models"]:
            settings = entry["settings"]
            found.append({name: settings[name] for name in settings if name in names})
    return found


def final_settings() -> Settings:
    """Return the settings that replace those of a draw when it is a finalist."""
    return dict(_spaces()["final"])


def modern_space(model: str) -> Space:
    """Return the values that the first draws of a model choose from."""
    tables = _spaces()
    names = _setting_names(model)
    space = dict(tables["common"])
    if model not in tables and not any(model in _models(table) for table in tables.values()):
        structures = search_space(model, "best", {})
        space |= {name: structures[name] for name in structures if name not in NUMERIC}
    for table in tables.values():
        if model in _models(table):
            space |= table
    space |= tables.get(model, {})
    return {name: tuple(values) for name, values in space.items() if name in names}


def second_space(model: str, is_small: bool) -> Space:
    """Return the values that further draws choose from; empty if the first space continues."""
    tables = _second_spaces()
    if model not in tables["residual"]["models"]:
        return {}
    names = _setting_names(model)
    table = tables["small" if is_small else "large"]
    return {name: tuple(values) for name, values in table.items() if name in names}


def _setting_names(model: str) -> set[str]:
    return set(RunConfig.resolve(model, {}, None, None, "none").settings())


def _models(table: dict[str, Any]) -> list[str]:
    models: list[str] = table.get("models", [])
    return models


@lru_cache
def _spaces() -> dict[str, dict[str, Any]]:
    return _read("modern_spaces.toml")


@lru_cache
def _second_spaces() -> dict[str, Any]:
    return _read("modern_second_spaces.toml")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


def _draw(
    graph: str, space: Space, index: int, structures: list[str], numbers: list[str]
) -> Settings:
    """Return a draw. The values of ``structures`` and ``numbers`` are tried in turn."""
    settings = {}
    structure = index // DRAWS_PER_STRUCTURE
    for name, values in space.items():
        if name in structures:
            settings[name] = values[structure % len(values)]
            continue
        if name in numbers:
            # Shifted from structure to structure, so that other values meet.
            shift = numbers.index(name) * structure
            settings[name] = values[(index + shift) % len(values)]
            continue
        place = index if name in NUMERIC else f"structure {structure}"
        settings[name] = random.Random(f"{graph} {name} {place}").choice(values)
    return settings


def _can_be_built(model: str, settings: Settings) -> bool:
    """Whether the model accepts this combination of settings."""
    structure = {name: value for name, value in settings.items() if name not in NUMBERS}
    return _has_valid_structure(model, tuple(structure.items()))


@lru_cache(maxsize=4096)
def _has_valid_structure(model: str, structure: tuple[tuple[str, Any], ...]) -> bool:
    try:
        RunConfig.resolve(model, dict(structure), None, None, "none").build(2, 2, 2)
    except UserError:
        return False
    return True
