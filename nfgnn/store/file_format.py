"""How values are stored on disk: number types, checksums, scalings, JSON files."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nfgnn.data import FeatureScaling
from nfgnn.files import atomic_file
from nfgnn.npyfile import NpyFile, as_bytes, disk_full

_CHECKSUM_BYTES = 2**26  # of terms under one checksum, approximately
_READ_BYTES = 2**22  # of a file that are hashed at a time
_SPANS = 8  # of a block of rows that are sampled
_SPAN_BYTES = 2**14


@dataclass(frozen=True)
class StoredType:
    """A number type of the terms: in torch, and in the ``.npy`` file."""

    torch: torch.dtype
    numpy: type[np.generic]

    @property
    def itemsize(self) -> int:
        return np.dtype(self.numpy).itemsize

    def encode(self, x: Tensor) -> np.ndarray:
        """Round to nearest and return the array that is stored."""
        rounded = x.detach().cpu().to(self.torch)
        if self.torch == torch.bfloat16:
            rounded = rounded.view(torch.int16)
        array: np.ndarray = rounded.numpy()
        return array.view(self.numpy)

    def decode(self, array: np.ndarray) -> Tensor:
        """Return stored values as float32."""
        if self.torch == torch.bfloat16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).float()
        return torch.from_numpy(array).float()


DTYPES = {
    "float32": StoredType(torch.float32, np.float32),
    "bfloat16": StoredType(torch.bfloat16, np.uint16),  # NumPy has no bfloat16
    "float16": StoredType(torch.float16, np.float16),
}


def rows_per_checksum(K: int, num_features: int, dtype: str) -> int:
    """Return how many rows of ``terms.npy`` share a checksum: about 64 MiB."""
    row_bytes = (K + 1) * num_features * DTYPES[dtype].itemsize
    return max(1, _CHECKSUM_BYTES // max(1, row_bytes))


def checksum(array: np.ndarray) -> str:
    """Return the SHA-256 checksum of a contiguous array."""
    return hashlib.sha256(as_bytes(array)).hexdigest()


def sample(rows: np.ndarray) -> np.ndarray:
    """Return some values of a contiguous array, from its first to its last ones.

    They are few consecutive ranges, so that reading them from disk is fast.
    """
    values = rows.reshape(-1)
    return np.concatenate([values[span] for span in sample_spans(values)])


def sample_spans(values: np.ndarray) -> list[slice]:
    """Return the ranges of a flat array that :func:`sample` reads."""
    length = _SPAN_BYTES // values.itemsize
    rest = len(values) - length
    if len(values) <= _SPANS * length:
        return [slice(0, len(values))]
    starts = [i * rest // (_SPANS - 1) for i in range(_SPANS)]
    return [slice(start, start + length) for start in starts]


def file_checksums(path: Path, block_rows: int | None = None) -> list[str]:
    """Return the checksums of an ``.npy`` file, one for each ``block_rows`` rows (default: all)."""
    with NpyFile.open(path) as file:
        step = block_rows or max(1, len(file))
        starts = range(0, len(file), step) or [0]
        return [_hash_rows(file, first, min(first + step, len(file))) for first in starts]


def _hash_rows(file: NpyFile, first: int, last: int) -> str:
    row_bytes = file.dtype.itemsize * int(np.prod(file.shape[1:]))
    step = max(1, _READ_BYTES // max(1, row_bytes))
    digest = hashlib.sha256()
    for start in range(first, last, step):
        digest.update(as_bytes(file.read(start, min(start + step, last))))
    return digest.hexdigest()


def as_list(values: Tensor | None) -> list[float] | None:
    """Return a tensor as a list for JSON."""
    return None if values is None else values.tolist()


def make_scaling(
    how: str,
    mean: list[float] | None,
    deviation: list[float] | None,
    further: Mapping[str, list[Any]] | None = None,
) -> FeatureScaling:
    """Return a scaling from the values of a JSON file."""
    values = {"mean": mean, "deviation": deviation, **(further or {})}
    tensors = {key: torch.tensor(value) for key, value in values.items() if value is not None}
    return FeatureScaling.from_tensors(how, tensors)


def write_json(path: Path, content: object, sync: bool = True) -> None:
    """Write a JSON file atomically. With ``sync``, wait until it is on disk."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    try:
        with atomic_file(path, sync) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise disk_full(error, path) from None
