"""How values are stored on disk: number types, checksums, scalings, JSON files."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.data import FeatureScaling
from nfgnn.npyfile import NpyFile, as_bytes, disk_full

_CHECKSUM_BYTES = 2**26  # of terms under one checksum, approximately
_READ_BYTES = 2**22  # of a file that are hashed at a time


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
    how: str, mean: list[float] | None, deviation: list[float] | None
) -> FeatureScaling:
    """Return a scaling from the values of a JSON file."""
    if mean is None or deviation is None:
        return FeatureScaling(how)
    return FeatureScaling(how, torch.tensor(mean), torch.tensor(deviation))


def write_json(path: Path, content: object, sync: bool = True) -> None:
    """Write a JSON file atomically. With ``sync``, wait until it is on disk."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise disk_full(error, path) from None
