"""Validation of the arguments of layers and networks."""

from numbers import Integral, Real
from typing import Any

from nfgnn.errors import UserError


def check_counts(least: int = 1, **counts: Any) -> None:
    """Refuse arguments that are not whole numbers of at least ``least``."""
    for name, value in counts.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < least:
            raise UserError(
                f"{name} = {value!r} is not valid: pass a whole number of at least {least}"
            )


def check_rates(**rates: Any) -> None:
    """Refuse dropout rates that are not numbers of at least 0 and below 1."""
    for name, value in rates.items():
        if not isinstance(value, Real) or not 0 <= float(value) < 1:
            raise UserError(
                f"{name} = {value!r} is not valid: pass a number from 0 to 1 (1 excluded)"
            )


def check_heads(heads: Any, **channels: int) -> None:
    """Refuse a number of heads that does not divide the number of channels.

    Args:
        heads: the number of heads.
        channels: one number of channels, by the name of its argument.
    """
    check_counts(heads=heads)
    for name, width in channels.items():
        if width % heads:
            divisors = [d for d in range(1, width + 1) if width % d == 0]
            nearest = min(divisors, key=lambda divisor: abs(divisor - heads))
            raise UserError(
                f"heads = {heads} does not divide {name} = {width}: choose a divisor, such as "
                f"heads = {nearest}"
            )
