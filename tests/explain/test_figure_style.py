"""Files and elements of figures."""

from pathlib import Path
from typing import Any

import matplotlib.colors
import numpy as np
import pytest

from nfgnn.explain.figure_style import (
    FORMATS,
    INK,
    canvas,
    clip_errors,
    headline,
    inline_svg,
    panels,
    percent,
    save,
    signed,
    title,
)


def small_figure() -> Any:
    with canvas() as plt:
        figure, axes = panels(plt, 2)
        axes[0, 0].plot([0, 1], [1, 0], label="line")
        axes[0, 0].legend()
    return figure


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    first = save(small_figure(), tmp_path / "first", "figure")
    second = save(small_figure(), tmp_path / "second", "figure")
    assert [path.name for path in first] == [f"figure.{extension}" for extension in FORMATS]
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()
    assert {path.name for path in (tmp_path / "first").iterdir()} == {path.name for path in first}


def test_inline_svg_takes_the_text_colour_of_its_page() -> None:
    svg = inline_svg(small_figure(), "a line")
    assert svg.startswith('<svg role="img" aria-label="a line"')
    assert "currentColor" in svg
    assert INK not in svg


def test_title_of_datasets_and_own_graphs() -> None:
    assert title("citeseer") == "CiteSeer"
    assert title("my $x^2$ graph") == r"my \$x^2\$ graph"


def _luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.mark.parametrize(("variant", "page"), [("light", "#ffffff"), ("dark", "#0d1117")])
def test_text_is_readable_on_its_page(variant: Any, page: str) -> None:
    with canvas(variant) as plt:
        figure, axes = panels(plt, 1)
        headline(figure, "A finding")
        label = axes[0, 0].set_xlabel("degree")
        colours = [text.get_color() for text in (label, *figure.texts)]
    for colour in colours:
        dark, light = sorted((_luminance(colour), _luminance(page)))
        assert (light + 0.05) / (dark + 0.05) > 7


def test_a_long_finding_stays_within_the_figure() -> None:
    with canvas() as plt:
        figure, _ = panels(plt, 2)
        headline(figure, "A finding that needs many words, because it has exceptions; " * 3)
        figure.draw_without_rendering()
        box = figure.texts[0].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        lengths = [len(line) for line in figure.texts[0].get_text().splitlines()]
    assert min(lengths) > max(lengths) / 3


def test_error_bars_end_at_the_limits_of_the_quantity() -> None:
    below, above = clip_errors([50, 98, 1, 100], [10, 5, 5, 0])
    assert below.tolist() == [10, 5, 1, 0]
    assert above.tolist() == [10, 2, 5, 0]
    assert np.isnan(clip_errors([np.nan], [0])).all()


def test_numbers_in_titles() -> None:
    assert percent(0.125) == "12 %"
    assert [signed(value) for value in (1.26, -0.96, -0.01)] == ["+1.3", "−1.0", "0.0"]
