"""What several figures share."""

from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor


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
) -> None:
    """Draw bars with error bars. Hatches keep groups apart without colours."""
    ax.bar(x, heights, width, hatch=hatch, label=label, edgecolor="white", lw=0.5)
    ax.errorbar(x, heights, errors, fmt="none", ecolor="#555555", lw=0.8)
