"""``nfgnn datasets``: the list of data sets, and the card of a graph."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nfgnn.auto import first_configuration
from nfgnn.data import REGISTRY, dataset_names, export_graph, load_dataset, mixed_graph
from nfgnn.training import RunConfig

Call = Callable[..., tuple[int, str, str]]


def test_the_list_fits_a_terminal(call: Call) -> None:
    status, out, _ = call("datasets")
    assert status == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "…" not in out
    for name in dataset_names():
        assert name in out


def test_the_list_as_json_says_what_is_here(call: Call, data_root: Path) -> None:
    status, out, _ = call("datasets", "--root", str(data_root), "--json")
    rows = {row["name"]: row for row in json.loads(out)["datasets"]}
    assert status == 0
    assert rows["cora"]["here"]
    assert not rows["penn94"]["here"]
    assert rows["penn94"]["download_mb"] > 0
    assert rows["genius"]["metric"] == "roc_auc"


def test_the_card_of_one(call: Call, data_root: Path) -> None:
    status, out, _ = call("datasets", "Cornell", "--root", str(data_root), "--json")
    card = json.loads(out)
    assert status == 0
    assert (card["nodes"], card["edges"], card["features"], card["classes"], card["isolated"]) == (
        183,
        277,
        1703,
        5,
        0,
    )
    assert card["homophily"]["node"] == pytest.approx(0.301, abs=0.001)
    assert set(card["homophily"]) == {"node", "edge", "class_insensitive", "adjusted"}
    assert isinstance(card["label_informativeness"], float)
    assert "same_nodes" in [finding["kind"] for finding in card["findings"]]
    status, out, _ = call("datasets", "cornell", "--root", str(data_root))
    assert "labels of texas" in " ".join(out.split())


def test_what_is_undefined_is_null(call: Call) -> None:
    Path("g").mkdir()
    Path("g/nodes.csv").write_text("id,label,a\n1,x,1\n2,y,2\n")
    Path("g/edges.csv").write_text("source,target\n")
    status, out, _ = call("datasets", "g", "--json")
    assert status == 0
    assert json.loads(out)["homophily"]["edge"] is None


def test_template_and_other_column_names(call: Call) -> None:
    assert call("datasets", "--template", "mine")[0] == 0
    nodes = Path("mine/nodes.csv")
    nodes.write_text(nodes.read_text().replace('"label"', '"interest"', 1))
    assert (
        call(
            "datasets", "mine", "--json", "--column", "label=interest", "--column", "drop=answer_1"
        )[0]
        == 0
    )
    # Without the option, the column of labels is a feature.
    status, out, _ = call("datasets", "mine")
    assert status == 0
    assert "found: no labels; --column label=NAME" in out
    status, out, err = call("datasets", "mine", "--column", "nonsense")
    assert (status, out) == (2, "")
    assert "--column nonsense" in err
    assert call("datasets", "--template", "mine")[0] == 2


@pytest.mark.parametrize("command", [["datasets"], ["train"], ["predict", "run"]])
def test_a_bad_file_is_one_sentence_and_status_2(command: list[str], call: Call) -> None:
    call("datasets", "--template", "mine")
    call(
        "train",
        "mine",
        "--protocol",
        "stratified",
        "--runs",
        "1",
        "--set",
        "epochs=2",
        "--out",
        "run",
    )
    edges = Path("mine/edges.csv")
    edges.write_text(edges.read_text() + '"person-000","nobody"\n')
    before = sorted(Path().rglob("*"))
    more = ["-o", "out.csv"] if command[0] == "predict" else []
    status, out, err = call(*command, "mine", *more)
    assert (status, out) == (2, "")
    assert "edges.csv: row 743, column 'target': the id 'nobody' is not in nodes.csv" in err
    assert "Traceback" not in err
    assert sorted(Path().rglob("*")) == before


def test_a_file_name_selects_neither_citation_nor_preset(call: Call, tmp_path: Path) -> None:
    export_graph(mixed_graph(60, num_features=4), tmp_path / "cornell.npz", "npz")
    status, out, err = call("datasets", "cornell.npz", "--json")
    card = json.loads(out)
    assert status == 0
    assert (card["name"], card["source"], card["licence"]) == ("cornell", None, None)
    quick = ("--runs", "1", "--set", "epochs=2", "--protocol", "stratified", "--json")
    configs = []
    for preset in ("best", "paper"):
        assert call("train", "cornell.npz", *quick, "--preset", preset, "--out", preset)[0] == 0
        configs.append(json.loads((tmp_path / preset / "summary.json").read_text())["config"])
    settings = {"epochs": 2, "select": "loss"}
    first = first_configuration(settings)
    assert first is not None
    assert configs[0] == first.to_dict()
    assert configs[1] == RunConfig.resolve("NFGNN", settings, None, "full", "paper").to_dict()
    assert "whose presets apply" not in err


def test_cornell_under_another_name(call: Call, data_root: Path, tmp_path: Path) -> None:
    data = load_dataset("cornell", data_root)
    export_graph(data, tmp_path / "unknown.npz", "npz")
    status, out, _ = call("datasets", "unknown.npz", "--json", "--root", str(data_root))
    assert status == 0
    assert json.loads(out)["source"] == REGISTRY["cornell"].source
    quick = ("--runs", "1", "--set", "epochs=2", "--protocol", "full", "--out", "run")
    status, _, err = call("train", "unknown.npz", *quick)
    assert status == 0
    assert err.count("note: the graph has the content of the data set cornell") == 1
    config = json.loads((tmp_path / "run" / "summary.json").read_text())["config"]
    settings = {"epochs": 2, "select": "loss"}
    assert config == RunConfig.resolve("NFGNN", settings, "cornell", "full").to_dict()
