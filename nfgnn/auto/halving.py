"""Successive halving in time: a slice of time for all configurations, more for the better half.

Cheap configurations are trained to the end in their first slice. Expensive ones have to be among
the better half with the weights trained so far to be trained longer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

GROWTH = 4.0
"""Largest factor between the slices of two rounds."""
LEAST_GROWTH = 2.0
"""A training starts again, so a slice that is not longer than this would be wasted."""
LEAST_FINISHED = 3
"""A round of slices leaves enough time to train so many of the best configurations to the end."""


@dataclass(frozen=True)
class Round:
    """The next round: how many of the ranked configurations are trained, and how long."""

    keep: int
    seconds: float | None
    """Time slice of a training; ``None`` trains to the end, and no round follows."""


def next_round(costs: Sequence[float], last: float, available: float) -> Round:
    """Choose the next round.

    Configurations are trained to the end if there is time for at least half of them. Otherwise the
    better half gets a longer slice, if there is time for that beside what it takes to train the
    best ones to the end. Otherwise as many of the best as possible are trained to the end.

    Args:
        costs: expected seconds to train each unfinished configuration to the end, the best first.
        last: time slice of the last round.
        available: seconds that are left, summed over the processes.
    """
    half = math.ceil(len(costs) / 2)
    affordable = 0
    total = 0.0
    for cost in costs:
        total += cost
        if total > available:
            break
        affordable += 1
    if affordable >= half:
        return Round(affordable, None)
    spare = available
    if affordable:
        spare -= sum(costs[:LEAST_FINISHED])
    seconds = min(GROWTH * last, spare / half)
    if seconds >= LEAST_GROWTH * last:
        return Round(half, seconds)
    if affordable:
        return Round(affordable, None)
    return Round(int(available // (LEAST_GROWTH * last)), None)
