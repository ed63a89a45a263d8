"""Feature scaling."""

import pytest
import torch

from nfgnn.data import FeatureScaling
from nfgnn.errors import UserError

WORDS = torch.tensor([[2.0, 0, 0, 2], [0, 0, 0, 0], [1, 0, 0, 0]])
MEASURES = torch.tensor([[1.0, 100], [2, 200], [3, 300], [6, 0]])


@pytest.mark.parametrize("sparse", [False, True])
def test_row(sparse: bool) -> None:
    x = WORDS.to_sparse_csr() if sparse else WORDS
    scaled = FeatureScaling.fit(x, "row").apply(x)
    assert scaled.layout == x.layout
    torch.testing.assert_close(
        scaled.to_dense(), torch.tensor([[0.5, 0, 0, 0.5], [0, 0, 0, 0], [1, 0, 0, 0]])
    )


def test_standard_is_fitted_on_one_graph_and_applied_to_another() -> None:
    scaling = FeatureScaling.fit(MEASURES, "standard")
    z = scaling.apply(MEASURES) * 2**0.5
    torch.testing.assert_close(z.mean(0), torch.zeros(2), rtol=0, atol=1e-6)
    torch.testing.assert_close(z.std(0, correction=0), torch.ones(2))
    torch.testing.assert_close(scaling.apply(MEASURES[:1]), scaling.apply(MEASURES)[:1])
    assert float(scaling.apply(torch.tensor([[1e9, 0.0]]))[0, 0]) == pytest.approx(5 / 2**0.5)


def test_a_constant_column_does_not_divide_by_zero() -> None:
    x = torch.ones(4, 2)
    assert not FeatureScaling.fit(x, "standard").apply(x).isnan().any()


def test_auto_knows_words_from_measurements() -> None:
    assert FeatureScaling.fit(WORDS).how == "row"
    assert FeatureScaling.fit(WORDS.to_sparse_csr()).how == "row"
    assert FeatureScaling.fit(MEASURES).how == "standard"
    assert FeatureScaling.fit(-WORDS).how == "standard"


def test_raw_and_unknown() -> None:
    assert FeatureScaling.fit(WORDS, "raw").apply(WORDS) is WORDS
    with pytest.raises(UserError, match="features = 'l2' is not available"):
        FeatureScaling.fit(WORDS, "l2")
