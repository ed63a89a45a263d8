"""The draws of the preset search are the same for all polynomial models."""

import pytest

from nfgnn.paper.search.rounds import DRAWN, _definition, cells_of, draws, group_by_structure


@pytest.mark.parametrize("round", DRAWN)
def test_polynomial_models_have_the_same_draws_of_the_numbers_that_they_have(round: str) -> None:
    names = _definition()["numbers"]
    for cell in cells_of(round):
        kinds = {}
        for family in ("global", "agreement", "term", "GPRGNN"):
            configs = [config for part in draws(cell, family, round) for config in part]
            kinds[family] = {str({name: config[name] for name in names}) for config in configs}
        sizes = [len(numbers) for numbers in kinds.values()]
        assert max(sizes) - min(sizes) <= 2, cell  # a draw may come twice
        assert kinds["global"] == kinds["agreement"] == kinds["term"], cell
        if round != "wide":  # there one structure has the draws of all
            assert kinds["global"] == kinds["GPRGNN"], cell


def test_groups_share_their_structure() -> None:
    configs = [{"K": 1, "lr": 0.1}, {"K": 2, "lr": 0.1}, {"K": 1, "lr": 0.2}]
    assert group_by_structure(configs) == [[configs[0], configs[2]], [configs[1]]]
