"""Choose the hyper-parameters of a model for one graph: ``nfgnn tune``.

Optuna proposes settings, and a trial is one of them, scored by its mean metric on the validation
nodes of the search seeds. Test nodes are never scored. Trials come in batches that share the
model's shape and only differ in numbers, because such runs can be trained as one computation.

Every run is a record. The Optuna study is kept in memory only: the sampler is deterministic, so an
interrupted search is repeated from the start and takes finished runs from the records. On a CPU it
ends exactly as it would have without the interruption.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.existing_output import (
    refuse_foreign_file,
    refuse_replacement,
    starts_with,
    write_output,
)
from nfgnn.nn.models import find_model
from nfgnn.paper.search.engine import Evaluator
from nfgnn.paper.table_plan import FIRST_REPORT_SEED, SEARCH_SEEDS
from nfgnn.progress import Progress
from nfgnn.training import (
    Executor,
    Graph,
    InProcess,
    Metric,
    Records,
    RunConfig,
    resolve_metric,
)
from nfgnn.training.metrics import ACCURACY
from nfgnn.training.presets import table_protocol
from nfgnn.training.search_spaces import NUMERIC, Space, search_space

BATCH = 8
"""Number of trials that share the model's shape."""
_WHAT = "a table of settings"
_is_preset = starts_with("# nfgnn tune ")


@dataclass(frozen=True)
class Search:
    """A search of ``nfgnn tune``.

    Args:
        data: the graph.
        model: name of the model.
        protocol: how the nodes are split.
        kind: ``"best"`` searches all forms of the model, ``"paper"`` the grid of the paper's form.
        trials: number of settings to try, besides the preset.
        seeds: search seeds, below 1000.
        fixed: settings that are not searched.
        device: where to train.
    """

    data: Data
    model: str = "NFGNN"
    protocol: str = "full"
    kind: str = "best"
    trials: int = 50
    seeds: Sequence[int] = SEARCH_SEEDS
    fixed: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"

    def config(self, settings: Mapping[str, Any]) -> RunConfig:
        """Return the preset with these settings over it."""
        values = {**settings, **self.fixed}
        name = self.data.get("registered_name")
        config = RunConfig.resolve(self.model, values, name, self.protocol, self.kind)
        return config.for_graph(self.data)

    @property
    def metric(self) -> Metric:
        """The metric that trials are compared by."""
        return resolve_metric(self.config({}).training.metric, self.data)

    def check(self) -> None:
        """Raise an error if the seeds are reserved for reporting or the kind is unknown."""
        if not self.seeds or not set(self.seeds) <= set(range(FIRST_REPORT_SEED)):
            raise UserError(
                "settings are selected on seeds from 0 to 999: larger seeds are reserved for "
                "reported runs"
            )
        if self.kind not in ("best", "paper"):
            raise UserError(f"unknown preset '{self.kind}': choose best or paper")


@dataclass(frozen=True)
class Trial:
    """Settings and their mean scores on the search seeds."""

    settings: dict[str, Any]
    val_accuracy: float
    val_loss: float
    val_metric: float
    """The metric that the search optimises: accuracy, or another one."""


@dataclass(frozen=True)
class Outcome:
    """The trials of a search and the metric they are compared by; ``trials[0]`` is the preset."""

    trials: list[Trial]
    metric: Metric = ACCURACY

    @property
    def best(self) -> Trial:
        """The trial with the best mean metric; the lower loss breaks ties."""
        sign = -1 if self.metric.greater_is_better else 1
        return min(self.trials, key=lambda trial: (sign * trial.val_metric, trial.val_loss))

    def shown(self, trial: Trial) -> str:
        """Return the score of a trial as text."""
        return f"validation {self.metric.title} {self.metric.shown(trial.val_metric)}"


def run_search(
    search: Search, records: Records, progress: Progress, executor: Executor | None = None
) -> Outcome:
    """Try ``search.trials`` settings and the preset.

    Args:
        search: what is searched.
        records: where every run is kept.
        progress: advanced by one for every run.
        executor: where runs execute; by default one after the other in this process.
    """
    search.check()
    sampler = _TPESampler(search)
    graph = Graph.of(search.data)
    evaluator = Evaluator(
        graph,
        search.protocol,
        records,
        progress,
        search.device,
        executor=executor or InProcess(),
    )
    num_runs = (search.trials + 1) * len(search.seeds)
    progress.start(num_runs, num_runs)
    outcome = Outcome([], search.metric)
    while batch := sampler.ask():
        configs = [search.config(settings) for settings in batch]
        runs = evaluator.evaluate(configs, search.seeds)
        scores = [evaluator.mean(found, f"val_{outcome.metric.name}") for found in runs]
        sampler.tell(scores)
        for settings, score, found in zip(batch, scores, runs):
            accuracy = evaluator.mean(found, "val_accuracy")
            trial = Trial(settings, accuracy, evaluator.mean(found, "val_loss"), score)
            outcome.trials.append(trial)
            number = len(outcome.trials) - 1
            if number == 0:
                progress.say(f"the preset: {outcome.shown(trial)}")
            elif trial is outcome.best:
                chosen = toml_values(settings, ", ")
                progress.say(f"best of {number}: {outcome.shown(trial)}  {chosen}")
    return outcome


class _TPESampler:
    """Optuna's tree-structured Parzen estimator, in batches of one shape. The preset comes first.

    The seed is fixed, so the same scores lead to the same settings.
    """

    def __init__(self, search: Search) -> None:
        try:
            import optuna
        except ImportError:
            raise UserError(
                "a search requires Optuna: install it with `pip install 'nfgnn[tune]'`"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=4 * BATCH)
        direction = "maximize" if search.metric.greater_is_better else "minimize"
        self._study = optuna.create_study(direction=direction, sampler=sampler)
        self._failed = optuna.trial.TrialState.FAIL
        self._search = search
        self._space: Space = search_space(find_model(search.model).name, search.kind, search.fixed)
        self._asked: list[Any] = []
        self._left = search.trials + 1

    def ask(self) -> list[dict[str, Any]]:
        """Return the settings of the preset, then batches of at most :data:`BATCH`."""
        if self._left > self._search.trials:
            preset = self._search.config({}).settings()
            batch = [{name: preset[name] for name in self._space}]
        else:
            batch = self._ask_study(min(BATCH, self._left))
        self._left -= len(batch)
        return batch

    def _ask_study(self, count: int) -> list[dict[str, Any]]:
        """Return settings of one shape, which the first of them chooses."""
        self._asked = []
        batch: list[dict[str, Any]] = []
        shape: dict[str, int] = {}
        while len(batch) < count:
            if shape:
                self._study.enqueue_trial(shape)
            trial = self._study.ask()
            chosen = {name: _suggest(trial, name, len(self._space[name])) for name in self._space}
            settings = {name: self._space[name][index] for name, index in chosen.items()}
            # Some combinations, such as a gate and a rank, cannot be built.
            if not batch and not self._can_be_built(settings):
                self._study.tell(trial, state=self._failed)
                continue
            shape = {name: index for name, index in chosen.items() if name not in NUMERIC}
            self._asked.append(trial)
            batch.append(settings)
        return batch

    def _can_be_built(self, settings: dict[str, Any]) -> bool:
        """Whether the model accepts this combination of settings."""
        try:
            self._search.config(settings).build(2, 2, 2)
        except UserError:
            return False
        return True

    def tell(self, scores: Sequence[float]) -> None:
        """Pass the scores of the last batch on to the study, which does not know the preset."""
        for trial, score in zip(self._asked, scores):
            self._study.tell(trial, score)


def _suggest(trial: Any, name: str, count: int) -> int:
    """Return the index of a value in its grid. Numbers are ordered, other settings are not."""
    if name in NUMERIC:
        return int(trial.suggest_int(name, 0, count - 1))
    return int(trial.suggest_categorical(name, list(range(count))))


def preset_table(search: Search, outcome: Outcome, command: str) -> str:
    """Return the best configuration as a preset file, with a comment on its choice.

    Every setting is written, so that the file gives the same configuration on any graph and after
    the defaults of a later version have changed.
    """
    best = outcome.best
    config = search.config(best.settings)
    before = outcome.trials[0]
    metric = outcome.metric
    seeds = ", ".join(map(str, search.seeds))
    path = ["paper"] if search.kind == "paper" else []
    path += [table_protocol(search.protocol), str(search.data.get("name") or "graph")]
    lines = [
        f"# {command}",
        f"# Mean validation {metric.title} on split seeds {seeds}: "
        f"{metric.shown(best.val_metric)};",
        f"# the preset before: {metric.shown(before.val_metric)}. "
        f"Best of {len(outcome.trials)} settings.",
        toml_values({"model": config.model}, "\n"),
        "",
        f"[{'.'.join(_toml_key(part) for part in path)}]",
        toml_values(config.settings(), "\n"),
        "",
    ]
    return "\n".join(lines)


def check_preset_output(path: Path, command: str, overwrite: bool) -> None:
    """Refuse a file that another command, or another program, has written.

    Call it before the search.
    """
    refuse_foreign_file(path, _is_preset, _WHAT)
    if path.is_file() and path.stat().st_size:
        same = path.read_text(encoding="utf-8").startswith(f"# {command}\n")
        refuse_replacement(path, _WHAT, ours=True, same=same, overwrite=overwrite)


def write_preset(path: Path, table: str, overwrite: bool = False) -> None:
    """Write a table of :func:`preset_table`.

    Args:
        path: the TOML file.
        table: its content.
        overwrite: replace a file that holds another result of ``nfgnn tune``.
    """
    write_output(path, table, _is_preset, _WHAT, overwrite)


def toml_values(settings: Mapping[str, Any], separator: str) -> str:
    """Return ``key = value`` for every setting, in TOML, which cannot express ``None``."""
    given = {name: value for name, value in settings.items() if value is not None}
    return separator.join(f"{name} = {json.dumps(value)}" for name, value in given.items())


def _toml_key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)
