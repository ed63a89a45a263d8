"""``nfgnn reproduce``: its JSON."""

import json
from pathlib import Path

import pytest

from nfgnn.paper.studies import node_gate_report

TABLE = ("reproduce", "full", "--datasets", "karate", "--models", "MLP", "--runs", "1")


def test_json_lists_the_written_files_and_nothing_else_is_printed(call, tmp_path: Path) -> None:
    status, out, _ = call(*TABLE, "--out", "results", "--json")
    result = json.loads(out)
    assert status == 0
    assert (result["out"], result["figures"], result["notes"]) == ("results", [], [])
    (item,) = result["items"]
    assert item["item"] == "full"
    assert item["files"]
    assert all((tmp_path / file).is_file() for file in item["files"])


def test_a_folder_of_graphs_makes_a_table_of_their_metrics(call, tmp_path: Path) -> None:
    call("datasets", "--template", "graphs/people")
    table = ("reproduce", "own", "--datasets", "graphs", "--models", "MLP,SGC", "--runs", "2")
    status, out, _ = call(*table, "--out", "results")
    assert status == 0
    assert (tmp_path / "results" / "own-mlp-sgc-2runs.md").read_text() == out.removesuffix("\n")
    lines = [line for line in out.splitlines() if line.startswith(("| MLP", "| SGC"))]
    assert len(lines) == 2
    assert all("±" in line for line in lines)
    assert "people: 200 nodes" in out


def test_graphs_without_files_have_dashes_beside_published_values(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    call(*TABLE, "--out", "results")
    table = ("reproduce", "modern", "--datasets", "questions,pokec", "--models", "MLP,GCN")
    status, out, _ = call(*table, "--from-records", "--out", "results")
    assert status == 0
    assert (tmp_path / "results/modern-questions-pokec-mlp-gcn.md").is_file()
    assert "## Area under the ROC curve" in out
    assert "## Test accuracy" in out
    assert out.count("| MLP | – |") == 2
    assert "| Polynormer | 78.92 | its paper, second hand |" in out
    assert "| Polynormer | 86.03 | its paper, second hand |" in out


@pytest.mark.parametrize("item", ["modern", "node-gates", "portfolio"])
def test_a_folder_without_records_is_refused_and_stays_absent(
    call, tmp_path: Path, item: str
) -> None:
    status, out, err = call("reproduce", item, "--from-records", "--out", "new")
    assert status == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert "run the same command without --from-records" in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mixed-patterns", "--from-records"), "mixed-patterns keeps no records"),
        (("mixed-patterns", "--datasets", "karate"), "mixed-patterns has no option --datasets"),
        (("node-gates", "--runs", "2", "--models", "MLP"), "no option --models, --runs"),
        (("portfolio", "--engine", "ray"), "portfolio has no option --engine"),
        (("figures", "node-gates", "--class-weight", "balanced"), "no option --class-weight"),
        (("full", "figures", "--from-records"), "make figures with a command of its own"),
        (("mixed-patterns", "figures", "--datasets", "karate"), "no option --datasets: make mixed"),
    ],
)
def test_options_that_an_item_does_not_use_are_refused(
    call, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = call("reproduce", *arguments, "--out", "new")
    assert (status, out) == (2, "")
    assert message in err
    assert not (tmp_path / "new").exists()


def test_written_files_of_a_study_are_listed(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(out: Path, *_: object) -> list[Path]:
        out.mkdir()
        files = [out / "node_gates.md", out / "node_gates.csv"]
        for file in files:
            file.write_text("a table")
        return files

    monkeypatch.setattr(node_gate_report, "write_node_gates", write)
    status, out, err = call("reproduce", "node-gates", "--from-records", "--out", "results")
    assert (status, out) == (0, "a table\n")
    assert "written: results/node_gates.md results/node_gates.csv" in err


def test_a_table_without_any_number_is_refused(call, tmp_path: Path) -> None:
    """A class of two nodes cannot be split, so no run is possible."""
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/nodes.csv").write_text("id,label,x\n0,a,1\n1,b,2\n2,b,3\n")
    (tmp_path / "graph/edges.csv").write_text("source,target\n0,1\n1,2\n")
    table = ("reproduce", "own", "--datasets", "graph", "--models", "MLP", "--runs", "1")
    status, out, err = call(*table, "--out", "results")
    assert status == 2
    assert out == ""
    assert "no run of 'own' could be trained, so no table was written" in err
    assert not list((tmp_path / "results").glob("*.md"))


def test_a_table_without_searched_settings_is_refused(call) -> None:
    table = ("reproduce", "modern", "--datasets", "karate", "--models", "NFNet", "--runs", "1")
    status, _, err = call(*table, "--out", "results")
    assert status == 2
    assert "no search has selected settings for these models on these graphs" in err


def test_the_study_of_node_gates_refuses_unknown_graphs_and_missing_runs(
    call, tmp_path: Path
) -> None:
    study = ("reproduce", "node-gates", "--from-records", "--out", "results")
    status, _, err = call(*study, "--datasets", "karate")
    assert status == 2
    assert "unknown graph of the study of node gates 'karate'" in err
    status, out, err = call(*study, "--datasets", "mixed")
    assert status == 2
    assert out == ""
    assert "no report run of the study is recorded" in err
    assert not list((tmp_path / "results").glob("*.md"))


def test_the_portfolio_needs_recorded_runs(call, tmp_path: Path) -> None:
    status, out, err = call("reproduce", "portfolio", "--from-records", "--out", "results")
    assert status == 2
    assert out == ""
    assert "no candidate of the portfolio is recorded" in err
    assert not list((tmp_path / "results").glob("portfolio.*"))
