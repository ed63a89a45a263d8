"""Selection of runs, and errors for runs that cannot be compared."""

from pathlib import Path

import pytest
from helpers.explorer_runs import awkward_graph, train_run

from nfgnn.errors import UserError
from nfgnn.explain import build_node_table, select_runs


def test_invalid_selections_are_errors(tmp_path: Path) -> None:
    data = awkward_graph()
    first = train_run(tmp_path / "first", "MLP", data, seeds=(0, 1))
    second = train_run(tmp_path / "second", "MLP", data, seeds=(2,))
    semi = train_run(tmp_path / "semi", "MLP", data, protocol="stratified")
    elsewhere = train_run(tmp_path / "elsewhere", "MLP", awkward_graph().update({"x": data.x + 1}))
    for call, message in (
        (lambda: select_runs(tmp_path), "no summary.json"),
        (lambda: select_runs(first, seed=7), "choose one of 0, 1"),
        (lambda: select_runs(first, second), "no seed in common"),
        (lambda: select_runs(first, semi), "protocol 'full'.*'stratified'"),
        (lambda: select_runs(first, elsewhere), "different graphs"),
        (lambda: build_node_table(select_runs(elsewhere), data), "not the one that"),
    ):
        with pytest.raises(UserError, match=message):
            call()


def test_seed_and_names(tmp_path: Path) -> None:
    data = awkward_graph()
    first = train_run(tmp_path / "first", "MLP", data, seeds=(0, 1))
    selection = select_runs(first, train_run(tmp_path / "third", "MLP", data, seeds=(1, 5)))
    assert selection.seed == 1
    assert selection.run_names() == ["MLP (first)", "MLP (third)"]
