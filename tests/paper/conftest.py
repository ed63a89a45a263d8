"""Fixtures of the tests of tables and figures."""

import pytest
import torch
from helpers.small_models import SmallModels
from helpers.table_records import SCORES, make_record

from nfgnn.paper.reproduce import Found
from nfgnn.paper.table_plan import Plan, make_plan
from nfgnn.paper.trained_models import TrainedModels


@pytest.fixture
def full() -> tuple[Plan, Found]:
    plan = make_plan("full", ["texas", "cornell"], ["NFGNN", "MLP", "GCN"], runs=3)
    found: Found = {}
    for label, column in plan.configs:
        found[label, column] = [
            make_record(plan, label, column, 1000 + i, test_accuracy=score, seconds=1.0, epochs=200)
            for i, score in enumerate(SCORES.get((label, column.dataset), []))
        ]
    return plan, found


@pytest.fixture(scope="module")
def models() -> TrainedModels:
    torch.set_num_threads(1)
    return SmallModels(runs=2, epochs=8)
