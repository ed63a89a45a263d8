"""``nfgnn analyze``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]
FIGURES = ("degrees", "homophily_histograms", "spectrum")


def test_writes_page_numbers_and_figures(call: Call) -> None:
    status, out, _ = call("analyze", "karate", "--json")
    assert status == 0
    analysis = json.loads(out)
    folder = Path("analysis/karate")
    assert all(Path(file).is_file() for file in analysis["files"])
    assert analysis["files"][0] == "analysis/karate/index.html"
    written = json.loads((folder / "analysis.json").read_text())
    assert (written.pop("kind"), written.pop("format")) == ("nfgnn analysis", 1)
    assert written.items() <= analysis.items()
    names = {Path(file).name for file in analysis["files"]}
    figures = {f"{name}.{ending}" for name in FIGURES for ending in ("pdf", "png", "svg")}
    assert names == {path.name for path in folder.iterdir()}
    assert names == figures | {"index.html", "analysis.json"}
    status, out, _ = call("analyze", "karate", "--out", "other")
    assert status == 0
    assert "The graph is homophilic" in out
    assert "other/index.html" in out
    assert "nfgnn auto karate --time 5m" in out
    for name in names:
        assert (Path("other") / name).read_bytes() == (folder / name).read_bytes()


def test_invalid_input_exits_with_status_2(call: Call) -> None:
    Path("taken").touch()
    status, _, err = call("analyze", "karate", "--out", "taken")
    assert status == 2
    assert "cannot create taken" in err
    assert call("analyze", "nowhere")[0] == 2


def test_columns_of_own_files(call: Call) -> None:
    folder = Path("shop")
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,kind,f\na,x,1\nb,x,2\nc,y,3\nd,,4\n")
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    status, out, _ = call("analyze", "shop/", "--column", "label=kind", "--no-models", "--json")
    assert status == 0
    analysis = json.loads(out)
    command = f"nfgnn auto {folder.resolve()} --column label=kind --time 5m"
    assert analysis["commands"][0]["command"] == command
    assert "baselines" not in analysis
    assert analysis["name"] == "shop"
    assert analysis["class_names"] == ["x", "y"]
    assert analysis["unlabelled"] == 1
    assert analysis["homophily"]["node"] == pytest.approx((1 + 0.5 + 0) / 3)
