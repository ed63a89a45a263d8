"""New settings for a model, near those that are known to be good.

Half of the proposals change a few settings of one of the best known configurations. The other half
comes from Optuna's tree-structured Parzen estimator, which is told all scores. Without Optuna all
proposals are of the first kind. Everything depends on a fixed seed and on the scores, so the same
scores lead to the same proposals.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import NUMERIC, Space, search_space

_TRIES = 50
_PARENTS = 3
"""Number of the best configurations that are changed."""
_LARGEST_CHANGE = 3
"""Most settings that are changed at once."""
_ORDERED = (*NUMERIC, "hidden_channels", "num_layers", "K", "rank", "heads")
"""Settings whose values are ordered: their neighbours are similar."""
_MORE: Space = {"hidden_channels": (32, 64, 128, 256), "num_layers": (1, 2, 3, 4)}
"""Values for models whose space does not have these settings."""

Point = dict[str, int]
"""The index of the value of every setting in its grid."""


@dataclass(frozen=True)
class ScoredConfig:
    """A configuration with its score; greater is better."""

    config: RunConfig
    score: float | None
    """``None`` if no model was trained, or no model learned anything."""


class Sampler:
    """Proposes configurations of one model.

    Args:
        known: what was tried already. At least one of them has a score.
        seed: of the random numbers.
    """

    def __init__(self, known: Sequence[ScoredConfig], seed: int) -> None:
        self._model = known[0].config.model
        self._space = _space_around([entry.config for entry in known])
        self._random = random.Random(f"{seed} {self._model}")
        self._study = _Study(self._space, seed)
        self._known: list[ScoredConfig] = []
        self._tried: list[RunConfig] = []
        for entry in known:
            self._tried.append(entry.config)
            self._known.append(entry)
            if entry.score is not None:
                self._study.add(self._point(entry.config), entry.score)

    def ask(self, count: int, same_shape: bool = False) -> list[RunConfig]:
        """Propose up to ``count`` configurations that were not tried yet.

        Args:
            count: number of configurations.
            same_shape: let all of them differ in numbers only, so that a GPU can train them as one
                computation. The first one chooses the rest.
        """
        proposed: list[RunConfig] = []
        while len(proposed) < count:
            first = proposed[0] if same_shape and proposed else None
            config = self._propose(len(proposed) % 2 == 0, first)
            if config is None:
                break
            proposed.append(config)
        return proposed

    def tell(self, results: Sequence[ScoredConfig]) -> None:
        """Report the scores of the last proposals, in their order."""
        self._known += results
        self._study.tell([result.score for result in results])

    def _propose(self, change: bool, like: RunConfig | None) -> RunConfig | None:
        """Propose one configuration, or ``None`` if all that were found are known.

        Args:
            change: whether to change a known configuration.
            like: has the shape of the configuration, if it is given.
        """
        shape = {} if like is None else _without_numbers(self._point(like))
        for _ in range(_TRIES):
            wanted: Point = shape
            if change or not self._study.is_available:
                wanted = self._changed() | shape
            config = self._config(self._study.ask(wanted))
            if config is not None and config not in self._tried:
                self._tried.append(config)
                return config
            self._study.withdraw()
        return None

    def _changed(self) -> Point:
        """Change a few settings of one of the best configurations."""
        scored = [entry for entry in self._known if entry.score is not None]
        best = sorted(scored, key=lambda entry: -(entry.score or 0.0))[:_PARENTS]
        point = self._point(self._random.choice(best).config)
        free = [name for name, values in self._space.items() if len(values) > 1]
        count = min(len(free), self._random.randint(1, _LARGEST_CHANGE))
        for name in self._random.sample(free, count):
            last = len(self._space[name]) - 1
            if name in _ORDERED:
                step = self._random.choice((-2, -1, 1, 2))
                point[name] = min(max(point[name] + step, 0), last)
            else:
                point[name] = self._random.randint(0, last)
        return point

    def _point(self, config: RunConfig) -> Point:
        settings = config.settings()
        return {name: values.index(settings[name]) for name, values in self._space.items()}

    def _config(self, point: Point) -> RunConfig | None:
        """Return the configuration of a point; ``None`` if the model does not accept it."""
        # Settings that are not searched are those of the first configuration.
        settings = self._known[0].config.settings()
        settings |= {name: self._space[name][index] for name, index in point.items()}
        try:
            config = RunConfig.resolve(self._model, settings, None, None, "none")
            config.build(2, 2, 2)
        except UserError:
            return None
        return config


class _Study:
    """Optuna's sampler, where it is installed, with points instead of settings."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._asked: list[Any] = []
        self.is_available = True
        try:
            import optuna
        except ImportError:
            self.is_available = False
            return
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=4)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._failed = optuna.trial.TrialState.FAIL
        self._create_trial = optuna.trial.create_trial
        self._distributions = {
            name: (
                optuna.distributions.IntDistribution(0, len(values) - 1)
                if name in _ORDERED
                else optuna.distributions.CategoricalDistribution(list(range(len(values))))
            )
            for name, values in space.items()
        }

    def add(self, point: Point, score: float) -> None:
        """Add a point that was tried before."""
        if self.is_available:
            trial = self._create_trial(params=point, distributions=self._distributions, value=score)
            self._study.add_trial(trial)

    def ask(self, wanted: Point) -> Point:
        """Return a point with the wanted values; the study proposes those of other settings."""
        if not self.is_available:
            return wanted
        if wanted:
            self._study.enqueue_trial(wanted)
        trial = self._study.ask(self._distributions)
        self._asked.append(trial)
        return dict(trial.params)

    def withdraw(self) -> None:
        """Take the last point back."""
        if self._asked:
            self._study.tell(self._asked.pop(), state=self._failed)

    def tell(self, scores: Sequence[float | None]) -> None:
        """Report the scores of the points that were asked for, in their order."""
        for trial, score in zip(self._asked, scores):
            if score is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, score)
        self._asked = []


def _without_numbers(point: Point) -> Point:
    """Return the settings that decide the shape of a model."""
    return {name: index for name, index in point.items() if name not in NUMERIC}


def _space_around(configs: Sequence[RunConfig]) -> Space:
    """Return the grids of a model, with the values that the configurations have."""
    settings = [config.settings() for config in configs]
    space = dict(search_space(configs[0].model, "best", {}))
    for name, values in _MORE.items():
        if name in settings[0]:
            space.setdefault(name, values)
    for name, values in space.items():
        found = dict.fromkeys([*values, *(given[name] for given in settings)])
        space[name] = tuple(sorted(found) if name in _ORDERED else found)
    return space
