"""Search for hyper-parameters: Optuna asks, many settings and seeds are trained as one computation.

A trial is one setting, judged by its mean validation accuracy on the search seeds; test nodes are never scored. Trials
come in batches that share the model's shape and differ in numbers only, because such runs can be trained together.

Every run is a record. The study itself is kept in memory only: the sampler is deterministic, so a search that was
killed is simply gone through again, and takes the values of what was trained before from the records. It ends as it
would have ended without the interruption, to the last digit on a CPU.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.nn.models import find_model
from nfgnn.paper.plan import FIRST_REPORT_SEED, SEARCH_SEEDS
from nfgnn.paper.search_spaces import NUMERIC, Space, search_space
from nfgnn.training import RunConfig
from nfgnn.training.cells import Tell, machine_name, runs_at_once, train_runs
from nfgnn.training.device import device_name
from nfgnn.training.presets import table_protocol
from nfgnn.training.records.database import Record, Records
from nfgnn.training.run_folder import fingerprint
from nfgnn.work_progress import WorkDisplay

BATCH = 8
"""Settings that share the model's shape."""


@dataclass(frozen=True)
class Search:
    """What is to be searched, on what, and by which seeds."""

    data: Data
    model: str = "NFGNN"
    protocol: str = "full"
    kind: str = "best"
    trials: int = 50
    seeds: Sequence[int] = SEARCH_SEEDS
    fixed: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"

    def config(self, settings: Mapping[str, Any]) -> RunConfig:
        """The preset with these settings over it."""
        values = {**settings, **self.fixed}
        return RunConfig.resolve(
            self.model, values, self.data.get("name"), self.protocol, self.kind
        )

    def check(self) -> None:
        if not self.seeds or not set(self.seeds) <= set(range(FIRST_REPORT_SEED)):
            raise UserError(
                "settings are chosen on seeds from 0 to 999: reported runs have the others"
            )
        if self.kind not in ("best", "paper"):
            raise UserError(f"there is no preset '{self.kind}' to search for: choose best or paper")


@dataclass(frozen=True)
class Trial:
    """A setting and how it did on the search seeds."""

    settings: dict[str, Any]
    val_accuracy: float
    val_loss: float

    @property
    def merit(self) -> tuple[float, float]:
        return self.val_accuracy, -self.val_loss


@dataclass(frozen=True)
class Outcome:
    """What a search has found; ``trials[0]`` is the preset it began from."""

    trials: list[Trial]

    @property
    def best(self) -> Trial:
        """Highest mean validation accuracy, then lowest mean validation loss, then the earliest."""
        return max(self.trials, key=lambda trial: trial.merit)


def run_search(search: Search, records: Records, display: WorkDisplay) -> Outcome:
    """Try ``search.trials`` settings and the preset."""
    search.check()
    study = _study()
    space = search_space(find_model(search.model).name, search.kind, search.fixed)
    runs = (search.trials + 1) * len(search.seeds)
    display.start([1.0] * runs, [1] * runs)
    present = search.config({}).settings()
    trials = _evaluate(search, [{name: present[name] for name in space}], records, display)
    display.say(f"the preset: {_told(trials[0])}")
    while len(trials) <= search.trials:
        asked = _ask(study, space, search, min(BATCH, search.trials + 1 - len(trials)))
        made = _evaluate(search, [settings for _, settings in asked], records, display)
        for (question, _), trial in zip(asked, made):
            study.tell(question, trial.val_accuracy)
            trials.append(trial)
            if trial is Outcome(trials).best:
                display.say(
                    f"best of {len(trials) - 1}: {_told(trial)}  {toml_values(trial.settings, ', ')}"
                )
    return Outcome(trials)


def _study() -> Any:
    """A study in memory whose sampler always asks the same, given the same answers."""
    try:
        import optuna
    except ImportError:
        raise UserError(
            "searching needs Optuna: pip install optuna, or install nfgnn with the extra 'tune'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=4 * BATCH)
    return optuna.create_study(direction="maximize", sampler=sampler)


def _ask(study: Any, space: Space, search: Search, count: int) -> list[tuple[Any, dict[str, Any]]]:
    """Trials of one shape: the first chooses it, the others are bound to it. A shape that cannot be is passed over."""
    asked: list[tuple[Any, dict[str, Any]]] = []
    shape: dict[str, int] = {}
    while len(asked) < count:
        if shape:
            study.enqueue_trial(shape)
        question = study.ask()
        chosen = {name: _suggest(question, name, len(values)) for name, values in space.items()}
        settings = {name: space[name][index] for name, index in chosen.items()}
        if not asked and not _can_be_built(search.config(settings)):
            study.tell(question, state=_failed())
            continue
        shape = {name: index for name, index in chosen.items() if name not in NUMERIC}
        asked.append((question, settings))
    return asked


def _can_be_built(config: RunConfig) -> bool:
    try:
        config.build(2, 2, 2)
    except UserError:
        return False
    return True


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL


def _suggest(question: Any, name: str, count: int) -> int:
    """The number of a value in its grid; those of numeric settings have an order."""
    if name in NUMERIC:
        return int(question.suggest_int(name, 0, count - 1))
    return int(question.suggest_categorical(name, list(range(count))))


def _evaluate(
    search: Search, batch: Sequence[dict[str, Any]], records: Records, display: WorkDisplay
) -> list[Trial]:
    """Train what the records lack of these settings, and average."""
    known = fingerprint(search.data)
    configs = [search.config(settings) for settings in batch]
    wanted = {json.dumps(c.to_dict()): c for c in configs}
    missing = [
        (config, seed)
        for config in wanted.values()
        for seed in sorted(
            set(search.seeds)
            - records.find(known, search.protocol, config.to_dict(), search.seeds).keys()
        )
    ]
    at_once = (
        runs_at_once(search.data, search.protocol, configs[0], search.device) if missing else 1
    )
    display.advance(
        len(batch) * len(search.seeds) - len(missing),
        len(batch) * len(search.seeds) - len(missing),
        "known",
    )
    for start in range(0, len(missing), at_once):
        part = missing[start : start + at_once]
        records.add(_train(search, part, display.following(search.model)))
        display.advance(
            len(part),
            len(part),
            f"{search.model}, {len(part)} at once" if at_once > 1 else search.model,
        )
    trials = []
    for config, settings in zip(configs, batch):
        found = records.find(known, search.protocol, config.to_dict(), search.seeds).values()
        means = [
            sum(r.metrics[name] for r in found) / len(found)
            for name in ("val_accuracy", "val_loss")
        ]
        trials.append(Trial(settings, *means))
    return trials


def _train(search: Search, runs: Sequence[tuple[RunConfig, int]], tell: Tell) -> list[Record]:
    """One computation. Where one run of it has no finite loss they go one by one, and that one scores nothing."""
    try:
        return train_runs(search.data, search.protocol, runs, search.device, test=False, tell=tell)
    except UserError as error:
        if "never a number" not in str(error):
            raise
    if len(runs) > 1:
        return [record for run in runs for record in _train(search, [run], tell)]
    (config, seed), name = runs[0], str(search.data.get("name") or "graph")
    metrics = {"val_accuracy": 0.0, "val_loss": 1e9, "seconds": 0.0, "epochs": 0}
    where = (device_name(search.device), machine_name())
    return [
        Record(
            name, fingerprint(search.data), search.protocol, seed, config.to_dict(), metrics, *where
        )
    ]


def preset_table(search: Search, outcome: Outcome, command: str) -> str:
    """The best settings as a table of a preset file, with how they were chosen."""
    best, before = outcome.best, outcome.trials[0]
    seeds = ", ".join(map(str, search.seeds))
    path = ["paper"] if search.kind == "paper" else []
    path += [table_protocol(search.protocol), str(search.data.get("name") or "graph")]
    return "\n".join(
        [
            f"# {command}",
            f"# Mean validation accuracy on split seeds {seeds}: {100 * best.val_accuracy:.2f} %;",
            f"# the preset before: {100 * before.val_accuracy:.2f} %. Best of {len(outcome.trials)} settings.",
            f"[{'.'.join(_key(part) for part in path)}]",
            toml_values({**best.settings, **search.fixed}, "\n"),
            "",
        ]
    )


def toml_values(settings: Mapping[str, Any], between: str) -> str:
    """``key = value`` of every setting, as TOML writes it."""
    return between.join(f"{name} = {json.dumps(value)}" for name, value in settings.items())


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)


def _told(trial: Trial) -> str:
    return f"validation accuracy {100 * trial.val_accuracy:.2f} %"
