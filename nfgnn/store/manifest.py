"""``manifest.json``: the description of a store."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from nfgnn.errors import UserError
from nfgnn.store.file_format import write_json

FORMAT = 1
FILE = "manifest.json"
WORK = "work"
"""Folder inside a store that exists only until the store is complete."""


@dataclass(frozen=True)
class Manifest:
    """Everything that is needed to use a store and to verify its files.

    ``basis``, ``K``, ``self_loops``, ``lambda_max`` and the scaling of the features define a model
    that is trained on the terms. The terms of new nodes are computed with the same settings.
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
    """Scaling of the features: a name in :data:`nfgnn.data.SCALINGS`, never ``auto``."""
    feature_mean: list[float] | None
    feature_deviation: list[float] | None
    dtype: str
    class_names: list[str]
    metric: str
    masks: list[str]
    """Those of ``train_mask``, ``val_mask`` and ``test_mask`` that the dataset provides."""
    source: str
    """Name or path that the graph was read from."""
    fingerprint: str
    """Hash of the graph and of the settings that determine the terms."""
    block_rows: int
    """Rows of ``terms.npy`` per checksum."""
    checksums: dict[str, list[str]]
    """For each file, the checksums of its blocks (array data without the header)."""
    format: int = FORMAT

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the terms: rows, K + 1, features."""
        return self.num_rows, self.K + 1, self.num_features

    def save(self, folder: Path) -> None:
        """Write the manifest. It is written last: a store with a manifest is complete."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a store; raise :class:`UserError` if the store is not usable."""
        path = folder / FILE
        if not path.is_file():
            if (folder / WORK).is_dir():
                raise UserError(
                    f"{folder} is an unfinished store: run the same `nfgnn precompute` command "
                    "again to complete it"
                )
            raise UserError(
                f"{folder} is not a store: it has no {FILE}. "
                f"Create a store with `nfgnn precompute DATASET --out {folder}`"
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content["format"]
            if version == FORMAT:
                return cls(**{field.name: content[field.name] for field in fields(cls)})
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}: is damaged ({type(error).__name__}: {error}); precompute the store again"
            ) from None
        raise UserError(
            f"{path}: the store has format {version}, but this version of nfgnn reads format "
            f"{FORMAT}; precompute the store again"
        )
