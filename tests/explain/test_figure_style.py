"""Files and elements of figures."""

from pathlib import Path
from typing import Any

from nfgnn.explain.figure_style import FORMATS, INK, canvas, inline_svg, panels, save, title


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
