"""Splits that configurations are compared on."""

from collections import Counter

import pytest
import torch

from nfgnn.auto.validation import FEW_NODES, REPEATS, resplit, validation_splits
from nfgnn.data import load_dataset, mixed_graph, split
from nfgnn.errors import UserError
from nfgnn.training import METRICS, Graph, RunConfig

ACCURACY = METRICS["accuracy"]
CONFIG = RunConfig.resolve("GCN", {}, None, None, "none")


def test_resplits_keep_the_numbers_of_every_class_and_the_test_nodes() -> None:
    graph = Graph.of(load_dataset("karate"))
    given = split(graph.data, "stratified", 3)
    splits = validation_splits(graph, "stratified", 3, ACCURACY)
    assert splits.count == REPEATS
    assert splits.seeds == (3, 4, 5, 6, 7)
    known = given.train_mask | given.val_mask
    drawn = set()
    for number in range(REPEATS):
        data = splits.spec(CONFIG, number).split()
        assert torch.equal(data.test_mask, given.test_mask)
        assert torch.equal(data.train_mask | data.val_mask, known)
        assert not bool((data.train_mask & data.val_mask).any())
        for name in ("train_mask", "val_mask"):
            expected = Counter(given.y[given[name]].tolist())
            assert Counter(data.y[data[name]].tolist()) == expected
        assert torch.equal(splits.scored.nodes[number], data.val_mask.nonzero().flatten())
        assert torch.equal(splits.scored.labels[number], data.y[data.val_mask])
        drawn.add(tuple(splits.scored.nodes[number].tolist()))
    assert len(drawn) == REPEATS
    first = splits.spec(CONFIG, 0).split()
    assert torch.equal(first.train_mask, given.train_mask)
    assert torch.equal(first.val_mask, given.val_mask)


def test_the_same_seed_gives_the_same_resplits() -> None:
    data = split(load_dataset("karate"), "stratified", 0)
    draws = [resplit(data, torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(draws[0][1], draws[1][1])


def test_the_largest_seed_has_resplits_too() -> None:
    splits = validation_splits(Graph.of(load_dataset("karate")), "stratified", 2**63 - 1, ACCURACY)
    given = split(load_dataset("karate"), "stratified", 2**63 - 1)
    data = splits.spec(CONFIG, 0).split()
    assert torch.equal(data.val_mask, given.val_mask)
    assert splits.spec(CONFIG, 4).seed == 2**63 - 5


def test_many_validation_nodes_need_no_resplit() -> None:
    data = mixed_graph(5 * FEW_NODES + 50, degree=2, num_features=4)
    splits = validation_splits(Graph.of(data), "stratified", 1, ACCURACY)
    assert splits.count == 1
    assert splits.spec(CONFIG, 0).split().val_mask.sum() >= FEW_NODES


def test_hidden_nodes_are_refused() -> None:
    with pytest.raises(UserError, match="'inductive'"):
        validation_splits(Graph.of(load_dataset("karate")), "inductive", 0, ACCURACY)
