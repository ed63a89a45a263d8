"""The ink of tables: Markdown, CSV and LaTeX of :class:`nfgnn.paper.tables.Table`."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from nfgnn.files import atomic_write
from nfgnn.paper.tables import Entry, Table

_METRICS = {
    "test_accuracy": "Test accuracy",
    "test_roc_auc": "Area under the ROC curve",
    "observed_accuracy": "Accuracy on observed test nodes",
    "unobserved_accuracy": "Accuracy on unobserved nodes",
    "epoch_ms": "Time per epoch",
    "seconds": "Training time of a run",
}
_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"$<$", ">": r"$>$", "±": r"$\pm$", "–": "--",
    "×": r"$\times$",
}  # fmt: skip


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
    """One section per metric, then how the numbers were made."""
    first = tables[0]
    lines = [f"# {first.title}", ""]
    for table in tables:
        lines += [f"## {_METRICS[table.metric]}", "", _caption(table), ""]
        lines.append(f"| | {' | '.join(map(table.heading, table.columns))} |")
        lines.append(f"|---|{'---:|' * len(table.columns)}")
        for label, entries in table.rows.items():
            lines.append(
                f"| {label} | {' | '.join(_cell(table, entry, '**{}**') for entry in entries)} |"
            )
        lines += ["", *_markdown_tests(table)]
    lines += [
        "## How it was made",
        "",
        f"- Command: `{first.command}`",
        f"- Seeds: {_seeds(first)}",
    ]
    lines += [f"- {machine}" for machine in first.machines or ["no run yet"]]
    lines += [f"- Missing: {note}" for note in first.notes]
    return "\n".join(lines) + "\n"


def _caption(table: Table) -> str:
    paper = any(entry.paper for entries in table.rows.values() for entry in entries)
    parts = [
        f"In {table.unit}, mean ± half-width of the 95 % confidence interval of the mean (Student's t)"
    ]
    parts += ["in brackets the paper's value"] if paper else []
    parts += [f"a number after × counts the runs where they are fewer than {table.runs}"]
    parts += ["bold: the highest mean of the column"] if table.unit == "%" else []
    return "; ".join(parts) + "."


def _markdown_tests(table: Table) -> list[str]:
    if not table.tests:
        return []
    lines = [
        "Paired t-tests on the same splits; the difference in points with its 95 % interval; Holm's correction over",
        "the graphs of one pair. The best other model is the one of highest mean in the column above.",
        "",
        "| graph | model | against | difference | p | p (Holm) | runs |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for t in table.tests:
        values = (
            t.column,
            t.model,
            t.against,
            _difference(t.difference, t.ci95),
            _p(t.p),
            _p(t.p_holm),
            str(t.runs),
        )
        lines.append(f"| {' | '.join(values)} |")
    return [*lines, ""]


def values_csv(tables: Sequence[Table]) -> str:
    """One line per cell."""
    columns = [
        "item",
        "metric",
        "unit",
        "dataset",
        "protocol",
        "model",
        "runs",
        "mean",
        "ci95",
        "paper",
        "paper_ci95",
    ]
    lines: list[list[object]] = [[*columns, "best"]]
    for table in tables:
        for label, entries in table.rows.items():
            for column, e in zip(table.columns, entries):
                where = [
                    table.item,
                    table.metric,
                    table.unit,
                    column.dataset,
                    column.protocol,
                    label,
                ]
                found = [_number(e.mean), _number(e.ci95)] if e.values else ["", ""]
                lines.append(
                    [
                        *where,
                        len(e.values),
                        *found,
                        *(_number(v) for v in e.paper or (None, None)),
                        int(e.best),
                    ]
                )
    return _csv(lines)


def tests_csv(tables: Sequence[Table]) -> str:
    """One line per paired test."""
    lines: list[list[object]] = [
        ["item", "metric", "graph", "model", "against", "difference", "ci95", "p", "p_holm", "runs"]
    ]
    for table in tables:
        for t in table.tests:
            chances = ["" if p is None else f"{p:.6g}" for p in (t.p, t.p_holm)]
            numbers = [_number(t.difference), _number(t.ci95), *chances, t.runs]
            lines.append([table.item, table.metric, t.column, t.model, t.against, *numbers])
    return _csv(lines)


def latex(tables: Sequence[Table]) -> str:
    """One ``table`` per metric; needs the package booktabs."""
    lines = [f"% {tables[0].command}", r"% \usepackage{booktabs}"]
    for table in tables:
        lines += [r"\begin{table}", r"\centering"]
        lines.append(
            rf"\caption{{{escape(f'{table.title}. {_METRICS[table.metric]}. {_caption(table)}')}}}"
        )
        lines.append(rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}")
        lines += [
            r"\toprule",
            rf" & {' & '.join(escape(table.heading(c)) for c in table.columns)} \\",
            r"\midrule",
        ]
        for label, entries in table.rows.items():
            cells = (_cell(table, entry, "\x02{}\x03") for entry in entries)
            lines.append(rf"{escape(label)} & {' & '.join(map(_bold, cells))} \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def _bold(cell: str) -> str:
    return escape(cell).replace("\x02", r"\textbf{").replace("\x03", "}")


def _cell(table: Table, entry: Entry, bold: str) -> str:
    """``**92.16 ± 1.00** (94.03) ×8``."""
    parts = ["–"]
    if entry.values:
        interval = f" ± {entry.ci95:.2f}" if entry.ci95 is not None else ""
        text = f"{entry.mean:.2f}{interval}"
        parts = [bold.format(text) if entry.best else text]
    parts += [f"({entry.paper[0]:.2f})"] if entry.paper else []
    parts += [f"×{len(entry.values)}"] if 0 < len(entry.values) < table.runs else []
    return " ".join(parts)


def _seeds(table: Table) -> str:
    return f"{table.seeds[0]} to {table.seeds[-1]}, of split and model"


def _difference(value: float, ci95: float | None) -> str:
    return f"{value:+.2f}" + (f" ± {ci95:.2f}" if ci95 is not None else "")


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def _csv(lines: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
