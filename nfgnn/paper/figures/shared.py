"""What several figures share."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from nfgnn.explain import FADED, INK


def rounded(curves: Tensor) -> list[list[float]]:
    """Return curves with five decimals, which keeps the JSON files small."""
    return [[round(value, 5) for value in curve] for curve in curves.tolist()]


def draw_bars(
    ax: Any,
    x: Any,
    heights: ArrayLike,
    errors: ArrayLike,
    width: float,
    hatch: str,
    label: str,
    faded: ArrayLike,
) -> None:
    """Draw bars with error bars. Hatches keep groups apart without colours.

    Args:
        ax: the axes.
        x: places of the bars, ``[n]``.
        heights: ``[n]``, NaN for no bar.
        errors: lengths of the error bars, ``[n]`` or ``[2, n]``.
        width: of a bar.
        hatch: pattern of the bars.
        label: entry of the legend.
        faded: whether a bar rests on too few nodes, boolean ``[n]``.
    """
    bars = ax.bar(x, heights, width, hatch=hatch, label=label, edgecolor="white", lw=0.5)
    opacity = np.where(faded, FADED, 1.0)
    for bar, alpha in zip(bars, opacity):
        bar.set_alpha(alpha)
    colours = [(INK, alpha) for alpha in opacity]
    ax.errorbar(x, heights, errors, fmt="none", ecolor=colours, lw=0.8)
