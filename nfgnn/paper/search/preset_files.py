"""Write the winners of the preset search to the preset files, and a summary of the search.

The winner of a cell has the highest mean validation accuracy on the search seeds, among the
finalists with the most seeds. Tables of cells that were not searched, and everything above the
first table of a file, stay as they are.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nfgnn.files import atomic_write
from nfgnn.paper.search.results import Result
from nfgnn.paper.search.rounds import Cell, Config
from nfgnn.training import RunConfig, presets

Group = tuple[str, ...]
"""Path of a group of tables in a file, such as ``("paper", "full")``."""
Groups = dict[Group, dict[str, dict[str, Any]]]
"""The tables of a file by group and dataset; the name of the defaults is ``"default"``."""
Families = dict[Group, tuple[str, ...]]

_NOT_SEARCHED = ("warmup_epochs",)
"""Settings of the files that the search does not vary. They stay as they are."""
_FILES: dict[str, Families] = {
    "nfgnn": {
        (): ("agreement", "term", "paper"),
        ("agreement",): ("agreement",),
        ("term",): ("term",),
        ("paper",): ("paper",),
    },
    "polygnn": {(): ("global",)},
    "gprgnn": {(): ("GPRGNN",)},
    "bernnet": {(): ("BernNet",)},
}
"""For every file and group of tables: the families from which the winner is chosen."""


def write_presets(
    results: Sequence[Result], folder: Path | None = None, summary: Path | None = None
) -> list[str]:
    """Write the preset files and the summary.

    Args:
        results: all results of the search.
        folder: folder of the preset files; that of the package by default.
        summary: Markdown file for the summary.

    Returns:
        A line for every file.
    """
    folder = folder or Path(presets.__file__).parent
    lines = []
    for name, families in _FILES.items():
        path = folder / f"{name}.toml"
        text, count = _updated(path.read_text(encoding="utf-8"), families, results)
        atomic_write(path, text)
        lines.append(f"{path}: {count} tables")
    if summary is not None:
        atomic_write(summary, summarise_search(results))
        lines.append(str(summary))
    return lines


def winners(
    results: Sequence[Result], families: Sequence[str], stage: int | None = None
) -> dict[Cell, tuple[Result, int]]:
    """Return the winner of every cell, and the number of configurations that were drawn for it.

    Args:
        results: all results of the search.
        families: families to choose from.
        stage: stage to choose from; by default the third where there is one, else the second.
    """
    held_out = {result.cell for result in results if result.stage == 3}
    best: dict[Cell, Result] = {}
    for result in results:
        last = stage or (3 if result.cell in held_out else 2)
        if result.family not in families or result.stage != last:
            continue
        known = best.get(result.cell)
        if known is None or _rank(result) > _rank(known):
            best[result.cell] = result
    drawn = Counter(r.cell for r in results if r.family in families and r.stage == 1)
    return {cell: (result, drawn[cell]) for cell, result in best.items()}


def _rank(result: Result) -> tuple[int, float]:
    return result.num_seeds, result.val_mean()


def _inductive_winners(
    results: Sequence[Result], families: Sequence[str]
) -> dict[Cell, tuple[Result, int]]:
    """Return winners for ``inductive`` where the one of ``semi`` only fits the nodes of one graph.

    They are the best draws without a matrix of edges in the input, by the first seeds, because few
    of these are among the finalists.
    """
    others = [result for result in results if "link" not in result.config]
    by_draws = winners(others, families, stage=1)
    found = {}
    for cell, (result, _) in winners(results, families).items():
        if cell.protocol == "semi" and "link" in result.config and cell in by_draws:
            found[Cell(cell.dataset, "inductive")] = by_draws[cell]
    return found


def _updated(old: str, families_of: Families, results: Sequence[Result]) -> tuple[str, int]:
    """Return the new text of a preset file, and the number of tables that were searched."""
    head = old[: old.index("\n[") + 1] if "\n[" in old else old
    groups = _read_groups(tomllib.loads(old))
    notes: dict[tuple[Group, str], str] = {}
    for kind, families in families_of.items():
        # Settings for which the file has defaults of its own must be given in every table.
        defaults: set[str] = set()
        for group in ((), kind):
            defaults |= groups.get(group, {}).get("default", {}).keys()
        best = winners(results, families) | _inductive_winners(results, families)
        for cell, (result, drawn) in best.items():
            group = (*kind, cell.protocol)
            table = _differing_settings(result.config, defaults)
            old_table = groups.setdefault(group, {}).get(cell.dataset, {})
            table |= {name: old_table[name] for name in _NOT_SEARCHED if name in old_table}
            groups[group][cell.dataset] = table
            note = f"  # val {result.val_mean():.2f} %, best of {drawn}"
            notes[group, cell.dataset] = note
    return head + "\n".join(_table_lines(groups, notes)).rstrip() + "\n", len(notes)


def _differing_settings(config: Config, file_defaults: set[str]) -> dict[str, Any]:
    """Return the settings that differ from the model's defaults or that the file has defaults for.

    The scaling of the features is always stated, because its default depends on the graph.
    ``alpha`` may be missing where the initial filter does not depend on it.
    """
    defaults = RunConfig.from_dict({"model": config["model"]}).to_dict()
    settings = {"features": "auto", **config}
    del settings["model"]
    return {
        name: value
        for name, value in settings.items()
        if name == "features" or name in file_defaults or value != defaults.get(name)
    }


def _table_lines(groups: Groups, notes: dict[tuple[Group, str], str]) -> list[str]:
    """Return the lines of a file: ``[default]`` tables in full, one line for every dataset."""
    lines: list[str] = []
    for group, tables in sorted(groups.items(), key=lambda item: (len(item[0]), item[0])):
        if "default" in tables:
            lines.append(f"[{'.'.join((*group, 'default'))}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in tables["default"].items()]
            lines.append("")
        datasets = sorted(name for name in tables if name != "default")
        if datasets:
            lines.append(f"[{'.'.join(group)}]")
            for name in datasets:
                note = notes.get((group, name), "")
                lines.append(f"{name} = {_inline(tables[name])}{note}")
            lines.append("")
    return lines


def _inline(table: dict[str, Any]) -> str:
    settings = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    return "{ " + ", ".join(settings) + " }"


def _read_groups(tables: dict[str, Any], path: Group = ()) -> Groups:
    """Turn ``{"full": {"cora": {…}}}`` into ``{("full",): {"cora": {…}}}``."""
    groups: Groups = {}
    for name, value in tables.items():
        if not isinstance(value, dict):
            continue  # a key of the file, such as paper_like
        if any(isinstance(part, dict) for part in value.values()):
            groups |= _read_groups(value, (*path, name))
        elif value:
            groups.setdefault(path, {})[name] = value
    return groups


def summarise_search(results: Sequence[Result]) -> str:
    """Return the Markdown table of how much was searched, and of what the winners reached."""
    families = list(dict.fromkeys(result.family for result in results))
    by_family = {family: winners(results, (family,)) for family in families}
    lines = [
        _SUMMARY,
        f"| cell | {' | '.join(families)} |",
        f"|---|{'---:|' * len(families)}",
    ]
    cells = {result.cell for result in results}
    for cell in sorted(cells, key=lambda cell: (cell.protocol, cell.dataset)):
        shown = []
        for family in families:
            if cell not in by_family[family]:
                shown.append("–")
                continue
            best, drawn = by_family[family][cell]
            test = 100 * sum(best.test) / len(best.test)
            shown.append(f"{drawn}: {best.val_mean():.2f} / {test:.2f}")
        lines.append(f"| {cell.dataset}, {cell.protocol} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


_SUMMARY = """# What was searched

`nfgnn tune --presets`, all its rounds; all configurations are in `search.parquet`, and `--missing`
lists what is not there (nothing). Number of configurations tried on a few search seeds; of the
finalist with the highest mean validation accuracy on all of them (seeds 0-9; in the third round of
`semi` and in the later ones 0-39, for Texas, Cornell and the best of Cora 0-99), validation / test
accuracy in %. Test accuracies chose nothing.

Every round has the same draws for all models but `paper`, which has the paper's grid. (A draw that
differs from another only in a number that a model does not have counts once; some cells had a few
draws of an earlier form.) The round `contained` is for the first three columns alone and not in the
counts: the three best finalists of GPRGNN and of BernNet, which are a global filter in another
basis, with the filter of the column in the place of theirs. Of some finalists of the third round
only the means were kept; their rows say so.

Texas and Cornell under `full` have a third stage, whose values are shown: eight finalists of every
column are stopped by one half of the validation nodes and judged by the other (seeds 0-99). There
are 37 of these nodes, so few that choosing the epoch by them flatters a configuration, the more the
less steadily it trains.

The setting `warmup_epochs` is not part of these rounds. Without it, 5 of 200 runs of GPRGNN, and of
the global filter with the same configuration, never rise above chance on CiteSeer under `semi`
(seeds 100-299, no restarts). With 5, 10 and 20 epochs none does, and the mean validation accuracy
is 69.78, 70.00 and 69.95 % instead of 68.21 %. The presets have 10.

Reported runs have other seeds: `full.md`, `semi.md`, `orientation.md`.
"""
