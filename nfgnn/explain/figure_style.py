"""Common style of all figures: colours, sizes, titles, and reproducible output files."""

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from nfgnn.data import REGISTRY
from nfgnn.files import atomic_write

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""The palette of Okabe and Ito, which colour-blind readers can tell apart."""
INK = "#010101"
"""Colour of text and axes. It looks black, and :func:`inline_svg` can find and replace it."""
MUTED = "#8c8c8c"
"""Grey of reference lines, error bars and bars for comparison, on white and on dark pages."""
FADED = 0.3
"""Opacity of values that rest on fewer than :data:`FEW_NODES` nodes."""
FEW_NODES = 10
FORMATS = ("png", "pdf", "svg")
Variant = Literal["light", "dark"]
_DARK_INK = "#e6edf3"
_HEADLINE_SIZE = 11
_INK_SETTINGS = (
    "text.color",
    "xtick.color",
    "ytick.color",
    "axes.labelcolor",
    "axes.edgecolor",
    "axes.titlecolor",
    "grid.color",
)
_RC: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.titlesize": _HEADLINE_SIZE,
    "figure.titleweight": "bold",
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
def canvas(variant: Variant = "light") -> Iterator[Any]:
    """Yield ``matplotlib.pyplot`` without a display and with the common style.

    Args:
        variant: the kind of page that the figure is made for. Figures for dark pages have light
            text and axes; save them with ``transparent=True``.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from cycler import cycler
    from matplotlib import pyplot

    ink = _DARK_INK if variant == "dark" else INK
    style = {**_RC, **dict.fromkeys(_INK_SETTINGS, ink), "axes.prop_cycle": cycler(color=COLOURS)}
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


def headline(figure: Any, finding: str) -> None:
    """Write the finding of a figure above its panels, wrapped to its width."""
    # An average character of the bold font is 0.6 times as wide as the font is high.
    width = int(figure.get_figwidth() * 72 / (0.6 * _HEADLINE_SIZE))
    lines = math.ceil(len(finding) / width)
    # Lines of about the same length, instead of a single word in the last one.
    text = textwrap.fill(finding, min(width, len(finding) // lines + 10))
    figure.suptitle(text, x=0.01, horizontalalignment="left")


def percent(share: float) -> str:
    """Return a share as a whole number of percent."""
    return f"{100 * share:.0f} %"


def signed(value: float) -> str:
    """Return a difference with one decimal and its sign; a rounded zero has none."""
    rounded = round(value, 1)
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0.0"


def clip_errors(
    means: ArrayLike, half: ArrayLike, low: float = 0.0, high: float = 100.0
) -> np.ndarray:
    """Return the parts of error bars below and above the means, ``[2, n]``.

    A confidence interval of Student's t may leave the range of the quantity, such as 0 to 100 %.
    The bars end there.
    """
    centres = np.asarray(means, dtype=float)
    lengths = np.asarray(half, dtype=float)
    below = np.minimum(lengths, centres - low)
    above = np.minimum(lengths, high - centres)
    return np.maximum([below, above], 0.0)


def title(name: str) -> str:
    """Return the usual spelling of a dataset's name, with dollar signs escaped for matplotlib."""
    if name in REGISTRY:
        return REGISTRY[name].title
    return plain(name)


def plain(text: str) -> str:
    """Escape dollar signs, which would otherwise start a formula in matplotlib."""
    return text.replace("$", r"\$")


def save(
    figure: Any,
    folder: Path,
    name: str,
    formats: Sequence[str] = FORMATS,
    transparent: bool = False,
) -> list[Path]:
    """Write ``name`` in every format atomically and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    _freeze_layout(figure)
    paths = []
    for extension in formats:
        path = folder / f"{name}.{extension}"
        image = io.BytesIO()
        with canvas():
            figure.savefig(
                image, format=extension, metadata=_METADATA[extension], transparent=transparent
            )
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
        # "none" would leave a placeholder, for which every file is drawn twice.
        figure.set_layout_engine(None)
