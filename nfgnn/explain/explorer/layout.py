r"""Places of the nodes on the map: by their filters, or by their edges.

**Filters**: the first two principal components of Ψ, so that nodes with similar filters are close.

**Edges**: a force-directed layout. Edges attract their ends in proportion to the distance, and all
nodes repel each other,

.. math:: F_i = \sum_{j \sim i} \frac{x_j - x_i}{d_i + 1}
          + c \sum_j m_j \frac{x_i - x_j}{ε + |x_i - x_j|^2} - g\,x_i, \qquad m_j = d_j + 1,

with degrees d and a weak force g towards the centre, which keeps components together. The
attraction is one sparse product. The repulsion is a convolution of the mass with a fixed kernel,
computed by FFT on a grid, so a step costs O(n + m) instead of O(n²).
"""

from collections.abc import Callable

import numpy as np
from scipy import fft, ndimage, sparse

from nfgnn.analysis import adjacency_matrix

OnStep = Callable[[int, int], None]
"""Called with the number of steps done and their total."""
_GRID = 128
_STEPS = 150
_REPULSION = 0.2
_CENTRE = 0.05


def principal_components(psi: np.ndarray) -> tuple[np.ndarray, tuple[float, float]] | None:
    """Return coordinates ``[n, 2]`` and their shares of variance, or ``None`` for equal rows."""
    centred = psi.astype(np.float64) - psi.mean(0, dtype=np.float64)
    # The covariance is small, unlike Ψ, so its eigenvectors are cheaper than an SVD of Ψ.
    variance, axes = np.linalg.eigh(centred.T @ centred / max(len(psi), 1))
    scale = max(1.0, float(np.square(psi, dtype=np.float64).mean()))
    if psi.shape[1] < 2 or variance[-1] <= 1e-12 * scale:
        return None
    axes = axes[:, :-3:-1]
    # The largest entry of an axis is positive, so that the signs do not depend on the solver.
    largest = np.abs(axes).argmax(0)
    axes = axes * np.sign(axes[largest, np.arange(2)])
    variance = variance.clip(0)
    first, second = variance[:-3:-1] / variance.sum()
    return centred @ axes, (float(first), float(second))


def force_layout(
    edge_index: np.ndarray,
    n: int,
    seed: int = 0,
    steps: int = _STEPS,
    on_step: OnStep | None = None,
) -> np.ndarray:
    """Return coordinates ``[n, 2]`` of the nodes of a graph with edges in both directions."""
    adjacency = adjacency_matrix(edge_index, n, np.float32)
    degree = np.diff(adjacency.indptr).astype(np.float32)
    mean = sparse.diags_array(1 / (degree + 1)) @ adjacency
    stay = (degree / (degree + 1))[:, None]
    mass = (degree + 1) / (degree + 1).mean()
    place = _initial_layout(mean, n, seed)
    for step in range(steps):
        attraction = mean @ place - stay * place
        force = attraction + _REPULSION * _repulsion(place, mass) - _CENTRE * place
        length = np.linalg.norm(force, axis=1, keepdims=True)
        # Steps get shorter until the layout comes to rest.
        temperature = 0.6 * (1 - step / steps)
        scale = np.minimum(1, temperature / np.maximum(length, 1e-9))
        place = place + force * scale
        if on_step:
            on_step(step + 1, steps)
    return place


def _initial_layout(mean: sparse.csr_array, n: int, seed: int, rounds: int = 30) -> np.ndarray:
    """Average random coordinates over neighbours repeatedly: roughly the low graph frequencies."""
    place = np.random.default_rng(seed).standard_normal((n, 2)).astype(np.float32)
    for _ in range(rounds):
        place = place + mean @ place
        place -= place.mean(0)
        if n > 1:
            place, _ = np.linalg.qr(place)
        place = place * np.float32(np.sqrt(n))
    return np.asarray(place, dtype=np.float32)


def _repulsion(place: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the repulsion of all nodes on every node, scaled to keep the map evenly dense."""
    n = len(place)
    low = place.min(0)
    extent = float((place.max(0) - low).max())
    cell = max(extent, 1e-6) / (_GRID - 1)
    position = (place - low) / cell
    # The doubled grid keeps the convolution from wrapping around.
    spectrum = fft.rfft2(_grid_density(position, mass), (2 * _GRID, 2 * _GRID))
    values = []
    for kernel in _kernels(cell):
        field = fft.irfft2(spectrum * kernel)[:_GRID, :_GRID]
        values.append(ndimage.map_coordinates(field, position.T, order=1, mode="nearest"))
    scaled = np.stack(values, 1) / n * float(np.sqrt(n))
    return scaled.astype(np.float32)


def _grid_density(position: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Distribute the mass of every node among the four corners of its cell of the grid."""
    corner = np.minimum(position.astype(np.int64), _GRID - 2)
    x, y = (position - corner).T
    density = np.zeros(_GRID * _GRID)
    # At the rim x and y may exceed 1 by a rounding error, and masses must not be negative.
    for dx, x_share in enumerate((np.abs(1 - x), x)):
        for dy, y_share in enumerate((np.abs(1 - y), y)):
            index = (corner[:, 0] + dx) * _GRID + corner[:, 1] + dy
            density += np.bincount(index, x_share * y_share * mass, minlength=_GRID * _GRID)
    return density.reshape(_GRID, _GRID)


def _kernels(cell: float) -> list[np.ndarray]:
    """Return the FFT of z / (ε + |z|²) on the doubled grid, one for each direction."""
    steps = fft.fftfreq(2 * _GRID, 1 / (2 * _GRID)) * cell
    x, y = np.meshgrid(steps, steps, indexing="ij")
    square = x * x + y * y + cell * cell
    return [fft.rfft2(x / square), fft.rfft2(y / square)]
