"""The figure of a run shows the numbers of the run folder."""

from itertools import count
from pathlib import Path

import matplotlib.legend
import numpy as np
import pytest
from helpers.experiments import experiment, run_quietly

from nfgnn.data import load_dataset
from nfgnn.explain import canvas, panels, write_report_figure
from nfgnn.explain.run_figure import (
    _draw_loss,
    _draw_metric,
    _draw_responses,
    _filter_finding,
    _leave_out_spikes,
    draw_run,
    read_run,
)
from nfgnn.training import RunConfig, load_run

pytestmark = pytest.mark.figures


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
    assert content.metric.name == "accuracy"
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


def test_panels_show_loss_and_metric_and_fit_the_data(tmp_path: Path) -> None:
    data = load_dataset("mixed", num_nodes=120)
    settings = {"epochs": 20, "metric": "macro_f1"}
    config = RunConfig.resolve("NFGNN", settings, "mixed", "full")
    run_quietly(experiment(data, "full", [0, 1], config), tmp_path / "run")
    content = read_run(tmp_path / "run", np.full(120, 0.5))
    with canvas() as plt:
        _, axes = panels(plt, 2)
        _draw_loss(axes[0, 0], content)
        _draw_metric(axes[0, 1], content, "val_macro_f1")
        drawn = axes[0, 1].lines[0].get_ydata()
        by_run = zip(content.curves, content.best_epochs)
        best = [float(curve["val_macro_f1"][epoch]) for curve, epoch in by_run]
        title = axes[0, 1].get_title(loc="left")
        for ax, column in zip(axes[0], ("val_loss", "val_macro_f1")):
            values = np.concatenate([curve[column] for curve in content.curves])
            low, high = ax.get_ylim()
            assert low <= values.min() <= values.max() <= high
            assert high - low < 3 * (values.max() - values.min())
    np.testing.assert_array_equal(drawn, content.curves[0]["val_macro_f1"])
    assert title == f"{100 * np.mean(best):.1f} % at the best epoch, mean of 2 runs"


def test_title_says_how_much_filters_differ() -> None:
    same = np.ones((4, 11))
    assert _filter_finding(same) == "One filter for all nodes"
    nearly = same.copy()
    nearly[0] += 1e-3
    assert _filter_finding(nearly) == "All nodes share nearly one filter"
    # Two filters at distance 1 from their mean, whose length is 2.
    apart = np.array([[2.0, 1.0], [2.0, -1.0]])
    assert _filter_finding(apart) == "Filters differ by 50 % from their mean"


@pytest.mark.parametrize("model", ["GPRGNN", "PolyGNN", "NFGNN"])
def test_colours_and_mean_are_drawn_for_filters_of_nodes_only(model: str, tmp_path: Path) -> None:
    data = load_dataset("mixed", num_nodes=120)
    config = RunConfig.resolve(model, {"epochs": 8}, "mixed", "full")
    run_quietly(experiment(data, "full", [0], config), tmp_path / "run")
    content = read_run(tmp_path / "run", np.full(120, 0.5))
    with canvas() as plt:
        figure, axes = panels(plt, 1)
        _draw_responses(figure, axes[0, 0], content)
        title = axes[0, 0].get_title(loc="left")
        labels = [ax.get_ylabel() for ax in figure.axes]
        legend = axes[0, 0].get_legend()
        drawn = axes[0, 0].lines[0].get_ydata()
    if model == "NFGNN":
        assert labels == ["response", "neighbours of the same class"]
        assert legend is not None
    else:
        assert title == "One filter for all nodes"
        assert labels == ["response"]
        assert legend is None
        np.testing.assert_array_equal(drawn, content.responses[0])


def test_spikes_of_the_loss_do_not_flatten_the_curves() -> None:
    usual = np.linspace(1.0, 2.0, 199)
    with canvas() as plt:
        _, axes = panels(plt, 2)
        for ax, highest in zip(axes[0], (100.0, 2.5)):
            losses = np.append(usual, highest)
            ax.plot(losses)
            _leave_out_spikes(ax, losses)
        assert axes[0, 0].get_ylim()[1] < 2.1
        assert axes[0, 1].get_ylim()[1] > 2.5
