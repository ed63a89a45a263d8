"""Figures are made once, and the committed ones are complete."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.small_models import SmallModels

from nfgnn import NodeClassifier
from nfgnn.errors import UserError
from nfgnn.paper.figure_writer import write_figures
from nfgnn.paper.figures import FIGURES
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.progress import Progress

RESULTS = Path(__file__).parents[2] / "results"
ENDINGS = ("json", "png", "pdf")


@pytest.fixture(autouse=True)
def _no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_work_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(epochs: int, overwrite: bool = False) -> list[Path]:
        names = ["global-filters", "degrees"]
        quiet = Progress("", quiet=True)
        out = tmp_path / "out"
        graphs = ["mixed", "texas"]
        return write_figures(
            names, graphs, tmp_path, out, 1, quiet, overwrite=overwrite, epochs=epochs
        )

    def contents() -> dict[str, bytes]:
        folder = tmp_path / "out" / "figures"
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    monkeypatch.setattr(TrainedModels, "source", SmallModels.source)
    written = write(epochs=4)
    assert [path.name for path in written] == ["global_filters.json", "degrees.json"]
    content = json.loads(written[0].read_text())
    assert list(content["inputs"]["graphs"]) == ["mixed"]  # Texas is not available
    before = contents()
    assert set(before) == {f"{n}.{e}" for n in ("global_filters", "degrees") for e in ENDINGS}
    trained: list[int] = []

    def counted(self: NodeClassifier, *arguments: Any) -> NodeClassifier:
        trained.append(self.seed)
        return original(self, *arguments)

    original = NodeClassifier.fit
    monkeypatch.setattr(NodeClassifier, "fit", counted)
    write(epochs=4)
    (tmp_path / "out" / "figures" / "global_filters.png").unlink()
    write(epochs=4)  # drawn from the existing rows
    assert before == contents()
    assert trained == []
    write(epochs=5, overwrite=True)
    assert trained == [1000]


def test_missing_graphs_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--root"):
        write_figures(["degrees"], ["texas"], tmp_path, tmp_path)


def test_committed_figures_are_whole_and_small() -> None:
    folder = RESULTS / "figures"
    of_studies = ("node_gates_", "auto_")  # their values are in the files of the study
    files = {path.name for path in folder.iterdir() if not path.name.startswith(of_studies)}
    assert files == {f"{name}.{ending}" for name in FIGURES for ending in ENDINGS}
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
    for name in FIGURES:
        content = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        assert content["inputs"]["first_seed"] >= 1000
        graphs = {graph["name"] for graph in content["rows"]["graphs"]}
        assert graphs == set(content["inputs"]["graphs"])
