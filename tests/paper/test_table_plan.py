"""Options narrow a table."""

from pathlib import Path

import numpy as np
import pytest

from nfgnn.errors import UserError
from nfgnn.paper.table_plan import make_plan


def test_a_graph_may_stand_in_several_columns() -> None:
    columns = make_plan("orientation", ["texas"]).columns
    assert [(column.dataset, column.protocol) for column in columns] == [
        ("texas", "semi"),
        ("texas", "full"),
    ]


def test_a_narrowed_table_has_a_name_of_its_own() -> None:
    assert make_plan("full").file == "full"
    assert make_plan("full", ["Texas", "cornell"], runs=10).file == "full-texas-cornell-10runs"
    assert (
        make_plan("ablation", None, ["NFGNN"], seed=2000, preset="best").file
        == "ablation-nfgnn-preset-best-seed2000"
    )
    assert [c.dataset for c in make_plan("full", ["TEXAS", "texas"]).columns] == ["texas"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fulll",), "choose from semi, full"),
        (("full", None, ["ResNet"]), "unknown model 'ResNet'"),
        (("full", ["nowhere/"]), "neither a dataset nor a file"),
        (("full", None, None, None, 3), "seeds below 1000, such as 3, are reserved"),
        (("full", None, None, None, 99), "seeds below 1000, such as 99, are reserved"),
        (("full", None, None, None, 1000, "good"), "unknown preset 'good'"),
    ],
)
def test_mistakes_are_named(arguments: tuple, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_plan(*arguments)


def test_the_metric_of_an_own_graph_selects_the_epoch(tmp_path: Path) -> None:
    graph = str(tmp_path / "rare.npz")
    y = np.arange(100) % 10 == 0
    edges = np.stack([np.arange(99), np.arange(1, 100)], 1)
    np.savez(graph, node_features=np.eye(100), edges=edges, node_labels=y)
    plan = make_plan("own", [graph], ["MLP"])
    (config,) = plan.configs.values()
    assert config.training.select == "metric"
    assert list(plan.metrics.values()) == [("test_roc_auc",)]
    chosen = make_plan("own", [graph], ["MLP"], settings={"metric": "log_loss", "select": "loss"})
    (config,) = chosen.configs.values()
    assert config.training.select == "loss"
    assert list(chosen.metrics.values()) == [("test_log_loss",)]
    assert chosen.file == "own-mlp-metric-log-loss-select-loss"
    paper = make_plan("full", [graph], ["MLP"])
    assert {config.training.select for config in paper.configs.values()} == {"loss"}
