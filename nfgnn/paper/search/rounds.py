"""The rounds of the preset search: which configurations each one tries, and on which seeds.

The values are in ``preset_rounds.toml``. Every polynomial model gets the same random draws of the
same numbers, so no model is searched harder than another.
"""

import json
import random
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from nfgnn.training.presets import preset

Config = dict[str, Any]
"""A model and its settings, without the defaults."""

DRAWN = ("wide", "narrow", "smooth", "raw", "more", "looped")
"""Rounds of random draws, whose best become finalists on more seeds."""
SEARCH = (*DRAWN, "contained", "held")
"""The whole search. ``contained`` takes the three best finalists of GPRGNN and of BernNet and
replaces their filters by NFGNN's; ``held`` judges the finalists by held-out validation nodes."""
ROUNDS = (*SEARCH, "final")
"""``final`` tries nothing new: the four best finalists are trained on more seeds."""

FAMILIES: dict[str, Config] = {
    "global": {"model": "PolyGNN"},
    "agreement": {"model": "NFGNN", "gate": "agreement", "rank": 3},
    "term": {"model": "NFGNN", "gate": "term"},
    "paper": {"model": "NFGNN", "features": "row"},
    "GPRGNN": {"model": "GPRGNN"},
    "BernNet": {"model": "BernNet"},
}
"""What is searched: a model with its structural choices."""
NFGNN_FAMILIES = ("agreement", "term", "paper")
"""Families whose presets are of a kind of their own, with the family's name."""
CONTAINED: dict[str, Config] = {
    "GPRGNN": {"basis": "monomial", "self_loops": True},
    "BernNet": {"basis": "bernstein", "init": "all-pass"},
}
"""Models that are a global filter in some basis, and the settings that make PolyGNN that filter.
(BernNet also keeps its coefficients from being negative.)"""

_DRAWS = 24
_FEWER_DRAWS = {"computers": 4, "photo": 6, "squirrel": 12, "actor": 16, "pubmed": 16}
_LATE_DRAWS = {"computers": 10, "photo": 12}
_TINY = ("texas", "cornell", "cornell-genuine")


class Cell(NamedTuple):
    """A graph and a protocol."""

    dataset: str
    protocol: str

    @property
    def is_large(self) -> bool:
        """Whether runs on the graph are so expensive that fewer are made."""
        return self.dataset in _FEWER_DRAWS

    def __str__(self) -> str:
        return f"{self.dataset}:{self.protocol}"


HELD_OUT = {Cell("texas", "full"): 100, Cell("cornell", "full"): 100}
"""Cells with a third stage, and its number of seeds.

They have so few validation nodes that choosing the epoch by them flatters a configuration, the more
so the less steadily it trains. Eight finalists, the best of every structure first, are stopped by
one half of the validation nodes and judged by the other half."""


@lru_cache
def _definition() -> dict[str, Any]:
    text = (files(__package__) / "preset_rounds.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def cells_of(round: str) -> list[Cell]:
    """Return the cells of a round."""
    if round == "held":
        return list(HELD_OUT)
    table = _definition()[round if round in DRAWN else "wide"]
    return [Cell(dataset, protocol) for protocol in table for dataset in table[protocol]]


def families_of(round: str) -> list[str]:
    """Return the families of a round. The paper's form has a grid of its own, the first round."""
    if round == "contained":
        return ["global", "agreement", "term"]
    if round in DRAWN[1:]:
        return [family for family in FAMILIES if family != "paper"]
    return list(FAMILIES)


def seeds_of(cell: Cell, round: str) -> tuple[range, range]:
    """Return the search seeds of the draws and those of the finalists.

    With 2.5 % of the nodes for validation, ten splits of a small graph cannot rank configurations
    (Texas has 50 such nodes in them), so later rounds use more seeds there.
    """
    tiny = cell.dataset in _TINY
    if round == "held":
        return range(0), range(HELD_OUT[cell])
    if round == "final":
        return range(0), range(100 if tiny else 40)
    if round == "raw":
        return range(20), range(100)
    if round in ("more", "looped"):
        return (range(3), range(10)) if cell.is_large else (range(10), range(40))
    if round in ("wide", "narrow"):
        return range(3), range(10)
    if cell.protocol == "full":
        return range(5 if round == "smooth" and not cell.is_large else 3), range(10)
    if tiny:
        return range(40), range(100)
    if cell.dataset in ("computers", "photo", "pubmed"):
        return range(5), range(10)
    return range(10), range(40)


def shipped(cell: Cell, family: str) -> Config:
    """Return the preset that the package ships for a family."""
    model = FAMILIES[family]["model"]
    kind = family if family in NFGNN_FAMILIES else "best"
    return {"model": model, **preset(model, *cell, kind)}


def draws(cell: Cell, family: str, round: str) -> list[list[Config]]:
    """Return the configurations that a round tries, one list per structure.

    The draws only depend on the arguments, so they are always the same.
    """
    if round not in DRAWN:
        return []
    numbers = dict(_definition()[round][cell.protocol][cell.dataset])
    structures = numbers.pop("structures")
    late = round in ("more", "looped")
    count = (_LATE_DRAWS if late else _FEWER_DRAWS).get(cell.dataset, _DRAWS)
    values = _definition()["numbers"]
    if round not in ("wide", "narrow"):
        values = values | _definition()["smoothing"]
    # These families have no structure to choose but the scaling of the features.
    if family in ("paper", "GPRGNN", "BernNet"):
        if round == "wide":
            count *= len(structures)
            structures = [{}]
        else:
            structures = [{"features": structure["features"]} for structure in structures]
    if family == "paper":
        values = _definition()["paper_numbers"]
    return [
        _draw(cell, family, round, i, structure, values | numbers, count)
        for i, structure in enumerate(structures)
    ]


def _draw(
    cell: Cell,
    family: str,
    round: str,
    index: int,
    structure: Config,
    values: dict[str, list[float]],
    count: int,
) -> list[Config]:
    """Return the distinct ones of ``count`` random draws for one structure."""
    label = f"{tuple(cell)} {index} {'' if round == 'wide' else round}".strip()
    generator = random.Random(label)
    configs: list[Config] = []
    for _ in range(count):
        numbers = {name: generator.choice(choices) for name, choices in values.items()}
        if family == "BernNet":
            del numbers["alpha"]  # drawn all the same, so that the other numbers are equal
        config = {**FAMILIES[family], **structure, **numbers}
        if config not in configs:
            configs.append(config)
    return configs


def group_by_structure(configs: Iterable[Config]) -> list[list[Config]]:
    """Group configurations that differ in drawn numbers only."""
    numbers = {*_definition()["numbers"], *_definition()["smoothing"]}
    groups: dict[str, list[Config]] = {}
    for config in configs:
        structure = {name: value for name, value in config.items() if name not in numbers}
        groups.setdefault(json.dumps(structure, sort_keys=True), []).append(config)
    return list(groups.values())
