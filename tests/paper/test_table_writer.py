"""Tables of hand-made records: every number by hand, every format read back."""

import csv
import io
import re
from pathlib import Path

from helpers.table_records import SCORES, make_record
from scipy.stats import ttest_rel

from nfgnn.paper import table_writer
from nfgnn.paper.reproduce import Found
from nfgnn.paper.table_cells import make_tables
from nfgnn.paper.table_plan import Plan, make_plan
from nfgnn.paper.table_writer import (
    escape,
    latex,
    markdown,
    values_csv,
    write_tables,
)


def test_markdown_by_hand(full: tuple[Plan, Found]) -> None:
    text = markdown(make_tables(*full, "nfgnn reproduce full", ["pubmed: not here"]))
    assert "| | Texas | Cornell |" in text
    # mean 92.333, s 2.51661, t(0.975, 2) = 4.30265, half-width 6.2516
    assert "| NFGNN (best) | **92.33 ± 6.25** (94.03) | 85.50 ± 6.35 (91.90) ×2 |" in text
    assert "| MLP | 91.00 ± 2.48 (92.26) | **88.00 ± 4.97** (91.36) |" in text
    assert "| GCN | 75.00 ± 12.42 (75.16) | – (66.72) |" in text
    p = ttest_rel(SCORES["NFGNN (best)", "texas"], SCORES["MLP", "texas"]).pvalue
    assert f"| Texas | NFGNN (best) | MLP | +1.33 ± 3.79 | {p:.3f} |" in text
    assert "| Cornell | NFGNN (best) | MLP | -1.50 ± 6.35 |" in text
    assert "`nfgnn reproduce full`" in text
    assert "- cpu (2 cores): 17 runs" in text
    assert "- Missing: pubmed: not here" in text
    widths = {
        line.count("|")
        for line in text.splitlines()
        if line.startswith("| N") or line.startswith("| | ")
    }
    assert widths == {4}


def test_csv_reads_back(full: tuple[Plan, Found]) -> None:
    tables = make_tables(*full, "c")
    rows = list(csv.DictReader(io.StringIO(values_csv(tables))))
    assert len(rows) == 8
    mine = next(r for r in rows if (r["model"], r["dataset"]) == ("MLP", "texas"))
    assert (float(mine["mean"]), float(mine["paper"]), mine["runs"], mine["best"]) == (
        91.0,
        92.26,
        "3",
        "0",
    )
    empty = next(r for r in rows if (r["model"], r["dataset"]) == ("GCN", "cornell"))
    assert (empty["runs"], empty["mean"], empty["ci95"]) == ("0", "", "")
    tests = list(csv.DictReader(io.StringIO(table_writer.tests_csv(tables))))
    assert [t["against"] for t in tests] == ["MLP"] * 3
    assert all(float(t["p"]) <= float(t["p_holm"]) for t in tests)


def test_latex_is_balanced_and_escaped(full: tuple[Plan, Found]) -> None:
    text = latex(make_tables(*full, "nfgnn reproduce full"))
    assert (
        r"NFGNN (best) & \textbf{92.33 $\pm$ 6.25} (94.03) & 85.50 $\pm$ 6.35 (91.90) $\times$2 \\"
        in text
    )
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert body.count("{") - body.count(r"\{") == body.count("}") - body.count(r"\}")
    assert body.count("$") % 2 == 0
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {2}
    assert body.isascii()
    assert not re.search(r"(?<!\\)%", body)
    assert escape("a_b & 50 % {x} ± <") == r"a\_b \& 50 \% \{x\} $\pm$ $<$"


def test_two_metrics_are_two_sections() -> None:
    plan = make_plan("inductive", ["cora"], ["NFGNN", "APPNP"], runs=1)
    found = {
        (label, column): [
            make_record(plan, label, column, 1000, observed_accuracy=0.8, unobserved_accuracy=0.7)
        ]
        for label, column in plan.configs
    }
    text = markdown(make_tables(plan, found, "c"))
    seen, unseen = text.split("## Accuracy on unobserved nodes")
    assert "| NFGNN | **80.00** (78.78) |" in seen
    assert "| NFGNN | **70.00** (70.09) |" in unseen
    assert "| Cora | NFGNN | APPNP | +0.00 | – | – | 1 |" in text


def test_times_keep_devices_apart() -> None:
    plan = make_plan("time", ["cora"], ["GCN"], runs=2)
    ((label, column),) = plan.configs
    runs = [
        make_record(plan, label, column, 1000, seconds=2.0, epochs=400),
        make_record(plan, label, column, 1001, seconds=1.0, epochs=500, device="H200"),
    ]
    text = markdown(make_tables(plan, {(label, column): runs}, "c"))
    assert "| GCN, cpu (2 cores) | 5.00 (3.10) ×1 |" in text
    assert "| GCN, H200 (2 cores) | 2.00 (3.10) ×1 |" in text
    assert "| GCN, cpu (2 cores) | 2.00 (1.05) ×1 |" in text
    assert "**" not in text


def test_no_file_of_tests_without_tests(tmp_path: Path) -> None:
    plan = make_plan("time", ["cora"], ["GCN"], runs=1)
    ((label, column),) = plan.configs
    runs = [make_record(plan, label, column, 1000, seconds=2.0, epochs=400)]
    tables = make_tables(plan, {(label, column): runs}, "c")
    endings = [path.suffixes[-1] for path in write_tables(tables, tmp_path, "time")]
    assert endings == [".md", ".csv", ".tex"]


def test_columns_tell_their_protocol_where_it_differs() -> None:
    plan = make_plan("ablation", None, ["PolyGNN"], runs=1)
    text = markdown(make_tables(plan, {cell: [] for cell in plan.configs}, "c"))
    assert (
        "| | Cora (semi) | CiteSeer (semi) | PubMed (semi) "
        "| Chameleon (full) | Actor (full) | Texas (full) |" in text
    )
    assert "| Monomial without NF | – (78.15) |" in text


def test_files_are_written(full: tuple[Plan, Found], tmp_path: Path) -> None:
    paths = write_tables(make_tables(*full, "c"), tmp_path / "new", full[0].file)
    name = "full-texas-cornell-nfgnn-mlp-gcn-3runs"
    assert [p.name for p in paths] == [
        f"{name}.md",
        f"{name}.csv",
        f"{name}.tex",
        f"{name}.tests.csv",
    ]
    assert sorted(tmp_path.joinpath("new").iterdir()) == sorted(paths)


def test_dead_runs_are_marked(full: tuple[Plan, Found]) -> None:
    plan, found = full
    texas = plan.columns[0]
    found["GCN", texas] = [
        make_record(plan, "GCN", texas, 1000, test_accuracy=0.1, dead=1),
        make_record(plan, "GCN", texas, 1001, test_accuracy=0.7),
        make_record(plan, "GCN", texas, 1002, test_accuracy=0.8),
    ]
    tables = make_tables(plan, found, "c")
    text = markdown(tables)
    # All runs: mean 53.333; without the dead one 75 ± 12.7062 * 7.07107 / sqrt(2).
    assert "| GCN | 53.33 ± 94.05 (75.16) †1 |" in text
    assert "- † GCN, Texas: seeds 1000; mean of the others 75.00 ± 63.53" in text
    assert "a number after † counts" in text
    rows = list(csv.DictReader(io.StringIO(values_csv(tables))))
    assert [row["dead"] for row in rows if row["model"] == "GCN"] == ["1", "0"]
    assert r"GCN, Texas: seeds 1000; mean of the others 75.00 $\pm$ 63.53" in latex(tables)
