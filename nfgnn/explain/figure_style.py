"""The pen of all figures: one ink that a web page can recolour, and files that are written whole."""

import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nfgnn.explain.page_style import figure_style

INK = "#010101"
"""Text and axes: black to the eye, and found again in an SVG, where it becomes the colour of the surrounding text."""
FORMATS = ("png", "pdf", "svg")
_RC: dict[Any, Any] = {
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick", "grid")},
    **{f"axes.{part}color": INK for part in ("label", "edge", "title")},
    "axes.axisbelow": True,
    "svg.hashsalt": "nfgnn",
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
    "savefig.bbox": None,  # the layout is fitted already
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Date": None, "Creator": None},
}


@contextmanager
def canvas() -> Iterator[Any]:
    """``matplotlib.pyplot`` under the common style; the same figure gives the same bytes."""
    import matplotlib as mpl

    with figure_style() as plt, warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing"
        )  # a name in a script that the font lacks is shown as boxes
        mpl.rcParams.update(_RC)
        yield plt


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write ``name.png``, ``.pdf`` and ``.svg``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    _fit(figure)
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    for path, ending in zip(paths, FORMATS):
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        with canvas():
            figure.savefig(partial, format=ending, metadata=_METADATA[ending])
        partial.replace(path)
    return paths


def inline_svg(figure: Any, label: str) -> str:
    """The figure as an ``<svg>`` element without background, in the colour of the text around it."""
    import matplotlib as mpl

    text = io.StringIO()
    _fit(figure)
    with canvas():
        mpl.rcParams["svg.fonttype"] = "none"
        figure.savefig(text, format="svg", transparent=True, metadata=_METADATA["svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(
        r'<g id="[^"]*">', "<g>", svg
    )  # names are unique in a page, and there are several figures
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _fit(figure: Any) -> None:
    """Lay the figure out once, not once for every file."""
    if figure.get_layout_engine() is not None:
        with canvas():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")


def panels(
    plt: Any, count: int, rows: int = 1, width: float = 2.6, height: float = 2.4, **options: Any
) -> Any:
    """A figure with a grid of ``rows`` × ``count`` axes."""
    return plt.subplots(
        rows,
        count,
        figsize=(max(width * count, 3.4), height * rows),
        squeeze=False,
        layout="constrained",
        **options,
    )


def title(name: str) -> str:
    """The usual spelling of a dataset's name; a dollar sign in it is no formula."""
    from nfgnn.data.registry import REGISTRY

    return REGISTRY[name].title if name in REGISTRY else name.replace("$", r"\$")
