"""Write tables as Markdown, CSV and LaTeX."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from nfgnn.existing_output import refuse_foreign_file, refuse_replacement, starts_with
from nfgnn.files import atomic_write
from nfgnn.paper.statistics import p_value_text
from nfgnn.paper.table_cells import MARKED_UNITS, Entry, MeanRank, Table
from nfgnn.paper.table_plan import graph_name
from nfgnn.paper.table_registry import PublishedRow
from nfgnn.training import find_metric

_METRICS = {
    "test_accuracy": "Test accuracy",
    "test_roc_auc": "Area under the ROC curve",
    "observed_accuracy": "Accuracy on observed test nodes",
    "unobserved_accuracy": "Accuracy on unobserved nodes",
    "epoch_ms": "Time per epoch",
    "seconds": "Training time of a run",
}
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "–": "--",
    "×": r"$\times$",
    "†": r"$\dagger$",
}
_BOLD_START = "\x02"  # marks of bold text that escape() leaves alone
_BOLD_END = "\x03"

_WHAT = "a table"
_COMMAND = re.compile(r"^(?:% |- Command: `)(nfgnn reproduce [^`\n]*)", re.MULTILINE)
_is_csv = starts_with("item,metric,")


def check_table_files(folder: Path, name: str, command: str, overwrite: bool) -> None:
    """Refuse to replace files that are no tables of nfgnn, or tables of another command.

    The same command updates its tables, because records are only ever added.

    Args:
        folder: where the tables are written.
        name: their name without an ending.
        command: the command that makes them.
        overwrite: replace tables of another command.
    """
    for ending in ("md", "csv", "tex", "tests.csv"):
        path = folder / f"{name}.{ending}"
        if path.suffix == ".csv":
            refuse_foreign_file(path, _is_csv, _WHAT)
        elif path.exists():
            found = _recorded_command(path)
            ours = found is not None
            same = found == command
            refuse_replacement(path, _WHAT, ours=ours, same=same, overwrite=overwrite)


def _recorded_command(path: Path) -> str | None:
    """Return the command that wrote a Markdown or LaTeX table."""
    try:
        match = _COMMAND.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return match[1] if match else None


def write_tables(tables: Sequence[Table], folder: Path, name: str) -> list[Path]:
    """Write ``NAME.md``, ``NAME.csv`` and ``NAME.tex``, and ``NAME.tests.csv`` if there are tests.

    Returns:
        The paths of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{name}.md": markdown(tables),
        f"{name}.csv": values_csv(tables),
        f"{name}.tex": latex(tables),
    }
    if any(table.tests for table in tables):
        texts[f"{name}.tests.csv"] = tests_csv(tables)
    for file, text in texts.items():
        atomic_write(folder / file, text)
    return [folder / file for file in texts]


def markdown(tables: Sequence[Table]) -> str:
    """Return one section per metric, then how the numbers were made."""
    first = tables[0]
    lines = [f"# {first.title}", ""]
    for table in tables:
        lines += [f"## {_title(table.metric)}", "", _caption(table), ""]
        lines.append(f"| | {' | '.join(map(table.heading, table.columns))} |")
        lines.append(f"|---|{'---:|' * len(table.columns)}")
        for label, entries in table.rows.items():
            cells = [_cell(table, entry, "**", "**") for entry in entries]
            lines.append(f"| {label} | {' | '.join(cells)} |")
        lines += ["", *_dead_run_notes(table), *_published_lines(table), *_markdown_tests(table)]
    lines += _rank_lines(first)
    lines += ["## How it was made", "", f"- Command: `{first.command}`"]
    lines.append(f"- Seeds: {first.seeds[0]} to {first.seeds[-1]}, of split and model")
    if first.settings_note:
        lines.append(f"- Settings: {first.settings_note}")
    lines += [f"- {machine}" for machine in first.machines or ["no run yet"]]
    lines += [f"- {note}" for note in first.graph_notes]
    lines += [f"- Missing: {note}" for note in first.notes]
    return "\n".join(lines) + "\n"


def _title(metric: str) -> str:
    """Return the heading of the table of a metric."""
    if metric in _METRICS:
        return _METRICS[metric]
    part, _, name = metric.partition("_")
    text = f"{find_metric(name).title} on {part} nodes"
    return text[0].upper() + text[1:]


def _caption(table: Table) -> str:
    parts = [
        f"In {table.unit}, mean ± half-width of the 95 % confidence interval of the mean "
        "(Student's t)"
    ]
    if any(entry.paper for entries in table.rows.values() for entry in entries):
        parts.append("in brackets the paper's value")
    parts.append(f"a number after × counts the runs where they are fewer than {len(table.seeds)}")
    if table.cells_with_dead_runs():
        parts.append("a number after † counts the runs of the mean that never rose above chance")
    if table.unit in MARKED_UNITS:
        extreme = "lowest" if table.lower_is_better else "highest"
        parts.append(f"bold: the {extreme} mean of the column")
    return "; ".join(parts) + "."


def _dead_run_notes(table: Table) -> list[str]:
    """Return one line per cell with dead runs: their seeds, and the mean of the others."""
    lines = []
    for label, column, entry in table.cells_with_dead_runs():
        seeds = ", ".join(map(str, entry.dead))
        others = entry.without_dead()
        mean = _interval(others) if others.values else "–"
        lines.append(
            f"- † {label}, {table.heading(column)}: seeds {seeds}; mean of the others {mean}"
        )
    return [*lines, ""] if lines else []


def _published_lines(table: Table) -> list[str]:
    """Return the values of other papers as a table with the source of every row."""
    if not table.published:
        return []
    lines = [
        "Published values, not measured here, with their sources:",
        "",
        f"| | {' | '.join(map(table.heading, table.columns))} | source |",
        f"|---|{'---:|' * len(table.columns)}---|",
    ]
    for row in table.published:
        lines.append(f"| {row.model} | {' | '.join(_published_cells(table, row))} | {row.source} |")
    return [*lines, ""]


def _published_cells(table: Table, row: PublishedRow) -> list[str]:
    values = [row.values.get(column.dataset) for column in table.columns]
    return ["–" if value is None else f"{value:.2f}" for value in values]


def _rank_lines(table: Table) -> list[str]:
    if not table.ranks:
        return []
    lines = [
        "## Mean rank",
        "",
        "On every graph with results, the models are ranked by their mean; 1 is the best. Only "
        "models that have runs",
        "on all of these graphs are ranked, so all mean ranks are over the same graphs and models.",
        "",
        *[
            f"- Left out: {label}, because it has no runs on {', '.join(graphs)}"
            for label, graphs in table.unranked.items()
        ],
        *([""] if table.unranked else []),
        "| | mean rank | graphs |",
        "|---|---:|---:|",
    ]
    for label, rank in _by_rank(table):
        lines.append(f"| {label} | {rank.mean:.2f} | {rank.graphs} |")
    return [*lines, ""]


def _by_rank(table: Table) -> list[tuple[str, MeanRank]]:
    return sorted(table.ranks.items(), key=lambda item: item[1].mean)


def _markdown_tests(table: Table) -> list[str]:
    if not table.tests:
        return []
    unit = "points" if table.unit == "%" else table.unit
    extreme = "lowest" if table.lower_is_better else "highest"
    lines = [
        f"Paired t-tests on the same splits; the difference in {unit} with its 95 % interval; "
        "Holm's correction over",
        f"the graphs of one pair. The best other model is the one of {extreme} mean in the column "
        "above.",
        "",
        "| graph | model | against | difference | p | p (Holm) | runs |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for test in table.tests:
        result = test.result
        difference = f"{result.difference:+.2f}"
        if result.ci95 is not None:
            difference += f" ± {result.ci95:.2f}"
        cells = [test.column, test.model, test.against, difference]
        cells += [p_value_text(result.p), p_value_text(test.p_holm), str(result.runs)]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def values_csv(tables: Sequence[Table]) -> str:
    """Return one line per cell. Where runs are dead, a column counts them.

    Published values follow as lines without runs, whose value is in the column of the paper. Mean
    ranks are lines without a dataset, with the number of graphs in place of the runs.
    """
    any_dead = any(table.cells_with_dead_runs() for table in tables)
    header = ["item", "metric", "unit", "dataset", "protocol", "model", "runs", "mean", "ci95"]
    header += ["paper", "paper_ci95", "best"]
    if any_dead:
        header.append("dead")
    lines: list[list[object]] = [[*header]]
    for table in tables:
        for label, entries in table.rows.items():
            for column, entry in zip(table.columns, entries):
                mean = entry.mean if entry.values else None
                ci95 = entry.ci95 if entry.values else None
                paper = entry.paper or (None, None)
                line = [table.name, table.metric, table.unit, graph_name(column.dataset)]
                line.append(column.protocol)
                numbers = [_number(value) for value in (mean, ci95, *paper)]
                lines.append([*line, label, len(entry.values), *numbers, int(entry.best)])
                if any_dead:
                    lines[-1].append(len(entry.dead))
        lines += _published_csv(table)
    lines += _rank_csv(tables[0])
    width = len(lines[0])
    return _csv([[*line, *[""] * (width - len(line))] for line in lines])


def _published_csv(table: Table) -> list[list[object]]:
    lines: list[list[object]] = []
    for row in table.published:
        label = f"{row.model} ({row.source})"
        for column in table.columns:
            if column.dataset in row.values:
                value = _number(row.values[column.dataset])
                cell = [table.name, table.metric, table.unit, column.dataset, column.protocol]
                lines.append([*cell, label, 0, "", "", value, "", 0])
    return lines


def _rank_csv(table: Table) -> list[list[object]]:
    lines: list[list[object]] = []
    for label, rank in _by_rank(table):
        cell = [table.name, "mean_rank", "", "", "", label]
        lines.append([*cell, rank.graphs, _number(rank.mean), "", "", "", 0])
    return lines


def tests_csv(tables: Sequence[Table]) -> str:
    """Return one line per paired test."""
    header = ["item", "metric", "graph", "model", "against", "difference", "ci95", "p", "p_holm"]
    lines: list[list[object]] = [[*header, "runs"]]
    for table in tables:
        for test in table.tests:
            line = [table.name, table.metric, test.column, test.model, test.against]
            line += [_number(test.result.difference), _number(test.result.ci95)]
            line += ["" if p is None else f"{p:.6g}" for p in (test.result.p, test.p_holm)]
            lines.append([*line, test.result.runs])
    return _csv(lines)


def latex(tables: Sequence[Table]) -> str:
    """Return one ``table`` environment per metric. It needs the package booktabs."""
    lines = [f"% {tables[0].command}", r"% \usepackage{booktabs}"]
    for table in tables:
        caption = f"{table.title}. {_title(table.metric)}. {_caption(table)}"
        headings = [escape(table.heading(column)) for column in table.columns]
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\toprule",
            rf" & {' & '.join(headings)} \\",
            r"\midrule",
        ]
        for label, entries in table.rows.items():
            cells = []
            for entry in entries:
                cell = escape(_cell(table, entry, _BOLD_START, _BOLD_END))
                cells.append(cell.replace(_BOLD_START, r"\textbf{").replace(_BOLD_END, "}"))
            lines.append(rf"{escape(label)} & {' & '.join(cells)} \\")
        if table.published:
            lines.append(r"\midrule")
        for row in table.published:
            values = " & ".join(map(escape, _published_cells(table, row)))
            lines.append(rf"{escape(row.model)} & {values} \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [
            rf"\par {escape(row.model)}: {escape(row.source)}, not measured here"
            for row in table.published
        ]
        lines += [rf"\par {escape(note[2:])}" for note in _dead_run_notes(table) if note]
        lines.append(r"\end{table}")
    if tables[0].ranks:
        lines += _latex_ranks(tables[0])
    return "\n".join(lines) + "\n"


def _latex_ranks(table: Table) -> list[str]:
    ranks = [
        rf"{escape(label)} & {rank.mean:.2f} & {rank.graphs} \\" for label, rank in _by_rank(table)
    ]
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}. Mean rank over the graphs with runs, of the models "
        "that have runs on all of them.}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & mean rank & graphs \\",
        r"\midrule",
        *ranks,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def escape(text: str) -> str:
    """Escape the characters that LaTeX does not print as they are."""
    return "".join(_LATEX.get(character, character) for character in text)


def _cell(table: Table, entry: Entry, bold_start: str, bold_end: str) -> str:
    """Return a cell such as ``**92.16 ± 1.00** (94.03) ×8``."""
    parts = ["–"]
    if entry.values:
        text = _interval(entry)
        parts = [f"{bold_start}{text}{bold_end}" if entry.best else text]
    if entry.paper:
        parts.append(f"({entry.paper[0]:.2f})")
    if 0 < len(entry.values) < len(table.seeds):
        parts.append(f"×{len(entry.values)}")
    if entry.dead:
        parts.append(f"†{len(entry.dead)}")
    return " ".join(parts)


def _interval(entry: Entry) -> str:
    text = f"{entry.mean:.2f}"
    return text if entry.ci95 is None else f"{text} ± {entry.ci95:.2f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def _csv(lines: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
