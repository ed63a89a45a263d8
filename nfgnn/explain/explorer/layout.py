r"""Where a node stands on the map: by its filter, or by its links.

**Filters**: the first two principal components of Ψ, so nodes that learned similar filters are close.

**Links**: a force layout. Every link pulls its ends together in proportion to their distance, every two nodes push each
other apart,

.. math:: F_i = \sum_{j \sim i} \frac{x_j - x_i}{d_i + 1} + c \sum_j m_j \frac{x_i - x_j}{ε + |x_i - x_j|^2} - g\,x_i,
          \qquad m_j = d_j + 1,

with degrees d and a weak pull g to the centre that keeps components together. The pull is one sparse product. The push
is a convolution of the mass with a fixed kernel, taken by FFT on a grid, so a step costs O(n + m) and not O(n²).
"""

from collections.abc import Callable

import numpy as np
from scipy import fft, ndimage, sparse

OnStep = Callable[[int, int], None]
"""Told how many steps of how many are done."""
_GRID = 128
_STEPS = 150
_PUSH, _PULL_TO_CENTRE = 0.2, 0.05


def principal_components(psi: np.ndarray) -> tuple[np.ndarray, list[float]] | None:
    """Coordinates ``[n, 2]`` and the shares of variance they show; ``None`` where all rows are (nearly) equal."""
    centred = psi.astype(np.float64) - psi.mean(0, dtype=np.float64)
    variance, axes = np.linalg.eigh(centred.T @ centred / max(len(psi), 1))
    if psi.shape[1] < 2 or variance[-1] <= 1e-12 * max(
        1.0, float(np.square(psi, dtype=np.float64).mean())
    ):
        return None
    axes = axes[:, :-3:-1]
    axes = axes * np.sign(
        axes[np.abs(axes).argmax(0), np.arange(2)]
    )  # a sign that does not depend on the solver
    share = np.clip(variance[:-3:-1], 0, None) / variance.clip(0).sum()
    return centred @ axes, [float(part) for part in share]


def force_layout(
    edge_index: np.ndarray,
    n: int,
    seed: int = 0,
    steps: int = _STEPS,
    on_step: OnStep | None = None,
) -> np.ndarray:
    """Coordinates ``[n, 2]`` of the nodes of a graph given by its links in both directions."""
    links = sparse.csr_array(
        (np.ones(edge_index.shape[1], np.float32), (edge_index[0], edge_index[1])), (n, n)
    )
    degree = np.diff(links.indptr).astype(np.float32)
    mean = sparse.diags_array(1 / (degree + 1)) @ links
    stay = (degree / (degree + 1))[:, None]
    mass = (degree + 1) / (degree + 1).mean()
    place = _smooth_start(mean, n, seed)
    for step in range(steps):
        pull = mean @ place - stay * place
        force = pull + _PUSH * _push(place, mass) - _PULL_TO_CENTRE * place
        length = np.linalg.norm(force, axis=1, keepdims=True)
        temperature = 0.6 * (1 - step / steps)
        place = place + force * np.minimum(1, temperature / np.maximum(length, 1e-9))
        if on_step:
            on_step(step + 1, steps)
    return _rein_in(place)


def _rein_in(place: np.ndarray) -> np.ndarray:
    """Nodes that hang on nothing drift off: bring them to the rim, or the map would be empty for their sake."""
    low, high = np.quantile(place, (0.01, 0.99), axis=0)
    air = 0.1 * (high - low).max()
    return np.asarray(np.clip(place, low - air, high + air))


def _smooth_start(mean: sparse.csr_array, n: int, seed: int, rounds: int = 30) -> np.ndarray:
    """Random coordinates, averaged over neighbours again and again: the low graph frequencies, roughly."""
    place = np.random.default_rng(seed).standard_normal((n, 2)).astype(np.float32)
    for _ in range(rounds):
        place = place + mean @ place
        place -= place.mean(0)
        place = (np.linalg.qr(place)[0] if n > 1 else place) * np.float32(np.sqrt(n))
    return np.asarray(place, dtype=np.float32)


def _push(place: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The push of all nodes on every node, divided by their number."""
    low, high = place.min(0), place.max(0)
    cell = max(float((high - low).max()), 1e-6) / (_GRID - 1)
    at = (place - low) / cell  # in cells; a node shares its mass among the four corners around it
    corner = np.minimum(at.astype(np.int64), _GRID - 2)
    inside = at - corner
    density = np.zeros(_GRID * _GRID)
    for dx in (0, 1):
        for dy in (0, 1):
            weight = np.abs(1 - dx - inside[:, 0]) * np.abs(1 - dy - inside[:, 1]) * mass
            index = (corner[:, 0] + dx) * _GRID + corner[:, 1] + dy
            density += np.bincount(index, weight, minlength=_GRID * _GRID)
    spectrum = fft.rfft2(density.reshape(_GRID, _GRID), (2 * _GRID, 2 * _GRID))
    push = [fft.irfft2(spectrum * kernel)[:_GRID, :_GRID] for kernel in _kernels(cell)]
    values = [ndimage.map_coordinates(field, at.T, order=1, mode="nearest") for field in push]
    return (np.stack(values, 1) / len(place) * _spread(len(place))).astype(np.float32)


def _spread(n: int) -> float:
    """Keeps the map of a large graph as dense as that of a small one."""
    return float(np.sqrt(n))


def _kernels(cell: float) -> list[np.ndarray]:
    """FFT of z / (ε + |z|²) on the doubled grid, one for each direction."""
    steps = fft.fftfreq(2 * _GRID, 1 / (2 * _GRID)) * cell
    x, y = np.meshgrid(steps, steps, indexing="ij")
    square = x * x + y * y + cell * cell
    return [fft.rfft2(x / square), fft.rfft2(y / square)]
