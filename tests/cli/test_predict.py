"""``nfgnn predict``: the table of predictions, and where it may be written."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from nfgnn.data import load_dataset, split
from nfgnn.training import load_run

QUICK = ("--protocol", "stratified", "--runs", "2", "--set", "epochs=15", "--set", "K=3")


def test_a_run_is_applied_to_a_graph(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, _, err = call("predict", "run", "karate", "-o", "p.csv")
    assert status == 0
    assert "34 predictions" in err
    rows = (tmp_path / "p.csv").read_text().splitlines()
    assert len(rows) == 35
    assert rows[0].replace('"', "").split(",")[:4] == ["id", "predicted", "probability", "margin"]


def test_the_file_needs_a_known_ending_and_an_existing_folder(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    for target, message in (("p.xlsx", ".csv or .parquet"), ("no/p.csv", "does not exist")):
        status, _, err = call("predict", "run", "karate", "-o", target)
        assert status == 2
        assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


NODES = """id,label,age,income,city,joined
{rows}
"""


def write_people(folder: Path, cities: tuple[str, ...]) -> None:
    """A table with gaps, a heavy tail, text and dates."""
    folder.mkdir()
    rows = []
    for i in range(40):
        age = "" if i % 7 == 0 else str(20 + i % 2 * 10 + i % 5)
        city = cities[i % len(cities)]
        rows.append(f"p{i},{'ab'[i % 2]},{age},{10 ** (i % 6)},{city},2024-01-{1 + i % 28:02d}")
    (folder / "nodes.csv").write_text(NODES.format(rows="\n".join(rows)))
    edges = "\n".join(f"p{i},p{(i + 2) % 40}" for i in range(40))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")


def test_a_table_is_encoded_as_the_one_of_training(call, tmp_path: Path) -> None:
    write_people(tmp_path / "people", ("Rome", "Oslo", "Bonn"))
    status, out, err = call("train", "people/", *QUICK, "--set", "features=auto", "--out", "run")
    assert status == 0
    assert "note: encoded 3 columns: age (gaps as the median, gaps as a further feature)" in err
    assert "city (3 categories); joined (days since 2024-01-01)" in err
    text = " ".join(out.split())
    assert "Features: 3 columns standardised (1 after a logarithm), 4 columns of 0 and 1" in text
    write_people(tmp_path / "others", ("Rome", "Kyiv"))
    status, _, err = call("predict", "run", "others/", "-o", "p.csv")
    assert status == 0
    assert "note: column 'city': 20 rows with a category that the model does not know (Kyiv)" in err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 41


def test_all_errors_of_two_tables_come_in_one_message(call, tmp_path: Path) -> None:
    write_people(tmp_path / "people", ("Rome", "Oslo"))
    nodes = tmp_path / "people/nodes.csv"
    edges = tmp_path / "people/edges.csv"
    nodes.write_text(nodes.read_text().replace("p3,b,33,1000", "p3,b,old,inf"))
    edges.write_text(edges.read_text().replace("p5,p7", "p5,nobody") + "somebody,p1\n")
    status, _, err = call("train", "people/")
    assert status == 2
    lines = err.strip().splitlines()
    assert lines[0] == "nfgnn: 4 errors:"
    assert "column 'source': the id 'somebody' is not in nodes.csv" in lines[1]
    assert "row 6, column 'target': the id 'nobody'" in lines[2]
    assert "row 4, column 'age': 'old' is not a number" in lines[3]
    assert "row 4, column 'income': the feature is inf" in lines[4]


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_labels_parts_and_probabilities(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, out, _ = call("predict", "run", "--probabilities", "--json")
    assert status == 0
    assert json.loads(out)["output"] == "run-predictions.csv"
    table = read(tmp_path / "run-predictions.csv")
    classifier = load_run(tmp_path / "run")
    data = split(load_dataset("karate"), "stratified", classifier.seed)
    assert table["label"] == [data.class_names[label] for label in data.y]
    for part in ("train", "val", "test"):
        assert [found == part for found in table["part"]] == data[f"{part}_mask"].tolist()
    found = np.array([table[f"probability_{name}"] for name in data.class_names], dtype=float)
    np.testing.assert_allclose(found.T, classifier.predict_proba(data), rtol=1e-5)


def write_tables(folder: Path, label: str | None) -> None:
    """Write a ring of twelve nodes whose id, label and comment have unusual names."""
    folder.mkdir()
    names = ["key", "a", "comment"] + ([label] if label else [])
    rows = [names]
    for node in range(12):
        row = [f"n{node}", str(node % 2), "7"]
        rows.append(row + ([f"class {node % 2}" if node != 5 else ""] if label else []))
    (folder / "nodes.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    ring = [f"n{node},n{(node + 1) % 12}" for node in range(12)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *ring]) + "\n")


def test_columns_are_remembered_from_the_run(call, tmp_path: Path) -> None:
    write_tables(tmp_path / "graph", "kind")
    columns = ("--column", "id=key", "--column", "label=kind", "--column", "drop=comment")
    quick = ("--model", "MLP", "--runs", "1", "--set", "epochs=5", "--out", "run")
    assert call("train", "graph", *columns, *quick)[0] == 0
    assert call("predict", "run", "-o", "same.csv")[0] == 0
    table = read(tmp_path / "same.csv")
    assert table["id"][3] == "n3"
    assert (table["label"][4], table["label"][5], table["part"][5]) == ("class 0", "", "")
    assert set(table["part"]) == {"train", "val", "test", ""}
    # Another graph need not have labels, and is in no part of the split.
    write_tables(tmp_path / "other", None)
    assert call("predict", "run", "other", "-o", "other.csv")[0] == 0
    assert list(read(tmp_path / "other.csv")) == ["id", "predicted", "probability", "margin"]
    shutil.rmtree(tmp_path / "graph")
    status, _, err = call("predict", "run", "-o", "gone.csv")
    assert status == 2
    assert "graph" in err


def test_the_data_root_is_remembered_from_the_run(
    call, data_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    quick = ("--model", "MLP", "--runs", "1", "--set", "epochs=2", "--out", "run")
    assert call("train", "texas", "--root", str(data_root), *quick)[0] == 0
    assert call("predict", "run", "-o", "p.csv")[0] == 0
    assert len(read(tmp_path / "p.csv")["id"]) == 183


def test_new_nodes_need_a_graph_of_new_nodes(call) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, _, err = call("predict", "run", "--extends", "karate", "-o", "p.csv")
    assert status == 2
    assert "--extends requires DATASET" in err
