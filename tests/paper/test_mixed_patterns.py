"""The study of mixed patterns: the oracle, the scores and the files."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nfgnn.paper.studies import mixed_patterns
from nfgnn.paper.studies.mixed_patterns import OracleGate, markdown, pattern_scores, run_spec
from nfgnn.progress import Progress
from nfgnn.training import InMemory, InProcess, execute, summarise

RESULTS = Path(__file__).parents[2] / "results"


def scores(name: str, seed: int, **graph: Any) -> dict[str, float]:
    results = InMemory(pattern_scores)
    spec = run_spec(name, seed, **graph)
    assert not execute([spec], results, InProcess(), Progress("", quiet=True), "cpu")
    return results.find(spec)


def test_the_oracle_has_one_filter_per_true_pattern() -> None:
    spec = run_spec("oracle", 0, num_nodes=60)
    data = spec.split()
    classifier = spec.classifier("cpu")
    classifier.prepare_fit(data)
    model = classifier.model_
    gate = model.prop.gate
    assert isinstance(gate, OracleGate)
    torch.nn.init.normal_(gate.gamma)
    psi = model.eval().coefficients(data.x, data.edge_index)
    for pattern in (0, 1):
        nodes = data.pattern == pattern
        assert torch.equal(psi[nodes], gate.gamma[:, pattern].expand(int(nodes.sum()), -1))


def test_scores_per_pattern_add_up() -> None:
    found = scores("MLP", seed=0, num_nodes=200)
    assert set(found) == {"all", "homophilic", "heterophilic"}
    by_pattern = (found["homophilic"], found["heterophilic"])
    assert min(by_pattern) <= found["all"] <= max(by_pattern)


def test_markdown_shows_mean_and_interval() -> None:
    tables = {"A graph": [{"model": "MLP", "all": summarise([0.5, 0.6])}]}
    assert "| MLP | 55.00 ± 63.53 |" in markdown(tables, "command", "machine")


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
    assert list(content["tables"]) == list(mixed_patterns.GRAPHS)
    assert scores("oracle", 1000)["all"] == pytest.approx(row["all"]["values"][0], abs=0.02)
