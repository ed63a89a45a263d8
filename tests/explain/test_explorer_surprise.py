"""Surprising nodes and the sentence on the filters, on tables where the answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.explorer_runs import synthetic_table

from nfgnn.explain.explorer.node_table import FilterColumns, NodeTable
from nfgnn.explain.explorer.surprise import (
    LISTED,
    filter_summary,
    response_distance,
    surprising_nodes,
)


def with_psi(table: NodeTable, psi: np.ndarray) -> NodeTable:
    filters = table.runs[0].filters
    assert filters is not None
    changed = replace(filters, psi=psi, mean=psi.mean(0, dtype=np.float64))
    return replace(table, runs=[replace(table.runs[0], filters=changed)])


def filters_of(table: NodeTable) -> FilterColumns:
    filters = table.runs[0].filters
    assert filters is not None
    return filters


def test_distance_compares_responses() -> None:
    filters = filters_of(synthetic_table(40))
    reference = np.array([1.0, 0.5, 0.0, -1.0])
    base = filters.terms @ reference
    difference = filters.psi @ filters.terms.T - base
    expected = np.sqrt(np.square(difference).mean(1) / np.square(base).mean())
    np.testing.assert_allclose(response_distance(filters, reference), expected, rtol=1e-5)


def test_unusual_filters_and_confident_mistakes_come_first() -> None:
    table = synthetic_table(60)
    psi = np.ones((60, 4), np.float32)
    psi[17] = 5
    psi[3] = 3
    table = with_psi(table, psi)
    unusual, wrong = surprising_nodes(table)
    assert unusual.nodes[:2].tolist() == [17, 3]
    mean = filters_of(table).mean[0]
    assert f"by {100 * (5 / mean - 1):.0f} %" in unusual.reasons[0]
    mistakes = np.flatnonzero(table.runs[0].predicted != table.label)
    by_confidence = sorted(mistakes, key=lambda node: -table.runs[0].confidence[node])
    assert wrong.nodes.tolist() == by_confidence[:LISTED]


def test_unlabelled_nodes_and_equal_filters_are_not_surprising() -> None:
    table = with_psi(synthetic_table(60), np.ones((60, 4), np.float32))
    table.label[:] = -1
    assert surprising_nodes(table) == []


def test_disagreements_are_ordered_by_the_lower_confidence() -> None:
    table = synthetic_table(60)
    first = replace(table.runs[0], name="A", filters=None)
    rng = np.random.default_rng(5)
    second = replace(first, name="B", predicted=rng.integers(0, 3, 60), confidence=rng.random(60))
    found = surprising_nodes(replace(table, runs=[first, second]))[-1]
    assert found.title == "Most confident disagreements"
    lower = np.minimum(first.confidence, second.confidence)
    lower = np.where(first.predicted == second.predicted, -1, lower)
    assert found.nodes.tolist() == np.argsort(-lower)[:LISTED].tolist()


@pytest.mark.parametrize(
    ("psi", "sentence"),
    [
        ("one direction, one outlier", "Nearly all nodes share one filter: 98.3 % of the"),
        ("one direction, tiny differences", "Nearly all nodes share one filter: all responses"),
        ("two groups", "differ in one direction only: the first principal component holds 100 %"),
        ("all directions", None),
        ("equal", None),
    ],
)
def test_sentence_is_true_of_the_filters(psi: str, sentence: str | None) -> None:
    table = synthetic_table(60)
    values = np.ones((60, 4), np.float32)
    if psi == "one direction, one outlier":
        values[0] = 9
    elif psi == "one direction, tiny differences":
        values *= np.linspace(1, 1.01, 60, dtype=np.float32)[:, None]
    elif psi == "two groups":
        values[::2, 1] = -1
    elif psi == "all directions":
        values = filters_of(table).psi
    found = filter_summary(with_psi(table, values).runs[0])
    if sentence is None:
        assert found is None
    else:
        assert found is not None
        assert sentence in found
