"""Common style of all figures: colours, sizes, labels, and reproducible output files."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nfgnn.data import REGISTRY
from nfgnn.files import atomic_write

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, which colour-blind readers can tell apart."""
INK = "#010101"
"""Colour of text and axes. It looks black, and :func:`inline_svg` can find and replace it."""
FORMATS = ("png", "pdf", "svg")
_RC: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 9,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # Reproducible SVG ids, and PDF text that stays text.
    "svg.hashsalt": "nfgnn",
    "pdf.fonttype": 42,
}
# No dates or versions, so that the same figure gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Date": None, "Creator": None},
}


@contextmanager
def canvas() -> Iterator[Any]:
    """Yield ``matplotlib.pyplot`` without a display and with the common style."""
    import matplotlib as mpl

    mpl.use("Agg")
    from cycler import cycler
    from matplotlib import pyplot

    style = {**_RC, "axes.prop_cycle": cycler(color=COLOURS)}
    with mpl.rc_context(style), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield pyplot
        pyplot.close("all")


def panels(
    plt: Any, count: int, rows: int = 1, width: float = 2.6, height: float = 2.4, **options: Any
) -> Any:
    """Return a figure with a grid of ``rows`` × ``count`` axes of ``width`` × ``height`` inches."""
    size = (max(width * count, 3.4), height * rows)
    return plt.subplots(rows, count, figsize=size, squeeze=False, layout="constrained", **options)


def title(name: str) -> str:
    """Return the usual spelling of a dataset's name, with dollar signs escaped for matplotlib."""
    if name in REGISTRY:
        return REGISTRY[name].title
    return plain(name)


def plain(text: str) -> str:
    """Return a text that matplotlib draws as it is: dollar signs start a formula otherwise."""
    return text.replace("$", r"\$")


def save(figure: Any, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write ``name`` in every format atomically and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    _freeze_layout(figure)
    paths = []
    for extension in formats:
        path = folder / f"{name}.{extension}"
        image = io.BytesIO()
        with canvas():
            figure.savefig(image, format=extension, metadata=_METADATA[extension])
        atomic_write(path, image.getvalue())
        paths.append(path)
    return paths


def inline_svg(figure: Any, label: str) -> str:
    """Return the figure as a transparent ``<svg>`` element in the text colour of its page."""
    import matplotlib as mpl

    text = io.StringIO()
    _freeze_layout(figure)
    with canvas():
        mpl.rcParams["svg.fonttype"] = "none"
        figure.savefig(text, format="svg", transparent=True, metadata=_METADATA["svg"])
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    # Ids of groups would repeat on a page with several figures, and nothing refers to them.
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _freeze_layout(figure: Any) -> None:
    """Compute the layout once instead of once per output file."""
    if figure.get_layout_engine() is not None:
        with canvas():
            figure.draw_without_rendering()
        figure.set_layout_engine("none")
