"""What a store says about itself."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch

from nfgnn.errors import UserError
from nfgnn.npyfile import disk_full

FORMAT = 1
FILE = "manifest.json"
DTYPES: dict[str, tuple[torch.dtype, type[np.generic]]] = {
    "float32": (torch.float32, np.float32),
    "bfloat16": (torch.bfloat16, np.uint16),
    "float16": (torch.float16, np.float16),
}
"""Precision of a store → the torch type, and the numpy type it lies on disk as (numpy has no bfloat16)."""


@dataclass(frozen=True)
class Manifest:
    """Everything that is needed to use a store, and to tell whether it is whole.

    A model that is trained on the terms is defined by ``basis``, ``K``, ``self_loops``, ``lambda_max`` and the scaling
    of the features: new nodes are served with the same ones.
    """

    dataset: str
    num_nodes: int
    """Nodes of the graph; rows are stored for ``num_rows`` of them."""
    num_rows: int
    num_features: int
    num_classes: int
    K: int
    basis: str
    self_loops: bool
    lambda_max: float
    features: str
    """How the features were scaled: a name of :data:`nfgnn.data.SCALINGS`, never ``auto``."""
    feature_mean: list[float] | None
    feature_deviation: list[float] | None
    dtype: str
    class_names: list[str]
    metric: str
    masks: list[str]
    """Which of ``train_mask``, ``val_mask``, ``test_mask`` came with the data."""
    source: str
    """Where the graph was read from."""
    fingerprint: str
    """Of the graph and of the settings that made the terms."""
    block_rows: int
    """Rows under one checksum in the list of ``terms.npy``."""
    checksums: dict[str, list[str]]
    """File → the checksums of its blocks (of the array's bytes, header left out)."""
    format: int = FORMAT

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the terms: rows, K + 1, features."""
        return self.num_rows, self.K + 1, self.num_features

    def save(self, folder: Path) -> None:
        """Write the manifest, last of all: a folder that has one is whole."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        path = folder / FILE
        if not path.is_file():
            begun = (folder / "work").is_dir()
            raise UserError(
                f"{folder} is an unfinished store: run the same `nfgnn precompute` command again to finish it"
                if begun
                else f"{folder} is not a store: it has no {FILE}; `nfgnn precompute DATASET --out {folder}` makes one"
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") != FORMAT:
                raise UserError(
                    f"{path}: the store is of format {content.get('format')}, this version reads format {FORMAT}: "
                    "precompute it again"
                )
            return cls(**{field.name: content[field.name] for field in fields(cls)})
        except (
            json.JSONDecodeError,
            UnicodeDecodeError,
            AttributeError,
            KeyError,
            TypeError,
        ) as error:
            raise UserError(
                f"{path}: is damaged ({type(error).__name__}: {error}); precompute it again"
            ) from None


def write_json(path: Path, content: object, wait: bool = True) -> None:
    """A JSON file that is there whole or not at all; on the disk when this returns, unless told not to wait."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.flush()
            if wait:
                os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise disk_full(error, path) from None


def checksum(parts: Iterable[bytes | memoryview]) -> str:
    """SHA-256 of bytes that come in pieces."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
