"""Every table of the registry names models, graphs and values of the paper that exist."""

import pytest

from nfgnn.data import PROTOCOLS, REGISTRY
from nfgnn.nn.models import MODELS
from nfgnn.paper.table_plan import make_plan
from nfgnn.paper.table_registry import TABLES, paper_values


@pytest.mark.parametrize("name", TABLES)
def test_every_table_names_what_exists(name: str) -> None:
    spec = TABLES[name]
    rows = spec.rows
    labels = [row.label for row in rows]
    assert len(set(labels)) == len(labels)
    assert all(row.model in MODELS for row in rows)
    assert all(column.dataset in REGISTRY for column in spec.columns)
    assert all(
        column.protocol in PROTOCOLS or column.protocol == "inductive" for column in spec.columns
    )
    known = paper_values().get(name, {})
    assert set(known) <= set(spec.metrics)
    for by_row in known.values():
        assert set(by_row) <= {row.paper for row in rows}
        assert all(
            set(values) <= {column.dataset for column in spec.columns} for values in by_row.values()
        )
    datasets = None if spec.columns else ["karate"]
    assert make_plan(name, datasets).configs  # every cell has a configuration


def test_the_papers_values_are_the_papers() -> None:
    """Spot checks against the paper's tables, one per table."""
    values = paper_values()
    assert values["semi"]["test_accuracy"]["GPRGNN"]["cora"] == [79.51, 0.36]
    assert values["full"]["test_accuracy"]["NFGNN"]["texas"] == [94.03, 0.82]
    assert values["large"]["test_accuracy"]["GCN"]["pokec"] == [75.45, 0.17]
    assert values["inductive"]["unobserved_accuracy"]["NFGNN"]["photo"] == [89.41, 0.92]
    assert values["ablation"]["test_accuracy"]["Bernstein with"]["chameleon"] == [69.93, None]
    assert values["time"]["epoch_ms"]["BernNet"]["cora"] == [14.7, None]
