"""The files of the study of node gates."""

import csv
import json
from pathlib import Path

import pytest
from helpers.node_gate_records import add_report, add_search, fingerprint

from nfgnn.errors import UserError
from nfgnn.paper.studies import node_gate_outcomes, node_gate_report
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_plan import GRAPHS, StudyGraph
from nfgnn.paper.studies.node_gate_report import write_node_gates
from nfgnn.training import Records

SCORES = {"none": 0.5, "agreement": 0.6, "MLP": 0.4, "oracle": 0.7}
NAMES = ("texas", "minesweeper", "mixed-10")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the records of three graphs."""
    monkeypatch.setattr(StudyGraph, "fingerprint", fingerprint)
    # With ties SciPy enumerates all sign patterns, which takes long. It is tested elsewhere.
    monkeypatch.setattr(node_gate_outcomes, "signed_rank", lambda a, b: 1.0)
    monkeypatch.setattr(plan, "LAYERS", (2, 4))
    monkeypatch.setattr(plan, "DRAWS_PER_STRUCTURE", 1)
    monkeypatch.setattr(plan, "SEARCH_SEEDS", range(3))
    monkeypatch.setattr(node_gate_report, "FORMATS", ("png",))
    with Records(tmp_path / "node_gates.sqlite") as records:
        for name in NAMES:
            graph = GRAPHS[name]
            add_search(records, graph, lambda network, draw, seed: 0.5)
            for protocol in (graph.protocol, *graph.shifts):
                add_report(
                    records,
                    graph,
                    protocol,
                    lambda network, seed: SCORES.get(network, 0.45) + 0.001 * (seed % 3),
                )
    return tmp_path


def test_the_files_hold_the_outcomes(folder: Path) -> None:
    paths = write_node_gates(folder, NAMES, from_records=True)
    assert [path.name for path in paths[:3]] == [
        "node_gates.md",
        "node_gates.csv",
        "node_gates.json",
    ]
    assert all(path.stat().st_size > 0 for path in paths)
    assert {path.stem for path in paths[3:]} == {"node_gates_gain", "node_gates_homophily"}
    text = paths[0].read_text()
    assert "**Verdict: no gain was shown**" in text
    assert "- `agreement`: significant gains on minesweeper, texas" in text
    assert "(5 seeds) | +20.00 ± 0.00 | -25 % | 50 % | -25 % | -25 % |" in text
    with paths[1].open() as file:
        rows = list(csv.DictReader(file))
    by_key = {(row["graph"], row["protocol"], row["network"]): row for row in rows}
    row = by_key["minesweeper", "public", "agreement"]
    assert float(row["mean"]) == pytest.approx(0.601)
    assert float(row["difference"]) == pytest.approx(0.1)
    assert row["metric"] == "roc_auc"
    assert by_key["minesweeper", "homophily-high-to-low", "term"]["p_holm"] == ""
    content = json.loads(paths[2].read_text())
    assert len(content["cells"]) == 5
    assert content["cells"][0]["networks"]["none"]["seeds"] == list(plan.REPORT_SEEDS)

    # The committed Parquet file alone gives the same files.
    contents = [path.read_bytes() for path in paths]
    for file in folder.glob("node_gates.sqlite*"):
        file.unlink()
    again = write_node_gates(folder, NAMES, from_records=True)
    assert [path.read_bytes() for path in again] == contents


def test_other_files_are_not_replaced(folder: Path) -> None:
    write_node_gates(folder, ["texas"], from_records=True)
    with pytest.raises(UserError, match="a study with different content"):
        write_node_gates(folder, NAMES, from_records=True)
    (folder / "node_gates.md").write_text("mine")
    with pytest.raises(UserError, match="not a study of nfgnn"):
        write_node_gates(folder, ["texas"], from_records=True, overwrite=True)


def test_without_runs_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no report run of the study is recorded"):
        write_node_gates(tmp_path, ["mixed-0"], from_records=True)
    assert not (tmp_path / "node_gates.md").exists()
