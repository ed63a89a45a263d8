"""Feature scaling."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from nfgnn.data import FeatureScaling, load_dataset, split
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


def table(n: int = 400) -> torch.Tensor:
    """Two numbers, one of them with a heavy tail, an indicator, and a constant."""
    rng = np.random.default_rng(0)
    columns = [
        rng.normal(50, 10, n),
        np.exp(rng.normal(3, 2, n)),
        rng.random(n) < 0.3,
        np.full(n, 7.0),
    ]
    return torch.from_numpy(np.stack(columns, axis=1)).float()


def test_columns_are_treated_by_their_kind() -> None:
    x = table()
    scaling = FeatureScaling.fit(x)
    z = scaling.apply(x).double()
    numbers = x[:, :2].double().numpy()
    numbers[:, 1] = np.log1p(numbers[:, 1])
    expected = StandardScaler().fit_transform(numbers).clip(-5, 5)
    norm = (2 + x[:, 2].double().mean()).sqrt()
    np.testing.assert_allclose(z[:, :2] * norm, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(z[:, 2] * norm, x[:, 2].double(), rtol=0, atol=1e-6)
    assert not z[:, 3].any()
    assert float(z.square().sum(1).mean()) == pytest.approx(1, rel=0.01)
    text = scaling.describe()
    assert "2 columns standardised (1 after a logarithm)" in text
    assert "1 column of 0 and 1 unchanged, 1 constant column left out" in text


def test_negative_heavy_tails_get_a_signed_logarithm() -> None:
    x = -table()[:, 1:2]
    z = FeatureScaling.fit(x).apply(x)
    torch.testing.assert_close(z, -FeatureScaling.fit(-x).apply(-x))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("words", [False, True])
def test_auto_depends_on_the_training_nodes_only(sparse: bool, words: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(60, 5, generator=generator)
    if words:
        x = (x > 0.8) * torch.randint(1, 4, (60, 5), generator=generator).float()
    train_mask = torch.arange(60) % 3 == 0
    changed = torch.where(train_mask[:, None], x, -1000 * x)
    scalings = []
    for features in (x, changed):
        layout = features.to_sparse_csr() if sparse else features
        scalings.append(FeatureScaling.fit(layout, "auto", train_mask))
    assert scalings[0].equals(scalings[1])
    assert scalings[0].how == ("row" if words else "standard")
    assert scalings[0].equals(FeatureScaling.fit(x[train_mask]))
    assert not scalings[0].equals(FeatureScaling.fit(changed))


def test_large_numbers_beside_categories_are_not_a_bag_of_words() -> None:
    categories = torch.eye(12)[torch.arange(240) % 12]
    income = 1000 * torch.arange(240.0)[:, None]
    assert FeatureScaling.fit(categories).how == "raw"
    assert FeatureScaling.fit(torch.cat([categories, income], dim=1)).how == "standard"
    # A few frequent words with counts do not make a table.
    frequent = 1 + (torch.arange(240.0)[:, None] % 2)
    words = (torch.rand(240, 400, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    assert FeatureScaling.fit(torch.cat([words, frequent], dim=1)).how == "row"


def test_few_training_nodes_give_finite_features() -> None:
    x = table()
    train_mask = torch.zeros(len(x), dtype=torch.bool)
    train_mask[:2] = True
    z = FeatureScaling.fit(x, "auto", train_mask).apply(x)
    assert bool(z.isfinite().all())
    assert float(z.abs().max()) <= 5


@pytest.mark.parametrize("how", ["auto", "standard", "raw"])
def test_gaps_become_the_median_of_the_training_nodes(how: str) -> None:
    known = table()[:, :2]
    gaps = torch.zeros(len(known), 2, dtype=torch.bool)
    gaps[::3, 0] = True
    gaps[1::4, 1] = True
    train_mask = torch.arange(len(known)) < 101
    x = torch.cat([torch.where(gaps, -1.0, known), gaps.float()], dim=1)
    scaling = FeatureScaling.fit(x, how, train_mask, [[0, 1], [2, 3]])
    with_gaps = torch.where(gaps, torch.nan, known).double().numpy()
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    imputed = torch.from_numpy(imputer.fit(with_gaps[:101]).transform(with_gaps)).float()
    expected = FeatureScaling.fit(imputed, how, train_mask).apply(imputed)
    torch.testing.assert_close(scaling.apply(x), expected)
    again = FeatureScaling.from_tensors(scaling.how, scaling.tensors())
    torch.testing.assert_close(again.apply(x), expected)


PAPER = ["cora", "citeseer", "pubmed", "computers", "photo", "chameleon", "squirrel", "actor"]


@pytest.mark.parametrize("name", [*PAPER, "texas", "cornell", "cornell-genuine"])
def test_auto_divides_by_rows_on_the_graphs_of_the_paper(name: str, data_root: Path) -> None:
    """Records of these graphs with ``features = "auto"`` keep their meaning."""
    data = load_dataset(name, data_root)
    for protocol in ("full", "semi"):
        train_mask = split(data, protocol, 0).train_mask
        assert FeatureScaling.fit(data.x, "auto", train_mask).how == "row"


@pytest.mark.parametrize("sparse", [False, True])
def test_one_hot_categories_are_divided_by_their_norm(sparse: bool) -> None:
    city = torch.eye(12)[torch.arange(48) % 12]
    job = torch.eye(5)[torch.arange(48) // 10]
    x = torch.cat([city, job], dim=1)
    features = x.to_sparse_csr() if sparse else x
    scaling = FeatureScaling.fit(features)
    z = scaling.apply(features)
    assert z.layout == features.layout
    torch.testing.assert_close(z.to_dense(), torch.nn.functional.normalize(x))
    scaling.check(17)  # what saved models are read with
    assert FeatureScaling.fit(city).apply(city) is city
