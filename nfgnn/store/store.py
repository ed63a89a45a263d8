"""The terms of a graph on disk, one row per node, as training reads them.

A store is a folder with these files:

- ``terms.npy`` ``[rows, K + 1, features]``: a row is contiguous, so reading one costs one seek;
- ``sketch.npy`` ``[rows, sketch]``, ``two_hop.npy`` ``[rows, two_hop]``, ``degree.npy`` and
  ``agreement.npy`` ``[rows, 1]``, if wanted: the other parts of every row (:class:`RowParts`);
- ``nodes.npy``, ``y.npy`` and the masks of the dataset: one entry per row;
- ``id_text.npy``, ``id_start.npy`` and ``id_order.npy``: the users' ids of the rows, unless these
  are the numbers of the nodes (:class:`StoredIds`);
- ``indptr.npy``, ``indices.npy``, ``scale.npy`` and ``weight.npy``: the graph, in a store that new
  nodes can be attached to (:class:`StoredGraph`);
- ``manifest.json``: the settings that the terms were computed with, and checksums of all files.

:class:`Store` reads rows of it, and :mod:`nfgnn.store.store_writer` writes it block by block.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import ExistingNodes, FeatureScaling, TableEncoding, registered_name
from nfgnn.errors import UserError, system_error
from nfgnn.npyfile import NpyFile
from nfgnn.object_store import is_remote
from nfgnn.spectral import RowParts, resolve_basis
from nfgnn.store.array_values import REMEDY, check_values
from nfgnn.store.attached_terms import WithoutLoops, attached_terms, stored_features
from nfgnn.store.file_format import (
    DTYPES,
    checksum,
    file_checksums,
    make_scaling,
    sample,
    sample_spans,
)
from nfgnn.store.manifest import FILE, WORK, Manifest
from nfgnn.store.new_node_parts import parts_of_new_nodes
from nfgnn.store.new_node_terms import NewNodes
from nfgnn.store.opened_files import OpenedFiles, UnusableStoreError
from nfgnn.store.remote import fetch_store, is_remote_store, verify_remote_store
from nfgnn.store.rows_with_parts import RowsWithParts
from nfgnn.store.source import MASKS
from nfgnn.store.stored_graph import GRAPH_FILES, StoredGraph
from nfgnn.store.stored_ids import ID_FILES, StoredIds

Verify = Literal["sizes", "sampled", "graph", "checksums"]
_FULL_BYTES = 2**22  # terms of at most this size are always verified in full
_MAX_BLOCKS = 64  # whose samples are verified on opening
_OTHER_ARRAYS: dict[str, tuple[type[np.generic], int | None]] = {
    "indptr": (np.int64, 1),
    "indices": (np.int32, None),
    "scale": (np.float64, 0),
    "weight": (np.float64, None),
    "id_text": (np.uint8, None),
    "id_start": (np.int64, 1),
    "id_order": (np.int64, 0),
}
"""Type of an array, and how many entries it has more than there are rows; ``None`` for any."""


class Store:
    """A complete store, opened for reading with :meth:`open`.

    Args:
        path: its folder.
        manifest: its description.
        origin: the URL that it was copied from; by default the folder.
    """

    def __init__(self, path: Path, manifest: Manifest, origin: str | None = None) -> None:
        self.path = path
        self.manifest = manifest
        self.origin = origin or str(path)

    @classmethod
    def open(cls, path: str | Path, verify: Verify = "sampled") -> "Store":
        """Open a store and verify it.

        Args:
            path: folder of the store, or its URL. A remote store is copied to the cache folder.
            verify: ``"sizes"`` checks that all files exist with the right size and type.
                ``"sampled"`` also compares the checksums of all files, but reads only a sample of
                large terms; the graph and the ids are not read if they are large, either.
                ``"graph"`` reads these, too, and ``"checksums"`` reads everything.
        """
        if is_remote(path):
            return cls._open_remote(path, verify)
        folder = Path(path)
        store = cls(folder, Manifest.read(folder))
        for name in store.manifest.checksums:
            store.verify_file(name, verify)
        if verify != "sizes":
            for name in store.manifest.checksums:
                store.verify_values(name)
        return store

    @classmethod
    def _open_remote(cls, url: str, verify: Verify) -> "Store":
        folder = fetch_store(url)
        try:
            store = cls.open(folder, verify)
        except UserError:  # the copy was damaged on this disk
            store = cls.open(fetch_store(url, again=True), verify)
        return cls(store.path, store.manifest, url)

    def verify_file(self, name: str, verify: Verify) -> None:
        """Verify one array; see :meth:`open`."""
        array = self._map(name)
        if verify == "sizes":
            return
        is_part = name in self.manifest.row_parts
        is_graph = name in (*GRAPH_FILES, *ID_FILES)
        is_small = not (is_part or is_graph) or array.nbytes <= _FULL_BYTES
        if is_small or verify == "checksums" or (is_graph and verify == "graph"):
            self._verify_checksums(name)
        if is_part:
            self._verify_sample(name, array)

    def verify_values(self, name: str) -> None:
        """Check that an array fits the other ones, which must be intact."""
        check_values(name, self._map(name), self._file(name), self.manifest, self._map)

    @cached_property
    def terms(self) -> np.ndarray:
        """Memory map ``[num_rows, K + 1, num_features]`` of the stored type, bfloat16 as uint16."""
        return self._map("terms")

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """Memory maps of the parts besides the terms, of the stored type, bfloat16 as uint16."""
        return {name: self._map(name) for name in self.manifest.parts.columns}

    @cached_property
    def nodes(self) -> Tensor:
        """The node of every row, in ascending order."""
        return self._load("nodes")

    @cached_property
    def y(self) -> Tensor:
        """The label of every row, -1 for unlabelled nodes."""
        return self._load("y")

    @cached_property
    def ids(self) -> StoredIds | None:
        """The users' ids of the rows; ``None`` if they are the numbers of the nodes."""
        if not self.manifest.has_ids:
            return None
        return StoredIds(*(self._map(name) for name in ID_FILES))

    @cached_property
    def graph(self) -> StoredGraph:
        """The graph, memory-mapped, of a store that was computed with ``--serve``."""
        if not self.manifest.has_graph:
            raise UserError(
                f"{self.origin} does not hold the graph, so no nodes can be attached to it: "
                "compute it with `nfgnn precompute --serve`"
            )
        weighted = "weight" in self.manifest.checksums
        return StoredGraph(
            self._map("indptr"),
            self._map("indices"),
            self._map("scale"),
            self._map("weight") if weighted else None,
            self.manifest.self_loops,
            self.origin,
        )

    def map_for_new_nodes(self) -> OpenedFiles:
        """Map everything that :meth:`attach` reads, and return its files to notice changes."""
        wanted = ("terms", *GRAPH_FILES, *ID_FILES)
        files = OpenedFiles(self._file(name) for name in wanted if name in self.manifest.checksums)
        _ = self.graph, self.terms, self.nodes, self.ids
        # Another store may have got the name since the manifest was read.
        if Manifest.read(self.path) != self.manifest:
            raise UnusableStoreError(
                f"{self.origin}: was replaced while it was opened; run the same command again"
            )
        return files

    def find(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of ids, -1 for unknown ids. Numbers are given as text, too."""
        if self.ids is not None:
            return self.ids.find(ids)
        numbers = [int(name) if _is_number(name) else -1 for name in ids]
        wanted = np.array(numbers, dtype=np.int64)
        nodes = self.nodes.numpy()
        rows = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
        return np.where(nodes[rows] == wanted, rows, -1)

    @property
    def existing_nodes(self) -> ExistingNodes:
        """What :func:`nfgnn.data.load_new_nodes` needs to know of the nodes."""
        m = self.manifest
        encoding = m.feature_encoding
        return ExistingNodes(
            m.num_nodes,
            m.num_features,
            self.find,
            m.feature_names,
            None if encoding is None else TableEncoding.from_json(encoding),
        )

    def rows(self, index: Tensor | np.ndarray | slice) -> Tensor:
        """Return the terms of some rows in float32, ``[b, K + 1, num_features]``."""
        if isinstance(index, Tensor):
            index = index.cpu().numpy()
        return DTYPES[self.manifest.dtype].decode(np.array(self.terms[index]))

    @property
    def encoded_type(self) -> torch.dtype:
        """Number type of the terms on disk."""
        return DTYPES[self.manifest.dtype].torch

    def read_encoded(self, index: Tensor, out: Tensor) -> None:
        """Read some rows into a contiguous tensor in the number type of the disk."""
        array = out.view(torch.int16).numpy() if out.dtype == torch.bfloat16 else out.numpy()
        # Any other mode than "raise" writes into the array without a buffer.
        np.take(self.terms, index.numpy(), 0, array.view(self.terms.dtype), mode="clip")

    def with_parts(self, parts: RowParts) -> RowsWithParts:
        """Return the rows with some of their parts, as models with these parts read them."""
        for name in parts.missing_in(self.manifest.parts):
            option = name.replace("_", "-")
            raise UserError(
                f"{self.origin} does not hold the part {name} that the model needs: precompute a "
                f"store with --{option}, or train without {name}"
            )
        arrays = tuple(self.parts[name] for name in parts.columns)
        return RowsWithParts(self.rows, arrays, self.manifest.dtype)

    def attach(self, new: NewNodes, tolerance: float = 1e-10) -> Tensor:
        """Return the rows of new nodes in the extended graph, ``[m, K + 1, num_features]``.

        Only the neighbourhood of the new nodes is read. The store does not change.

        Args:
            new: the new nodes, with features that are scaled by :attr:`scaling`.
            tolerance: see :func:`~nfgnn.store.attached_terms`.
        """
        m = self.manifest
        basis = resolve_basis(m.basis)
        return attached_terms(self.graph, self.rows, new, basis, m.K, m.lambda_max, tolerance)

    def attach_parts(self, new: NewNodes, parts: RowParts) -> Tensor:
        """Return the parts of the rows of new nodes besides the terms, ``[m, parts.width]``.

        Args:
            new: the new nodes, with features that are scaled by :attr:`scaling`.
            parts: what the rows of the model hold.
        """
        features = stored_features(self.rows, resolve_basis(self.manifest.basis), self.manifest.K)
        return parts_of_new_nodes(WithoutLoops(self.graph), features, new, parts)

    def labels(self) -> Data:
        """Return labels and masks of the rows, as a graph without edges.

        The result can be split with :func:`nfgnn.data.split`. Its attribute ``rows`` is this
        store, so that a classifier can be fitted on it.
        """
        manifest = self.manifest
        data = Data(y=self.y, num_nodes=manifest.num_rows)
        for name in manifest.masks:
            data[name] = self._load(name)
        data.class_names = manifest.class_names
        data.num_classes = manifest.num_classes
        data.name = manifest.dataset
        data.registered_name = manifest.registered_name or None
        data.metric = manifest.metric
        data.registered = registered_name(manifest.source) is not None
        data.node_ids = self.nodes.numpy() if self.ids is None else self.ids.all()
        if manifest.feature_names:
            data.feature_names = manifest.feature_names
        if manifest.feature_encoding:
            data.feature_encoding = TableEncoding.from_json(manifest.feature_encoding)
        data.rows = self
        return data

    @property
    def scaling(self) -> FeatureScaling:
        """The scaling of the features; apply it to the features of new nodes, too."""
        m = self.manifest
        return make_scaling(m.features, m.feature_mean, m.feature_deviation, m.feature_scaling)

    def __repr__(self) -> str:
        m = self.manifest
        return (
            f"Store({m.dataset}, rows={m.num_rows}, K={m.K}, features={m.num_features}, "
            f"basis={m.basis}, {m.dtype})"
        )

    def _load(self, name: str) -> Tensor:
        return torch.from_numpy(np.array(self._map(name)))

    def _map(self, name: str) -> np.ndarray:
        """Return a memory map of a file after checking its shape and type."""
        path = self._file(name)
        with NpyFile.open(path, REMEDY) as file:
            found = file.shape
            found_dtype = file.dtype
            start = file.start
        shape: tuple[int, ...] = (self.manifest.num_rows,)
        dtype: type[np.generic] = np.int64
        if name in self.manifest.row_parts:
            shape = self.manifest.row_parts[name]
            dtype = DTYPES[self.manifest.dtype].numpy
        elif name in MASKS:
            shape = (*shape, *found[1:2])  # one column per split
            dtype = np.bool_
        elif name in _OTHER_ARRAYS:
            dtype, extra = _OTHER_ARRAYS[name]
            shape = found[:1] if extra is None else (self.manifest.num_rows + extra,)
        if found != shape or found_dtype != dtype:
            raise UserError(
                f"{path}: contains {found_dtype} {list(found)}, but the manifest says "
                f"{np.dtype(dtype)} {list(shape)}; {REMEDY}"
            )
        # NumPy cannot map an empty array.
        if shape == (0,):
            return np.empty(0, dtype)
        if 0 in shape:
            raise UserError(f"{path}: is empty; {REMEDY}")
        # A plain array over the map is indexed much faster than the map itself.
        try:
            mapped: np.ndarray = np.asarray(np.memmap(path, dtype, "r", start, shape))
        except OSError as error:
            raise system_error(error, path) from None
        return mapped

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.npy"

    def _verify_checksums(self, name: str) -> None:
        expected = self.manifest.checksums[name]
        rows = self.manifest.block_rows if name in self.manifest.row_parts else None
        found = file_checksums(self._file(name), rows)
        for block, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a != b:
                raise self._damaged(name, block)

    def _verify_sample(self, name: str, rows: np.ndarray) -> None:
        """Compare samples of some blocks with their checksums and look for NaN and infinity."""
        expected = self.manifest.samples_of(name)
        count = len(self.manifest.checksums[name])
        blocks = np.linspace(0, count - 1, min(count, _MAX_BLOCKS)).astype(int).tolist()
        self._read_ahead(name, rows, blocks)
        for block in blocks:
            values = sample(self._block(rows, block))
            if expected:
                intact = checksum(values) == expected[block]
            else:
                # An older store has no samples. Only zeros give reason to read the whole block.
                intact = bool(values.any()) or self._is_intact(rows, block)
            if not intact:
                raise self._damaged(name, block)
            if not bool(DTYPES[self.manifest.dtype].decode(values).isfinite().all()):
                raise UserError(
                    f"{self._file(name)}: block {block} of {count} has values that are not "
                    "finite; check the features of the graph and precompute the store again with "
                    "the number type float32"
                )

    def _read_ahead(self, name: str, rows: np.ndarray, blocks: list[int]) -> None:
        """Let the system read all samples at once: one after the other, each waits for the disk."""
        if sys.platform != "linux":
            return
        path = self._file(name)
        header = path.stat().st_size - rows.nbytes
        block_bytes = rows[0].nbytes * self.manifest.block_rows
        handle = os.open(path, os.O_RDONLY)
        try:
            for block in blocks:
                first = header + block * block_bytes
                for span in sample_spans(self._block(rows, block).reshape(-1)):
                    size = (span.stop - span.start) * rows.itemsize
                    position = first + span.start * rows.itemsize
                    os.posix_fadvise(handle, position, size, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(handle)

    def _block(self, rows: np.ndarray, block: int) -> np.ndarray:
        first = block * self.manifest.block_rows
        return rows[first : first + self.manifest.block_rows]

    def _is_intact(self, terms: np.ndarray, block: int) -> bool:
        return checksum(self._block(terms, block)) == self.manifest.checksums["terms"][block]

    def _damaged(self, name: str, block: int) -> UserError:
        count = len(self.manifest.checksums[name])
        return UserError(f"{self._file(name)}: block {block} of {count} is damaged; {REMEDY}")


def _is_number(text: str) -> bool:
    """Whether a text is a number of a node as Python prints it."""
    return text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") and len(text) < 19


def verify_store(path: str | Path) -> tuple[int, dict[str, str]]:
    """Compare all files of a store with their checksums.

    Returns:
        The number of files, and what is wrong, by the name of the file.
    """
    if is_remote(path):
        return verify_remote_store(path)
    folder = Path(path)
    store = Store(folder, Manifest.read(folder))
    damaged: dict[str, str] = {}

    def collect(verify: Callable[[str], None]) -> None:
        for name in store.manifest.checksums:
            try:
                verify(name)
            except UserError as error:
                file = folder / f"{name}.npy"
                damaged[file.name] = str(error).removeprefix(f"{file}: ")

    collect(lambda name: store.verify_file(name, "checksums"))
    if not damaged:
        collect(store.verify_values)
    return 1 + len(store.manifest.checksums), damaged


def is_store(path: str | Path) -> bool:
    """Return whether a path is a store, complete or not. A remote store is always complete."""
    if is_remote(path):
        return is_remote_store(path)
    folder = Path(path)
    # Without its manifest, a store is damaged, not a graph.
    has_files = (folder / FILE).exists() or (folder / "terms.npy").is_file()
    return has_files or (folder / WORK).is_dir()
