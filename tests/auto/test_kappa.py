"""Cohen's kappa against scikit-learn."""

import pytest
import torch
from sklearn.metrics import cohen_kappa_score

from nfgnn.auto.kappa import KAPPA


def test_equals_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (60,), generator=generator)
    rows = torch.rand(60, 4, generator=generator) + torch.nn.functional.one_hot(y, 4) / 3
    expected = cohen_kappa_score(y, rows.argmax(1))
    assert KAPPA.compute(rows, y, 4) == pytest.approx(expected)
    weight = torch.randint(3, (2, 60), generator=generator).double()
    values = KAPPA.value(rows.expand(2, -1, -1), y.expand(2, -1), weight)
    for value, part in zip(values, weight):
        expected = cohen_kappa_score(y, rows.argmax(1), sample_weight=part)
        assert float(value) == pytest.approx(expected)


def test_a_constant_prediction_is_chance() -> None:
    constant = torch.tensor([0.9, 0.1]).expand(10, -1)
    assert KAPPA.compute(constant, torch.arange(10) // 8, 2) == pytest.approx(0)
    assert KAPPA.compute(constant, torch.zeros(10, dtype=torch.long), 2) == 0
