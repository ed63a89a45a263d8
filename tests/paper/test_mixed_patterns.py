import torch

from nfgnn.data import load_dataset
from nfgnn.paper.mixed_patterns import OracleGate, build, markdown, run
from nfgnn.training.metrics import summarise


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
