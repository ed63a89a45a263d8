"""Training the candidates: nothing is trained twice, and processes share the work."""

from pathlib import Path

import pytest

from nfgnn.paper.search import portfolio_runs as module
from nfgnn.paper.search.portfolio_candidates import Candidate, Column
from nfgnn.paper.search.portfolio_runs import PortfolioRuns
from nfgnn.progress import Progress
from nfgnn.training import Records, RunConfig

KARATE = Column("karate", "stratified")


def gcn(stage: int = 0, **settings: float) -> Candidate:
    values = {"epochs": 3, **settings}
    return Candidate(RunConfig.resolve("GCN", values, None, None, "none"), stage=stage)


def make_runs(folder: Path, records: Records, task_limit: float = 60.0) -> PortfolioRuns:
    quiet = Progress("portfolio", quiet=True)
    return PortfolioRuns(folder, records, folder, "cpu", 60.0, task_limit, quiet)


def test_every_candidate_is_trained_once_on_both_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = [gcn(stage=1), gcn(lr=0.02), gcn(hidden_channels=8)]
    with Records(tmp_path / "runs.sqlite") as records:
        assert make_runs(tmp_path, records).train([KARATE], candidates) == []
        found = records.all()
        assert len(found) == 6
        assert {run.seed for run in found} == {0, 1}
        for run in found:
            assert {"val_accuracy", "test_accuracy", "seconds"} <= run.metrics.keys()
            assert "select" not in run.config  # the loss, which accuracy selects by
        # Candidates of the first stage come first.
        assert [run.config["lr"] for run in found[:2]] == [0.02, 0.02]

        def refuse(*_: object) -> list[str]:
            raise AssertionError("a recorded run is trained again")

        monkeypatch.setattr(module, "train_until", refuse)
        assert make_runs(tmp_path, records).train([KARATE], candidates) == []


def test_runs_that_another_process_has_claimed_are_left_to_it(tmp_path: Path) -> None:
    candidate = gcn()
    with Records(tmp_path / "runs.sqlite") as records:
        runs = make_runs(tmp_path, records)
        runs.train([KARATE], [candidate])
        (claim,) = (tmp_path / "claims").iterdir()
        with Records(tmp_path / "other.sqlite") as others, module._claimed(claim) as file:
            assert file is not None
            make_runs(tmp_path, others).train([KARATE], [candidate])
            assert others.all() == []


def test_candidates_that_need_too_long_are_given_up(tmp_path: Path) -> None:
    candidate = gcn(epochs=100_000)
    with Records(tmp_path / "runs.sqlite") as records:
        (line,) = make_runs(tmp_path, records, task_limit=0.01).train([KARATE], [candidate])
        assert "needs more than" in line
        assert make_runs(tmp_path, records).train([KARATE], [candidate]) == []
        assert records.all() == []
