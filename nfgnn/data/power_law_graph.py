r"""A generated graph of any size with classes and hubs, written to disk in pieces.

It stands in for citation graphs such as ogbn-papers100M. Node i belongs to class :math:`i \bmod C`.
The source of an edge is uniform. With probability ``homophily`` its target is a node of the same
class, else any node; in both cases the expected degree of the r-th node falls as
:math:`r^{-2/3}`, which gives power-law degrees with exponent 2.5. Features are class means with
noise of the same variance in every column.

All random numbers are hashes of their position. The files therefore depend neither on the size of
the pieces nor on the device that computes them, and any part can be computed again.
"""

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.files import atomic_file, atomic_write
from nfgnn.npyfile import NpyFile

_SPECIFICATION = "generated.json"
_PRIME = 2_654_435_761  # larger than any number of nodes, so multiplying by it is a bijection
_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # those of SplitMix64
_SPLIT = (0.78, 0.86)  # ends of the training and the validation nodes, as in ogbn-papers100M
_WRITERS = 4
Report = Callable[[str, int, int], None]
"""Receives progress: the array, the rows done, and all rows."""


@dataclass(frozen=True)
class PowerLawGraph:
    """A specification, of which every part can be computed by itself."""

    num_nodes: int
    num_edges: int
    """Listed edges. Repeated ones and self-loops count, until the graph is sorted."""
    num_features: int = 128
    num_classes: int = 172
    num_labelled: int = 0
    """Nodes with a label; 0 means all."""
    homophily: float = 0.5
    signal: float = 0.15
    """Standard deviation of the class means, relative to that of the noise."""
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = (self.num_edges, self.num_features, self.num_classes)
        if min(sizes) < 1 or not self.num_classes <= self.num_nodes < 2**31:
            raise UserError(
                "a generated graph needs edges, features, classes, and between num_classes and "
                f"2**31 - 1 nodes; got {self}"
            )
        if not 0 <= self.num_labelled <= self.num_nodes or not 0 <= self.homophily <= 1:
            raise UserError(
                f"num_labelled must be at most num_nodes, and homophily a probability; got {self}"
            )

    def edges(self, first: int, last: int, device: torch.device) -> Tensor:
        """Return edges ``first`` to ``last``, int32 ``[last - first, 2]``."""
        n = self.num_nodes
        classes = self.num_classes
        number = torch.arange(first, last, device=device)
        drawn = self._hash(number, "source")
        source = (_shift(drawn, 32) * n) >> 32
        same_class = (drawn & (2**32 - 1)) < round(self.homophily * 2**32)
        uniform = _shift(self._hash(number, "target"), 11).double() * 2.0**-53
        skewed = uniform * uniform * uniform
        any_node = _scattered(_rank(skewed, n), n)
        own = source % classes
        size = torch.div(n - 1 - own, classes, rounding_mode="floor") + 1
        member = _scattered(_rank(skewed, size), size) * classes + own
        target = torch.where(same_class, member, any_node)
        return torch.stack([source, target], dim=1).int()

    def features(self, first: int, last: int, device: torch.device) -> Tensor:
        """Return the features of nodes ``first`` to ``last`` in float16."""
        f = self.num_features
        place = torch.arange(first * f, last * f, device=device)
        noise = _bell(self._hash(place, "noise")).view(-1, f)
        own = torch.arange(first, last, device=device) % self.num_classes
        # Sums of integers are exact, so no device rounds differently.
        return ((noise + self._means.to(device)[own]).float() * 2.0**-15).half()

    def labels(self) -> np.ndarray:
        """Return the class of every node, -1 for nodes without a label."""
        node = np.arange(self.num_nodes)
        return np.where(self._label_rank() < self._labelled, node % self.num_classes, -1)

    def masks(self) -> dict[str, np.ndarray]:
        """Return a split of the labelled nodes in random parts."""
        share = self._label_rank() / self._labelled
        bounds = (0.0, *_SPLIT, 1.0)
        names = ("train_mask", "val_mask", "test_mask")
        return {
            name: (share >= low) & (share < high)
            for name, low, high in zip(names, bounds, bounds[1:])
        }

    def write(
        self,
        folder: str | Path,
        device: str | torch.device = "cpu",
        piece_bytes: int = 2**26,
        report: Report = lambda name, done, total: None,
    ) -> None:
        """Write a folder that :func:`nfgnn.data.open_large` opens.

        A file gets its name when it is complete. The same call resumes after an interruption of the
        process. After a crash of the machine, write the graph to a new folder: edges and features
        may not have reached the disk.

        Args:
            folder: where to write ``edges.npy``, ``node_features.npy``, ``node_labels.npy`` and
                the masks.
            device: where to compute them.
            piece_bytes: size of the pieces that are computed and written at a time.
            report: receives progress.
        """
        folder = Path(folder)
        device = torch.device(device)
        self._claim(folder)
        small = {"node_labels": self.labels(), **self.masks()}
        for name, array in small.items():
            with atomic_file(folder / f"{name}.npy") as partial, partial.open("wb") as file:
                np.save(file, array)
        writer = _ArrayWriter(folder, device, piece_bytes, report)
        writer.write("edges", np.int32, (self.num_edges, 2), self.edges)
        shape = (self.num_nodes, self.num_features)
        writer.write("node_features", np.float16, shape, self.features)

    def _claim(self, folder: Path) -> None:
        """Record the specification, and refuse the files of another one."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _SPECIFICATION
        text = json.dumps(asdict(self))
        if not path.is_file() and any(folder.iterdir()):
            raise UserError(f"{folder}: is not empty; choose another folder")
        if path.is_file() and path.read_text(encoding="utf-8") != text:
            raise UserError(f"{folder}: holds another generated graph; choose another folder")
        atomic_write(path, text)

    @property
    def _labelled(self) -> int:
        return self.num_labelled or self.num_nodes

    def _label_rank(self) -> np.ndarray:
        """Return the place of every node in the random order in which nodes get labels."""
        node = np.arange(self.num_nodes)
        shift = self._key("label") % self.num_nodes
        rank: np.ndarray = (node * _PRIME + shift) % self.num_nodes
        return rank

    @cached_property
    def _means(self) -> Tensor:
        place = torch.arange(self.num_classes * self.num_features)
        drawn = _bell(self._hash(place, "means")).double()
        return (self.signal * drawn).round().long().view(self.num_classes, -1)

    def _hash(self, place: Tensor, purpose: str) -> Tensor:
        """Return 64 random bits for every place: the output function of SplitMix64."""
        golden, first, second = (_signed(factor) for factor in _MIX)
        z = place * golden + _signed(self._key(purpose))
        z = (z ^ _shift(z, 30)) * first
        z = (z ^ _shift(z, 27)) * second
        return z ^ _shift(z, 31)

    def _key(self, purpose: str) -> int:
        parts = [self.seed, *purpose.encode()]
        return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])


class _ArrayWriter:
    """Write arrays in pieces: some threads write while the device computes the next ones."""

    def __init__(
        self, folder: Path, device: torch.device, piece_bytes: int, report: Report
    ) -> None:
        self.folder = folder
        self.device = device
        self.piece_bytes = piece_bytes
        self.report = report

    def write(
        self,
        name: str,
        dtype: type[np.generic],
        shape: tuple[int, int],
        compute: Callable[[int, int, torch.device], Tensor],
    ) -> None:
        final = self.folder / f"{name}.npy"
        if final.is_file():
            return
        rows = max(1, self.piece_bytes // (np.dtype(dtype).itemsize * shape[1]))
        waiting: list[Future[None]] = []
        with (
            # Waiting for the disk would take as long as writing; the array can be written again.
            atomic_file(final, sync=False) as partial,
            NpyFile.create(partial, dtype, shape) as file,
            ThreadPoolExecutor(_WRITERS) as pool,
        ):
            for first in range(0, shape[0], rows):
                last = min(first + rows, shape[0])
                piece = compute(first, last, self.device).cpu().numpy()
                waiting.append(pool.submit(file.write, first, piece))
                # Pieces that wait for the disk must not fill the memory.
                if len(waiting) > 2 * _WRITERS:
                    waiting.pop(0).result()
                self.report(name, last, shape[0])
            for future in waiting:
                future.result()


def _signed(number: int) -> int:
    """Return 64 bits as the number that int64 holds."""
    return number - 2**64 if number >= 2**63 else number


def _shift(values: Tensor, bits: int) -> Tensor:
    """Shift to the right and fill with zeros, which ``>>`` does not for negative numbers."""
    filled: Tensor = (values >> bits) & (2 ** (64 - bits) - 1)
    return filled


def _bell(bits: Tensor) -> Tensor:
    """Return the centred sum of the four 16-bit parts: nearly normal, and an integer."""
    low = 2**16 - 1
    total = (bits & low) + ((bits >> 16) & low) + ((bits >> 32) & low) + ((bits >> 48) & low)
    return total - 2 * low


def _rank(uniform: Tensor, size: int | Tensor) -> Tensor:
    """Return a rank below ``size`` for numbers in [0, 1)."""
    # Rounding may give ``size`` itself.
    largest = torch.as_tensor(size - 1, device=uniform.device)
    return torch.minimum((uniform * size).long(), largest)


def _scattered(rank: Tensor, size: int | Tensor) -> Tensor:
    """Return a permutation of the ranks, so that hubs do not lie together."""
    return (rank * _PRIME) % size
