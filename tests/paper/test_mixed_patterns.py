import json
from pathlib import Path

import pytest
import torch

from nfgnn.data import load_dataset
from nfgnn.paper.studies import mixed_patterns
from nfgnn.paper.studies.mixed_patterns import OracleGate, build, markdown, run
from nfgnn.training.metrics import summarise

RESULTS = Path(__file__).parents[2] / "results"


def test_the_oracle_has_one_filter_per_true_pattern() -> None:
    data = load_dataset("mixed", num_nodes=60)
    model, _ = build("oracle", data)
    assert isinstance(model.prop.gate, OracleGate)
    torch.nn.init.normal_(model.prop.gate.gamma)
    psi = model.eval().coefficients(data.x, data.edge_index)
    for pattern in (0, 1):
        assert torch.equal(
            psi[data.pattern == pattern],
            model.prop.gate.gamma[:, pattern].expand(int((data.pattern == pattern).sum()), -1),
        )


def test_scores_per_pattern_add_up() -> None:
    scores = run("MLP", seed=0, num_nodes=200)
    assert set(scores) == {"all", "homophilic", "heterophilic"}
    assert (
        min(scores["homophilic"], scores["heterophilic"])
        <= scores["all"]
        <= max(scores["homophilic"], scores["heterophilic"])
    )


def test_markdown_shows_mean_and_interval() -> None:
    tables = {"A graph": [{"model": "MLP", "all": summarise([0.5, 0.6])}]}
    assert "| MLP | 55.00 ± 63.53 |" in markdown(tables, "command")


def test_study_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_patterns, "MODELS", {"MLP": ("MLP", {"epochs": 2})})
    graphs = {"A small graph": {"num_nodes": 100}}
    monkeypatch.setattr(mixed_patterns, "GRAPHS", graphs)
    paths = mixed_patterns.write_mixed_patterns(tmp_path, runs=2)
    assert [path.name for path in paths] == ["mixed_patterns.json", "mixed_patterns.md"]
    content = json.loads(paths[0].read_text())
    assert content["command"] == "nfgnn reproduce mixed-patterns --runs 2 --seed 1000"
    assert len(content["tables"]["A small graph"][0]["all"]["values"]) == 2


def test_committed_study_has_the_numbers_of_the_code() -> None:
    """One run of the committed study, trained again."""
    content = json.loads((RESULTS / "mixed_patterns.json").read_text())
    row = content["tables"]["Half homophilic, half heterophilic"][-1]
    assert row["model"] == "oracle"
    assert run("oracle", 1000)["all"] == pytest.approx(row["all"]["values"][0], abs=0.02)
