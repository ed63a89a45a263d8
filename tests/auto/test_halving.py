"""Successive halving, by hand."""

from nfgnn.auto.halving import Round, next_round


def test_everything_is_trained_to_the_end_if_there_is_time() -> None:
    assert next_round([3.0, 1.0, 2.0], last=0.5, available=6.0) == Round(3, None)


def test_what_fits_is_trained_to_the_end_if_it_is_half_or_more() -> None:
    assert next_round([3.0, 1.0, 2.0, 5.0, 1.0], last=0.5, available=6.5) == Round(3, None)


def test_a_half_that_does_not_fit_gets_longer_slices() -> None:
    # Sixteen configurations of 50 s had 2 s each. 8 s for eight of them leave 150 s and more.
    assert next_round([50.0] * 16, last=2.0, available=220.0) == Round(8, 8.0)
    # Of 156 s, 6 s may be spent on slices, which is less than 16 s for every one of four.
    assert next_round([50.0] * 8, last=8.0, available=156.0) == Round(3, None)


def test_the_best_are_trained_to_the_end_rather_than_all_a_little_longer() -> None:
    assert next_round([50.0] * 8, last=2.0, available=100.0) == Round(2, None)
    assert next_round([20.0, 50.0, 50.0, 50.0], last=2.0, available=60.0) == Round(1, None)


def test_slices_are_longer_where_nothing_can_be_trained_to_the_end() -> None:
    assert next_round([90.0] * 8, last=2.0, available=60.0) == Round(4, 8.0)


def test_slices_that_are_hardly_longer_are_left_to_the_best() -> None:
    # 14 s for four configurations would be 3.5 s each: only slices of 4 s are worth it.
    assert next_round([50.0] * 8, last=2.0, available=14.0) == Round(3, None)
    assert next_round([50.0] * 8, last=2.0, available=3.0) == Round(0, None)
