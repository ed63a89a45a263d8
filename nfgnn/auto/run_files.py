"""The files of a search.

While a search runs, its trained candidates are in ``.OUT.partial/runs/``, beside ``search.json``,
which describes the search, ``decisions/`` and ``clock.json`` (:mod:`nfgnn.auto.search`). The
finished folder ``OUT`` is the run folder of the best single model
(:mod:`nfgnn.training.records.run_folder`), so that ``predict``, ``explore`` and ``verify`` read it
as one. It also holds

- ``auto.json``: the description and the result of the search,
- ``best.toml``: the best configuration, for ``nfgnn train --preset``,
- ``ensemble/``: the fitted ensemble (:mod:`nfgnn.auto.ensemble_classifier`),
- ``auto.html``: the report as a page, if it was added with :func:`write_page`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nfgnn.auto.ensemble_classifier import REMEDY, EnsembleClassifier, read_object
from nfgnn.auto.final_models import FinalModels
from nfgnn.auto.result import AutoResult
from nfgnn.checksums import SUMS, checksum_lines, read_checksums, refuse_damaged_files
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import (
    atomic_folder,
    atomic_write,
    delete,
    empty,
    locked,
    refuse_foreign_files,
)
from nfgnn.json_text import json_text
from nfgnn.training import (
    NodeClassifier,
    RunConfig,
    RunFolder,
    holds_run_folder,
    load_run,
    verify_run,
)

RESULT = "auto.json"
PRESET = "best.toml"
PAGE = "auto.html"
_ENSEMBLE = "ensemble"
_SEARCH = "search.json"
_MARKER = {"kind": "nfgnn auto", "format": 1}
_WHAT = "the result of a search"
_WORK_NAMES = re.compile(rf"{re.escape(_SEARCH)}|clock\.json|decisions|runs|\..*\.partial")
_DECISION_NAMES = re.compile(r"\d+\.json|\..*\.partial")
_RUN_NAMES = re.compile(r"[0-9a-f]+|\..*\.partial")
_RUN_FILES = re.compile(
    r"classifier\.json|weights\.safetensors|probabilities\.npy|history\.csv|run\.json"
    rf"|{SUMS}|\.tmp[A-Za-z0-9]{{6}}"
)


class AutoFolder:
    """The folder of a search. Use :meth:`open`.

    Args:
        folder: the final folder.
        description: what decides the result: the graph, the split, the budget, the portfolio.
    """

    def __init__(self, folder: Path, description: Mapping[str, Any]) -> None:
        self.folder = folder
        self.description: dict[str, Any] = json.loads(json.dumps(description))
        self._work = _work_folder(folder)

    @property
    def runs(self) -> Path:
        """Folder of the trained candidates."""
        return self._work / "runs"

    @classmethod
    @contextmanager
    def open(
        cls, folder: Path, description: Mapping[str, Any], resume: bool, overwrite: bool = False
    ) -> Iterator["AutoFolder"]:
        """Lock the folder for a search.

        Args:
            folder: the final folder. Only a run folder is ever replaced.
            description: as for the constructor, as JSON values.
            resume: keep the candidates of an interrupted search with the same description.
            overwrite: replace finished or unfinished work of another description.
        """
        files = cls(folder, description)
        if holds_run_folder(folder):
            refuse_replacement(folder, _WHAT, ours=True, overwrite=overwrite)
        work = files._work
        _refuse_other_files(work)
        # The lock ends with the process, even if it is killed, so it never has to be cleaned up.
        with locked(work, _busy(folder)):
            same = _search_of(work / _SEARCH) == files.description
            if not same and not overwrite:
                _refuse_unfinished_search(work)
            if not (resume and same):
                empty(work)
                atomic_write(work / _SEARCH, json_text(files._marked(), indent=1))
            files.runs.mkdir(exist_ok=True)
            yield files

    def publish(self, final: FinalModels, result: AutoResult) -> AutoResult:
        """Write the finished folder, delete the candidates and return the complete result."""
        experiment = final.experiment
        with atomic_folder(self.folder) as partial:
            run_folder = RunFolder.inside(partial, experiment.description())
            run_folder.pack(final.run)
            files = [PRESET, RESULT]
            text = preset_text(experiment.config, f"{result.dataset}, protocol {result.protocol}")
            (partial / PRESET).write_text(text, encoding="utf-8")
            if final.classifier is not None:
                ensemble = partial / _ENSEMBLE
                ensemble.mkdir()
                final.classifier.write_files(ensemble)
                files.append(f"{_ENSEMBLE}/{SUMS}")
            content = {**self._marked(), **result.to_dict()}
            (partial / RESULT).write_text(json_text(content, indent=1), encoding="utf-8")
            run_folder.write_summary(experiment.facts(), files)
        delete(self._work)
        return replace(result, folder=self.folder)

    def _marked(self) -> dict[str, Any]:
        return {**_MARKER, "search": self.description}


def preset_text(config: RunConfig, graph: str) -> str:
    """Return a configuration as a preset file with all its settings.

    Args:
        config: the configuration.
        graph: what it was chosen for, for the comment.
    """
    lines = [
        f"# The best model that `nfgnn auto` has found for {' '.join(graph.split())}.",
        f"model = {json.dumps(config.model)}",
    ]
    # TOML has no null. A setting that is None has no other default.
    given = {key: value for key, value in config.settings().items() if value is not None}
    lines += [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    return "\n".join(lines) + "\n"


def finished_result(folder: Path, description: Mapping[str, Any]) -> AutoResult | None:
    """Return the result of a folder that holds this search, ``None`` if it does not.

    A folder with damaged files is refused.
    """
    if _search_of(folder / RESULT) != json.loads(json.dumps(description)):
        return None
    _, damaged = verify_auto(folder)
    for name, problem in damaged.items():
        raise UserError(f"{folder / name}: {problem}; search again with --overwrite")
    _delete_leftovers(folder, description)
    return read_result(folder)


def _delete_leftovers(folder: Path, description: Mapping[str, Any]) -> None:
    """Delete the candidates of a search that was killed after it had published its result."""
    work = _work_folder(folder)
    # The file that describes the search may have been deleted first.
    if work.is_dir() and _search_of(work / _SEARCH) in (None, json.loads(json.dumps(description))):
        _refuse_other_files(work)
        with locked(work, _busy(folder)):
            delete(work)


def _work_folder(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _busy(folder: Path) -> str:
    return (
        f"another process is writing {folder}: wait until it finishes, or choose another folder "
        "with --out"
    )


def read_result(folder: Path) -> AutoResult:
    """Read the result of a finished search."""
    path = folder / RESULT
    if not is_auto_folder(folder):
        raise UserError(
            f"{folder} is not the result of a search: it has no {RESULT} (nfgnn auto writes one)"
        )
    refuse_damaged_files(folder, [RESULT], REMEDY)
    try:
        return AutoResult.from_dict(read_object(path), folder)
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path} is damaged: {error}; {REMEDY}") from None


def is_auto_folder(folder: Path) -> bool:
    """Whether a folder is the result of a search, perhaps a damaged one."""
    return any((folder / name).exists() for name in (RESULT, _ENSEMBLE))


def load_predictor(
    run: Path, seed: int | None = None, device: str = "auto", single: bool = False
) -> NodeClassifier | EnsembleClassifier:
    """Load what predicts for a run folder: the ensemble of a search, else a single model.

    Args:
        run: folder of ``nfgnn train`` or ``nfgnn auto``.
        seed: of the run to load; by default the one of best validation score.
        device: where to predict.
        single: load the best single model of a search.
    """
    if single or not is_auto_folder(run) or read_result(run).ensemble is None:
        return load_run(run, seed, device)
    ensemble = EnsembleClassifier.load(run / _ENSEMBLE, device)
    if seed is not None and seed != ensemble.seed:
        raise UserError(f"{run} has no seed {seed}: it has {ensemble.seed}")
    return ensemble


def verify_auto(folder: Path) -> tuple[int, dict[str, str]]:
    """Verify the folder of a search.

    Returns:
        How many files have a checksum, and what is wrong, by the name of the file.
    """
    count, damaged = verify_run(folder)
    if damaged:
        return count, damaged
    try:
        if read_result(folder).ensemble is not None:
            EnsembleClassifier.load(folder / _ENSEMBLE, "cpu")
    except UserError as error:
        damaged[RESULT] = str(error)
    return count, damaged


def write_page(folder: Path, html: str) -> Path:
    """Add the report of a search as a page, with its checksum."""
    path = folder / PAGE
    names = {*read_checksums(folder), PAGE}
    atomic_write(path, html)
    atomic_write(folder / SUMS, checksum_lines(folder, names))
    return path


def _search_of(path: Path) -> dict[str, Any] | None:
    """Return the description of a search, ``None`` if there is none."""
    if not path.is_file():
        return None
    try:
        content = read_object(path)
    except UserError:
        return None
    search = content.get("search")
    ours = content.get("kind") == _MARKER["kind"] and isinstance(search, dict)
    return search if ours else None


def _refuse_unfinished_search(work: Path) -> None:
    """Refuse to delete candidates of another search, which its command would resume."""
    if any((work / "runs").glob("[0-9a-f]*")):
        raise UserError(
            f"{work} holds an unfinished search with other settings: resume it with the same "
            "command and --resume, choose another folder with --out, or delete it with "
            "--overwrite"
        )


def _refuse_other_files(work: Path) -> None:
    """Refuse to delete files that are not part of an unfinished search."""
    if (work / "config.json").exists():
        raise UserError(
            f"{work} holds unfinished runs of `nfgnn train`: resume them with the same command "
            "and --resume, or choose another folder with --out"
        )
    what = "an unfinished search"
    refuse_foreign_files(work, lambda name: bool(_WORK_NAMES.fullmatch(name)), what)
    decisions = work / "decisions"
    refuse_foreign_files(decisions, lambda name: bool(_DECISION_NAMES.fullmatch(name)), what)
    refuse_foreign_files(work / "runs", lambda name: bool(_RUN_NAMES.fullmatch(name)), what)
    for run in work.glob("runs/*"):
        refuse_foreign_files(run, lambda name: bool(_RUN_FILES.fullmatch(name)), "a run")
