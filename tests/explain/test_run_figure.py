"""The figure of a run shows the numbers of the run folder."""

from itertools import count
from pathlib import Path

import matplotlib.legend
import numpy as np
import pytest
from helpers.experiments import experiment, run_quietly

from nfgnn.data import load_dataset
from nfgnn.explain import write_report_figure
from nfgnn.explain.run_figure import draw_run, read_run
from nfgnn.training import RunConfig, load_run


@pytest.mark.parametrize("model", ["NFGNN", "PolyGNN", "MLP"])
def test_figure_data_equals_the_run(model: str, tmp_path: Path) -> None:
    data = load_dataset("mixed", num_nodes=120)
    config = RunConfig.resolve(model, {"epochs": 8}, "mixed", "full")
    run_quietly(experiment(data, "full", [0, 1], config), tmp_path / "run")
    content = read_run(tmp_path / "run", np.full(120, 0.5))
    assert [len(curve["val_loss"]) for curve in content.curves] == [8, 8]
    assert content.best_epochs == [int(np.argmin(curve["val_loss"])) for curve in content.curves]
    if model != "MLP":
        frequencies, responses = load_run(tmp_path / "run", seed=0).response(data, points=101)
        np.testing.assert_allclose(content.frequencies, frequencies.numpy())
        np.testing.assert_allclose(content.responses, responses.numpy(), rtol=1e-5, atol=1e-6)
    draw_run(content, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_the_best_epoch_is_the_one_that_the_metric_has_selected(tmp_path: Path) -> None:
    data = load_dataset("mixed", num_nodes=120)
    settings = {"epochs": 30, "metric": "macro_f1", "select": "metric", "patience": 30}
    config = RunConfig.resolve("MLP", settings, "mixed", "full")
    run_quietly(experiment(data, "full", [0, 1], config), tmp_path / "run")
    content = read_run(tmp_path / "run", np.full(120, 0.5))
    for curve, best in zip(content.curves, content.best_epochs):
        ranks = np.lexsort((curve["val_loss"], -curve["val_macro_f1"]))
        assert best == ranks[0]


def test_a_slow_machine_prints_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib warns about legends that take a second, and warnings are errors here."""
    data = load_dataset("mixed", num_nodes=120)
    config = RunConfig.resolve("NFGNN", {"epochs": 2}, "mixed", "full")
    run_quietly(experiment(data, "full", [0], config), tmp_path / "run")
    clock = count(step=10)
    monkeypatch.setattr(matplotlib.legend.time, "perf_counter", lambda: float(next(clock)))
    draw_run(read_run(tmp_path / "run", np.full(120, 0.5)), tmp_path / "figure.png")
    assert next(clock) > 0
    assert write_report_figure(tmp_path / "run")
