"""The files of the search on the newer benchmarks: records, presets and a summary."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nfgnn.data import REGISTRY
from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.paper.search.modern import REPORT_SEEDS, Cell, ModernSearch, Winner
from nfgnn.paper.search.tune import toml_values
from nfgnn.paper.table_plan import FIRST_REPORT_SEED
from nfgnn.training import Records, export_records, open_records, presets

SEARCH_RECORDS = "modern-search"
_HEAD = (
    "# Winners of the search on the newer benchmarks: nfgnn/paper/search/modern_files.py "
    "writes this file.\n"
)


def collect_modern(
    databases: Sequence[Path],
    results: Path,
    graphs: Sequence[str],
    models: Sequence[str],
    draws: int,
    settings: Mapping[str, Any] | None = None,
    root: Path | None = None,
    preset_file: Path | None = None,
) -> list[str]:
    """Add the runs of databases to the committed records, and write presets and summary.

    Search runs go to ``modern-search.parquet``, runs with seeds from 1000 on to
    ``records.parquet``. A winner without all runs of the table does not replace an earlier one that
    has them.

    Args:
        databases: the files that :func:`~nfgnn.paper.search.modern.run_modern_search` and
            :func:`~nfgnn.paper.search.modern.run_modern_table` have filled.
        results: folder of the committed records.
        graphs, models, draws, settings, root: see :class:`~nfgnn.paper.search.modern.ModernSearch`.
        preset_file: where the winners go; the file of the package by default.

    Returns:
        The names of the files that were written.
    """
    preset_file = preset_file or Path(presets.__file__).parent / "modern.toml"
    summary = results / f"{SEARCH_RECORDS}.md"
    search_file = results / f"{SEARCH_RECORDS}.parquet"
    report_file = results / "records.parquet"
    with (
        open_records(search_file.with_suffix(".sqlite")) as searched,
        open_records(report_file.with_suffix(".sqlite")) as reported,
    ):
        for database in databases:
            with Records(database) as source:
                runs = source.all()
            searched.add(run for run in runs if run.seed < FIRST_REPORT_SEED)
            reported.add(run for run in runs if run.seed >= FIRST_REPORT_SEED)
        export_records(searched, search_file)
        export_records(reported, report_file)
        search = ModernSearch(graphs, models, draws, searched, settings or {}, root)
        in_table = replace(search, records=reported)
        found = [_settled(search, in_table, cell) for cell in search.cells()]
        winners = [winner for winner in found if winner is not None]
        if not winners:
            raise UserError(
                "the records have no search with these settings and draws: pass the same --set and "
                "--draws as in the search"
            )
        write_modern_presets(winners, preset_file)
        atomic_write(summary, modern_summary(winners))
    return [str(path) for path in (search_file, report_file, preset_file, summary)]


def _settled(search: ModernSearch, in_table: ModernSearch, cell: Cell) -> Winner | None:
    """Return the best finalist that has all runs of the table, else the best one."""
    ranking = search.ranking(cell)
    for winner in ranking:
        if in_table.runs(cell, winner.candidate.final_config, REPORT_SEEDS):
            return winner
    return next(iter(ranking), None)


def write_modern_presets(winners: Sequence[Winner], path: Path) -> None:
    """Write the winners to a preset file. Tables of other cells stay as they are.

    All settings of a draw are written, so later defaults of a model do not change them. Graphs that
    are not registered have no preset.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    tables: dict[str, Any] = tomllib.loads(text)
    notes = _notes(text)
    for winner in winners:
        column = winner.cell.column
        if column.dataset not in REGISTRY:
            continue
        by_dataset = tables.setdefault(winner.cell.model, {}).setdefault(column.protocol, {})
        by_dataset[column.dataset] = winner.candidate.final_settings
        note = f"validation {winner.val_mean:.2f} %, best of {winner.tried}"
        notes[winner.cell.model, column.protocol, column.dataset] = note
    lines = [_HEAD]
    for model, by_protocol in sorted(tables.items()):
        for protocol, by_dataset in sorted(by_protocol.items()):
            lines.append(f"[{model}.{protocol}]")
            for dataset, settings in sorted(by_dataset.items()):
                lines.append(f"# {dataset}: {notes.get((model, protocol, dataset), 'by hand')}")
                lines.append(f"{dataset} = {{ {toml_values(settings, ', ')} }}")
            lines.append("")
    atomic_write(path, "\n".join(lines).rstrip() + "\n")
    presets.modern_tables.cache_clear()


def _notes(text: str) -> dict[tuple[str, str, str], str]:
    """Return the comments on the presets of an existing file."""
    notes = {}
    table = ("", "")
    for line in text.splitlines():
        if line.startswith("["):
            model, _, protocol = line.strip("[]").partition(".")
            table = (model, protocol)
        elif line.startswith("# ") and table[0]:
            dataset, _, note = line[2:].partition(": ")
            notes[*table, dataset] = note
    return notes


def modern_summary(winners: Sequence[Winner]) -> str:
    """Return a Markdown table of what was searched and what the winners reach."""
    lines = [_SUMMARY]
    for winner in winners:
        column = winner.cell.column
        cells = [winner.cell.model, f"{column.dataset} ({column.protocol})", str(winner.tried)]
        cells += [str(winner.compared), str(len(winner.runs))]
        cells += [f"{winner.val_mean:.2f}", f"{winner.test_mean:.2f}"]
        settings = toml_values(winner.candidate.final_settings, ", ")
        lines.append(f"| {' | '.join(cells)} | `{settings}` |")
    return "\n".join(lines) + "\n"


_SUMMARY = """# The search on the newer benchmarks

A draw is a configuration that was tried. It is trained with little patience on the official splits
0 and 1 (seeds 0 and 1 under `full`); on a graph with 6,000 nodes and more, only the better half is
trained on split 1. The best draws are trained with more patience on the splits 0 to 2, and on a
smaller graph the best two of them on all ten splits. The winner has the best mean of the official
metric on validation nodes. Models with fewer draws on a graph than the others were searched less
there. "On both splits" counts the draws that were trained on the splits 0 and 1, from which the
finalists are chosen; where a search was cut short, some are missing. "Splits" counts those of
validation and test score. Test scores of the search runs, in %, are shown and selected nothing.
`modern-search.parquet` holds all runs. `modern_spaces.toml` in `nfgnn/paper/search` holds the
values of the first nine draws, and `modern_second_spaces.toml` those of further draws of the
residual networks and the published settings that they start with. Further draws of other models are
from the first file; GCN also tries the published settings of two graphs.

| model | graph | draws | on both splits | splits | validation | test | settings of the winner |
|---|---|---:|---:|---:|---:|---:|---|"""
