"""The configurations that the portfolio of ``nfgnn auto`` is chosen from.

Candidates are the default of every model but the scalable ones, variants of defaults, the presets
and winners of earlier searches, and random draws. ``portfolio_candidates.toml`` says how many of
each. Of the winners of a model, those that differ in most settings from the ones taken before are
taken. A winner names the graph that it was found on, so that this graph can be evaluated without
it.

``portfolio_candidates.json`` holds the candidates that were trained. Presets of today do not change
them: ``python benchmarks/portfolio_device.py FOLDER --make-candidates`` writes the file anew.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from nfgnn.nn import MODELS, Scalable
from nfgnn.paper.search.modern_draws import modern_draws
from nfgnn.training import RunConfig
from nfgnn.training.presets import GATE_KINDS, modern_tables, preset, preset_tables

CANDIDATES = "portfolio_candidates.json"
_DRAWN_FOR = "portfolio"  # instead of a graph's name, so that draws do not depend on a graph
_PROTOCOLS = ("full", "semi", "inductive")


@dataclass(frozen=True)
class Candidate:
    """A configuration, and the graphs whose results suggested it."""

    config: RunConfig
    origins: frozenset[str] = frozenset()
    stage: int = 0
    """Candidates of a lower stage are trained first: 0 for defaults and variants, 1 for draws and
    the first half of the winners of a model, 2 for the others."""


@dataclass(frozen=True)
class Column:
    """A graph and a protocol that candidates are trained on."""

    dataset: str
    """Registered name, or a path below the folder of the data."""
    protocol: str

    @property
    def name(self) -> str:
        """Name of the graph, as records have it."""
        return Path(self.dataset).stem

    @property
    def is_file(self) -> bool:
        return self.name != self.dataset


def portfolio_columns() -> list[Column]:
    """Return the graphs that candidates are trained on."""
    graphs = _definition()["graphs"]
    return [Column(dataset, protocol) for protocol in graphs for dataset in graphs[protocol]]


def relatives(graph: str) -> frozenset[str]:
    """Return a graph and those that share nodes with it."""
    return frozenset([graph, *_definition()["relatives"].get(graph, [])])


@lru_cache
def portfolio_candidates() -> tuple[Candidate, ...]:
    """Return the candidates of the file, those of the first stage first."""
    text = (files(__package__) / CANDIDATES).read_text(encoding="utf-8")
    return tuple(
        Candidate(RunConfig.from_dict(row["config"]), frozenset(row["origins"]), row["stage"])
        for row in json.loads(text)
    )


def candidates_text(candidates: Sequence[Candidate]) -> str:
    """Return the content of the file, with a line per candidate."""
    rows = []
    for candidate in candidates:
        origins = sorted(candidate.origins)
        values = {"config": candidate.config.to_dict(), "origins": origins}
        rows.append(json.dumps({**values, "stage": candidate.stage}))
    return "[\n" + ",\n".join(rows) + "\n]\n"


def make_candidates() -> tuple[Candidate, ...]:
    """Return defaults, variants, presets, winners and draws, without repetitions."""
    found: dict[str, Candidate] = {}
    for model, entry in MODELS.items():
        # They hold all terms of all features, which is meant for graphs on disk.
        if issubclass(entry.model, Scalable):
            continue
        for candidate in _candidates_of(model):
            found.setdefault(config_key(candidate.config), candidate)
    return tuple(sorted(found.values(), key=lambda candidate: candidate.stage))


def config_key(config: RunConfig) -> str:
    """Return a text that equal configurations have in common, whatever the graph selects by."""
    settings = config.to_dict()
    settings.pop("select", None)
    return repr(sorted(settings.items()))


def _candidates_of(model: str) -> Iterator[Candidate]:
    """Yield the candidates of a model, the most general ones first."""
    definition = _definition()
    default = preset(model, None, None)
    yield Candidate(_resolve(model, default))
    for variant in definition["variants"]:
        values = {name: choices for name, choices in variant.items() if name != "models"}
        if model in variant["models"]:
            for combination in product(*values.values()):
                chosen = dict(zip(values, combination))
                yield Candidate(_resolve(model, {**default, **chosen}))
    for drawn in modern_draws(_DRAWN_FOR, model, definition["draws"].get(model, 0)):
        yield Candidate(_resolve(model, drawn), stage=1)
    count = definition["winners"].get(model, 0)
    winners = _most_different(_winners(model), _resolve(model, default), count)
    for number, winner in enumerate(winners):
        yield Candidate(winner.config, winner.origins, stage=1 if 2 * number < count else 2)


def _winners(model: str) -> list[Candidate]:
    """Return the presets of a model, and its best configurations on recent benchmarks."""
    origins: dict[str, set[str]] = {}
    configs: dict[str, RunConfig] = {}

    def add(settings: Mapping[str, Any], dataset: str) -> None:
        config = _resolve(model, settings)
        key = config_key(config)
        configs[key] = config
        origins.setdefault(key, set()).add(dataset)

    tables = preset_tables(model)
    for kind in ("best", *GATE_KINDS, "paper"):
        of_kind = tables if kind == "best" else tables.get(kind, {})
        for protocol in _PROTOCOLS:
            for dataset in of_kind.get(protocol, {}):
                add(preset(model, dataset, protocol, kind), dataset)
    for by_dataset in modern_tables().get(model, {}).values():
        for dataset, settings in by_dataset.items():
            add(settings, dataset)
    return [Candidate(configs[key], frozenset(origins[key])) for key in configs]


def _most_different(
    winners: Sequence[Candidate], default: RunConfig, count: int
) -> list[Candidate]:
    """Return ``count`` candidates, each as different as possible from the earlier ones."""
    waiting = [winner for winner in winners if winner.config != default]
    taken: list[Candidate] = []
    while waiting and len(taken) < count:
        known = [default, *[candidate.config for candidate in taken]]
        distances = [
            min(_num_differences(candidate.config, other) for other in known)
            for candidate in waiting
        ]
        # The first of several that are equally far, so that the order is always the same.
        taken.append(waiting.pop(distances.index(max(distances))))
    return taken


def _num_differences(one: RunConfig, other: RunConfig) -> int:
    """Return the number of settings in which two configurations of a model differ."""
    others = other.settings()
    return sum(1 for name, value in one.settings().items() if value != others[name])


def _resolve(model: str, settings: Mapping[str, Any]) -> RunConfig:
    """Return the configuration, with the training settings that all candidates share."""
    values = {name: value for name, value in settings.items() if name != "select"}
    values |= _definition()["training"]
    return RunConfig.resolve(model, values, None, None, "none")


@lru_cache
def _definition() -> dict[str, Any]:
    text = (files(__package__) / "portfolio_candidates.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
