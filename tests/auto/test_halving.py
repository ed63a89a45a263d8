"""Successive halving, by hand."""

from nfgnn.auto.halving import Round, next_round


def test_everything_is_trained_to_the_end_if_there_is_time() -> None:
    assert next_round([3.0, 1.0, 2.0], last=0.5, available=6.0) == Round(3, None)


def test_what_fits_is_trained_to_the_end_if_it_is_half_or_more() -> None:
    assert next_round([3.0, 1.0, 2.0, 5.0, 1.0], last=0.5, available=6.5) == Round(3, None)


def test_a_half_that_does_not_fit_gets_longer_slices() -> None:
    # Eight configurations of 50 s had 2 s each. 8 → 4 with 8 s → 2 with what is left.
    assert next_round([50.0] * 8, last=2.0, available=100.0) == Round(4, 8.0)
    assert next_round([50.0] * 4, last=8.0, available=60.0) == Round(2, 30.0)
    assert next_round([50.0] * 2, last=30.0, available=100.0) == Round(2, None)


def test_slices_that_are_hardly_longer_are_left_to_the_best() -> None:
    # 14 s for four configurations would be 3.5 s each: only slices of 4 s are worth it.
    assert next_round([50.0] * 8, last=2.0, available=14.0) == Round(3, None)
    assert next_round([50.0] * 8, last=2.0, available=3.0) == Round(0, None)
