"""The terms of a graph on disk, a row after the other: what Algorithm 2 trains on.

A store is a folder: ``terms.npy`` ``[rows, K + 1, features]``, where a row is one stretch of bytes, so that a random
row costs one seek; ``nodes.npy``, ``y.npy`` and the masks that came with the data, one entry per row; and
``manifest.json``, which says what they are and holds their checksums.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import FeatureScaling
from nfgnn.errors import UserError
from nfgnn.store.manifest import DTYPES, FILE, Manifest, checksum

Verify = Literal["sizes", "checksums"]
MASKS = ("train_mask", "val_mask", "test_mask")
_BLOCK_BYTES = 2**26


class Store:
    """A finished store, opened for reading. Use :meth:`open`.

    Args:
        path: its folder.
        manifest: what it says of itself.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    @classmethod
    def open(cls, path: str | Path, verify: Verify = "sizes") -> "Store":
        """Open a store and check it: that every file is there and has its size, or also every byte of it."""
        folder = Path(path)
        store = cls(folder, Manifest.read(folder))
        for name in store.manifest.checksums:
            store._map(name)
            if verify == "checksums":
                store._verify(name)
        return store

    @cached_property
    def terms(self) -> np.ndarray:
        """Memory map ``[num_rows, K + 1, num_features]`` in the store's own precision (bfloat16 as uint16)."""
        return self._map("terms")

    @cached_property
    def nodes(self) -> Tensor:
        """The node of every stored row, ascending."""
        return self._column("nodes")

    @cached_property
    def y(self) -> Tensor:
        """The label of every stored row, -1 where there is none."""
        return self._column("y")

    def rows(self, index: Tensor | np.ndarray | slice) -> Tensor:
        """The terms of some rows in float32, ``[b, K + 1, num_features]``."""
        at = index.cpu().numpy() if isinstance(index, Tensor) else index
        return as_float(np.array(self.terms[at]), self.manifest.dtype)

    def labels(self) -> Data:
        """The stored rows as a graph without links: labels and masks, for :func:`nfgnn.data.splits`; its ``rows``
        are this store, so that a classifier can be fitted on it."""
        manifest = self.manifest
        data = Data(y=self.y, num_nodes=manifest.num_rows)
        for name in manifest.masks:
            data[name] = self._column(name)
        data.class_names, data.num_classes = manifest.class_names, manifest.num_classes
        data.name, data.metric, data.rows = manifest.dataset, manifest.metric, self
        data.node_ids = self.nodes.numpy()
        return data

    @property
    def scaling(self) -> FeatureScaling:
        """The scaling of the features that the terms were made from, to be applied to those of new nodes."""
        m = self.manifest
        mean, deviation = (
            None if v is None else torch.tensor(v) for v in (m.feature_mean, m.feature_deviation)
        )
        return FeatureScaling(m.features, mean, deviation)

    def __repr__(self) -> str:
        m = self.manifest
        return f"Store({m.dataset}, rows={m.num_rows}, K={m.K}, features={m.num_features}, basis={m.basis}, {m.dtype})"

    def _column(self, name: str) -> Tensor:
        return torch.from_numpy(np.array(self._map(name)))

    def _map(self, name: str) -> np.ndarray:
        path = self.path / f"{name}.npy"
        try:
            array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise UserError(f"{path}: is missing from the store; precompute it again") from None
        except (ValueError, OSError) as error:
            raise UserError(
                f"{path}: is cut short or damaged ({error}); precompute it again"
            ) from None
        kind = (
            DTYPES[self.manifest.dtype][1]
            if name == "terms"
            else np.bool_
            if name in MASKS
            else np.int64
        )
        shape = (
            self.manifest.shape if name == "terms" else (self.manifest.num_rows, *array.shape[1:])
        )
        if array.shape != shape or array.dtype != kind:
            raise UserError(
                f"{path}: holds {array.dtype} {list(array.shape)}, the manifest says {np.dtype(kind)} {list(shape)}; "
                "precompute it again"
            )
        return array

    def _verify(self, name: str) -> None:
        path, expected = self.path / f"{name}.npy", self.manifest.checksums[name]
        found = file_checksums(path, self.manifest.block_rows if name == "terms" else None)
        for block, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a != b:
                raise UserError(
                    f"{path}: block {block} of {len(expected)} is damaged; precompute the store again"
                )


def is_store(path: str | Path) -> bool:
    """Whether this is the folder of a store, finished or not."""
    return (Path(path) / FILE).is_file() or (Path(path) / "work").is_dir()


def as_float(array: np.ndarray, dtype: str) -> Tensor:
    """Stored values → float32."""
    raw = torch.from_numpy(array.view(np.int16) if dtype == "bfloat16" else array)
    return (raw.view(torch.bfloat16) if dtype == "bfloat16" else raw).float()


def as_stored(x: Tensor, dtype: str) -> np.ndarray:
    """float32 → the values that are stored, rounded to nearest."""
    rounded = x.detach().cpu().to(DTYPES[dtype][0])
    if dtype == "bfloat16":
        return rounded.view(torch.int16).numpy().view(np.uint16)
    array: np.ndarray = rounded.numpy()
    return array


def rows_per_block(K: int, num_features: int, dtype: str) -> int:
    """Rows under one checksum: about 64 MiB of them."""
    return max(
        1, _BLOCK_BYTES // max(1, (K + 1) * num_features * np.dtype(DTYPES[dtype][1]).itemsize)
    )


def file_checksums(path: Path, block_rows: int | None) -> list[str]:
    """The checksums of an ``.npy`` file's rows, block by block, read without mapping it."""
    with path.open("rb") as file:
        shape, itemsize = _header(file)
        row = itemsize * int(np.prod(shape[1:], dtype=np.int64))
        step = (block_rows or max(1, shape[0])) * row
        total = shape[0] * row
        return [
            checksum(_pieces(file, min(step, total - at))) for at in range(0, total, step or 1)
        ] or [checksum([])]


def _header(file: Any) -> tuple[tuple[int, ...], int]:
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(file)
    return shape, dtype.itemsize


def _pieces(file: Any, size: int, piece: int = 2**22) -> Iterator[bytes]:
    while size > 0:
        data = file.read(min(piece, size))
        if not data:
            return
        size -= len(data)
        yield data


def write_columns(
    folder: Path, nodes: np.ndarray, y: np.ndarray, masks: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Write what a store holds beside its terms; returns the checksums."""
    columns = {"nodes": nodes.astype(np.int64), "y": y.astype(np.int64), **masks}
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(column))
    return {name: file_checksums(folder / f"{name}.npy", None) for name in columns}


def write_store(
    path: str | Path,
    terms: Tensor,
    y: Tensor,
    *,
    nodes: Tensor | None = None,
    masks: Mapping[str, Tensor] | None = None,
    num_nodes: int | None = None,
    dtype: str = "float32",
    scaling: FeatureScaling | None = None,
    **about: Any,
) -> Store:
    """Write terms that are in memory.

    Args:
        path: the folder, which must not hold a store.
        terms: ``[rows, K + 1, features]``.
        y: ``[rows]``, -1 for unknown.
        nodes: the node of every row; by default row i is node i.
        masks: ``train_mask``, ``val_mask``, ``test_mask``, each ``[rows]`` or ``[rows, splits]``.
        num_nodes: nodes of the whole graph.
        dtype: precision on disk.
        scaling: of the features, for the manifest.
        **about: other fields of :class:`Manifest`: ``basis``, ``self_loops``, ``lambda_max``, ``dataset``, ``source``,
            ``class_names``, ``metric``, ``fingerprint``.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    rows, orders, features = terms.shape
    nodes = torch.arange(rows) if nodes is None else nodes
    kept = {name: mask.numpy() for name, mask in (masks or {}).items()}
    checksums = write_columns(folder, nodes.numpy(), y.numpy(), kept)
    np.save(folder / "terms.npy", as_stored(terms, dtype))
    block_rows = rows_per_block(orders - 1, features, dtype)
    checksums["terms"] = file_checksums(folder / "terms.npy", block_rows)
    scaling = scaling or FeatureScaling("raw")
    classes = about.pop("class_names", None) or [str(c) for c in range(int(y.max()) + 1)]
    defaults: dict[str, Any] = {
        "basis": "chebyshev",
        "self_loops": False,
        "lambda_max": 2.0,
        "dataset": "graph",
        "source": "memory",
    }
    defaults |= {"metric": "accuracy", "fingerprint": checksums["terms"][0]}
    manifest = Manifest(
        num_nodes=num_nodes or rows, num_rows=rows, num_features=features, num_classes=len(classes), K=orders - 1,
        features=scaling.how, feature_mean=None if scaling.mean is None else scaling.mean.tolist(),
        feature_deviation=None if scaling.deviation is None else scaling.deviation.tolist(),
        dtype=dtype, class_names=classes, masks=list(kept), block_rows=block_rows, checksums=checksums,
        **(defaults | about),
    )  # fmt: skip
    manifest.save(folder)
    return Store.open(folder)
