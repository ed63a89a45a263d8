"""One look for all figures: legible in print, distinct for colour-blind readers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, strongest contrasts first."""

_RC: dict[Any, Any] = {
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


@contextmanager
def figure_style() -> Iterator[Any]:
    """``matplotlib.pyplot`` without a display, under the common style."""
    import matplotlib as mpl

    mpl.use("Agg")
    from cycler import cycler
    from matplotlib import pyplot

    with mpl.rc_context({**_RC, "axes.prop_cycle": cycler(color=COLOURS)}):
        yield pyplot
        pyplot.close("all")
