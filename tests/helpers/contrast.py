"""Contrast of colours by the Web Content Accessibility Guidelines (WCAG) 2.2."""

import re

TEXT = 4.5
"""Least ratio of text and its background (level AA)."""
GRAPHIC = 3.0
"""Least ratio of the parts of a graphic and their background, and of large text."""
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{((?:[^{}]|\{[^{}]*\})*)\}")
_COLOUR = re.compile(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})\b")


def contrast_ratio(first: str, second: str) -> float:
    """Return the contrast of two colours such as ``#1b1f24``, from 1 to 21."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def css_colours(css: str, scheme: str) -> dict[str, str]:
    """Return the custom properties of a style sheet that are colours.

    Args:
        css: the text of the style sheet, with one media query for the dark scheme at most.
        scheme: ``"light"`` or ``"dark"``.
    """
    colours = dict(_COLOUR.findall(_DARK.sub("", css)))
    if scheme == "dark":
        for block in _DARK.findall(css):
            colours |= dict(_COLOUR.findall(block))
    return colours


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 (black) to 1 (white)."""
    linear = []
    for start in (1, 3, 5):
        value = int(colour[start : start + 2], 16) / 255
        linear.append(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
    red, green, blue = linear
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
