"""Contrast as WCAG defines it, and distances between colours, also for colour-blind readers."""

import numpy as np

_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]],
)
_WHITE = _XYZ.sum(1)
# Simulations of complete colour blindness for red and for green (Machado et al., 2009).
_VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    ),
    "deuteranopia": np.array(
        [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    ),
}


def linear_rgb(colour: str) -> np.ndarray:
    parts = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of WCAG, from 1 to 21."""
    low, high = sorted(float(_XYZ[1] @ linear_rgb(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def least_distance(colours: list[str], vision: str) -> float:
    """Return the smallest distance in CIELAB between two colours as a reader sees them."""
    seen = np.stack([linear_rgb(colour) for colour in colours]) @ _VISIONS[vision].T
    ratio = seen.clip(0, 1) @ _XYZ.T / _WHITE
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    x, y, z = f.T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)
    distance = np.linalg.norm(lab[:, None] - lab, axis=2)
    return float(distance[~np.eye(len(colours), dtype=bool)].min())
