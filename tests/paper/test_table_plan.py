"""Options narrow a table."""

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
        (("full", None, ["ResNet"]), "there is no model 'ResNet'"),
        (("full", ["nowhere/"]), "neither a dataset nor a file"),
        (("full", None, None, None, 3), "settings are chosen on seeds below 1000, such as 3"),
        (("full", None, None, None, 99), "settings are chosen on seeds below 1000, such as 99"),
        (("full", None, None, None, 1000, "good"), "no preset 'good'"),
    ],
)
def test_mistakes_are_named(arguments: tuple, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_plan(*arguments)
