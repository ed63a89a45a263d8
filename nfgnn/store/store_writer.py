"""Write a store, whose files :mod:`nfgnn.store.store` describes."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from torch import Tensor

from nfgnn.data import FeatureScaling, TableEncoding
from nfgnn.files import sync_file
from nfgnn.npyfile import NpyFile, disk_full
from nfgnn.spectral import RowParts
from nfgnn.store.file_format import (
    DTYPES,
    as_list,
    checksum,
    file_checksums,
    rows_per_checksum,
    sample,
)
from nfgnn.store.manifest import FORMAT, Manifest
from nfgnn.store.store import Store
from nfgnn.store.stored_graph import GRAPH_FILES


class Description(TypedDict, total=False):
    """Optional fields of the manifest, see :class:`Manifest`."""

    num_nodes: int
    scaling: FeatureScaling
    class_names: list[str]
    basis: str
    self_loops: bool
    lambda_max: float
    dataset: str
    registered_name: str
    metric: str
    source: str
    fingerprint: str
    feature_names: list[str] | None
    feature_encoding: TableEncoding | None
    parts: RowParts


class StoreWriter:
    """Write a store: blocks of rows first, then everything else.

    Args:
        folder: folder of the store.
        shape: shape ``[rows, K + 1, features]`` of the terms.
        dtype: number type on disk, a name in ``DTYPES``.
        checksums: checksums of the blocks that an interrupted writer has written.
    """

    def __init__(
        self, folder: Path, shape: tuple[int, int, int], dtype: str, checksums: Iterable[str] = ()
    ) -> None:
        self.folder = folder
        self.shape = shape
        self.dtype = dtype
        self.block_rows = rows_per_checksum(shape[1] - 1, shape[2], dtype)
        self.checksums = list(checksums)
        self._file = NpyFile.create(folder / "terms.npy", DTYPES[dtype].numpy, shape)

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    @property
    def next_row(self) -> int:
        """First row that is not written."""
        return min(len(self.checksums) * self.block_rows, self.shape[0])

    def write(self, rows: np.ndarray) -> None:
        """Append the next ``block_rows`` rows (the last block may be shorter), encoded."""
        self._file.write(self.next_row, rows)
        self.checksums.append(checksum(rows))

    def sync(self) -> None:
        """Wait until all rows are on disk."""
        self._file.sync()

    def finish(
        self,
        nodes: np.ndarray,
        y: np.ndarray,
        masks: Mapping[str, np.ndarray],
        ids: Mapping[str, np.ndarray] | None = None,
        graph: bool = False,
        **about: Unpack[Description],
    ) -> Store:
        """Write nodes, labels, masks, ids and the manifest, and open the store.

        The files of all ``parts`` must be in the folder.

        Args:
            nodes: the node of every row.
            y: the label of every row.
            masks: the masks of the dataset.
            ids: arrays of the users' ids, from :func:`~nfgnn.store.stored_ids.id_arrays`.
            graph: whether the folder holds the files of a graph, which belong to the store.
            **about: fields of the manifest.
        """
        self._file.finish()
        checksums = {"terms": self.checksums}
        columns = {"nodes": nodes.astype(np.int64), "y": y.astype(np.int64), **masks, **(ids or {})}
        for name, column in columns.items():
            path = self.folder / f"{name}.npy"
            try:
                np.save(path, np.ascontiguousarray(column))
                sync_file(path)
            except OSError as error:
                raise disk_full(error, path) from None
            checksums[name] = file_checksums(path)
        for name in GRAPH_FILES:
            path = self.folder / f"{name}.npy"
            if graph and path.is_file():
                checksums[name] = file_checksums(path)
        encoding = about.get("feature_encoding")
        parts = about.get("parts", RowParts())
        part_samples = {}
        for name in parts.columns:
            checksums[name] = file_checksums(self.folder / f"{name}.npy", self.block_rows)
            part_samples[name] = self._samples(name)
        sketch_samples = part_samples.pop("sketch", [])
        version = FORMAT if part_samples else 2 if graph or ids or parts.sketch else 1
        rows, orders, features = self.shape
        scaling = about.get("scaling") or FeatureScaling("raw")
        classes = about.get("class_names") or [str(c) for c in range(int(y.max()) + 1)]
        manifest = Manifest(
            dataset=about.get("dataset", "graph"),
            num_nodes=about.get("num_nodes") or rows,
            num_rows=rows,
            num_features=features,
            num_classes=len(classes),
            K=orders - 1,
            basis=about.get("basis", "chebyshev"),
            self_loops=about.get("self_loops", False),
            lambda_max=about.get("lambda_max", 2.0),
            features=scaling.how,
            feature_mean=as_list(scaling.mean),
            feature_deviation=as_list(scaling.deviation),
            feature_scaling=_further_tensors(scaling),
            dtype=self.dtype,
            class_names=classes,
            metric=about.get("metric", "accuracy"),
            masks=list(masks),
            source=about.get("source", "memory"),
            fingerprint=about.get("fingerprint", self.checksums[0]),
            block_rows=self.block_rows,
            checksums=checksums,
            samples=self._samples("terms"),
            registered_name=about.get("registered_name", ""),
            feature_names=about.get("feature_names"),
            feature_encoding=None if encoding is None else encoding.to_json(),
            **asdict(parts),
            sketch_samples=sketch_samples,
            part_samples=part_samples,
            format=version,
        )
        manifest.save(self.folder)
        sync_file(self.folder)
        return Store.open(self.folder)

    def _samples(self, name: str) -> list[str]:
        """Return the checksums of the samples of all blocks, which may be of several calls."""
        rows: np.ndarray = np.load(self.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        starts = range(0, len(rows), self.block_rows)
        return [checksum(sample(rows[first : first + self.block_rows])) for first in starts]


def _further_tensors(scaling: FeatureScaling) -> dict[str, list[Any]] | None:
    tensors = scaling.tensors()
    further = {key: tensors[key].tolist() for key in tensors.keys() - {"mean", "deviation"}}
    return further or None


def write_store(
    path: str | Path,
    terms: Tensor,
    y: Tensor,
    *,
    nodes: Tensor | None = None,
    masks: Mapping[str, Tensor] | None = None,
    dtype: str = "float32",
    **about: Unpack[Description],
) -> Store:
    """Write terms that are in memory as a store.

    Args:
        path: folder of the store.
        terms: ``[rows, K + 1, features]``.
        y: ``[rows]``, -1 for unlabelled nodes.
        nodes: the node of every row; by default row i is node i.
        masks: ``train_mask``, ``val_mask``, ``test_mask``, each ``[rows]`` or ``[rows, splits]``.
        dtype: number type on disk.
        **about: fields of the manifest: ``basis``, ``self_loops``, ``lambda_max``, ``scaling`` of
            the features, ``num_nodes`` of the whole graph, ``class_names``, ``dataset``,
            ``registered_name``, ``metric``, ``source``, ``fingerprint``.
    """
    rows, orders, features = terms.shape
    row_nodes = np.arange(rows) if nodes is None else nodes.numpy()
    row_masks = {name: mask.numpy() for name, mask in (masks or {}).items()}
    with StoreWriter(Path(path), (rows, orders, features), dtype) as writer:
        for block in terms.split(writer.block_rows):
            writer.write(DTYPES[dtype].encode(block))
        return writer.finish(row_nodes, y.numpy(), row_masks, **about)
