"""The file layout of the Open Graph Benchmark, read without its package.

``raw/edge.csv.gz``, ``raw/node-feat.csv.gz`` and ``raw/node-label.csv.gz`` have no header;
``split/<kind>/{train,valid,test}.csv.gz`` list node numbers. ogbn-papers100M has ``raw/data.npz``
and ``raw/node-label.npz`` instead. They are never read as a whole: features and edges are memory
maps, and edges are made undirected on disk.
"""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv
from torch_geometric.data import Data

from nfgnn.data.external_sort import undirected_on_disk
from nfgnn.data.labels import encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.readers.fixed_splits import add_fixed_splits
from nfgnn.data.readers.mapped_arrays import (
    crc32,
    edge_blocks,
    is_intact,
    map_member,
    row_blocks,
    scratch_folder,
)
from nfgnn.errors import UserError
from nfgnn.files import atomic_write

_AGAIN = "remove the folder and load the data set again to download it."
_PAPERS = "ogbn-papers100m"
_PERIODS = 5  # classes of arxiv-year


def read_ogb(folder: Path, files: tuple[str, ...]) -> Data:
    """Read ogbn-arxiv or ogbn-products with the official split."""
    edges = _read_matrix(folder / files[0], pa.int64())
    x = _read_matrix(folder / files[1], pa.float32())
    labels = _read_matrix(folder / files[2], pa.float64())
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(edges.T),
        y=torch.from_numpy(labels[:, 0]),
    )
    return _with_split(data, folder, files)


def read_arxiv_year(folder: Path, files: tuple[str, ...]) -> Data:
    """Read arxiv-year: the graph of ogbn-arxiv, whose classes are periods of publication.

    The years are divided at their quantiles into five classes, as in the LINKX study. The last file
    holds the splits of that study.
    """
    edges = _read_matrix(folder / files[0], pa.int64())
    x = _read_matrix(folder / files[1], pa.float32())
    years = _read_matrix(folder / files[2], pa.float64())[:, 0]
    bounds = np.quantile(years, np.arange(1, _PERIODS) / _PERIODS)
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(edges.T),
        y=torch.from_numpy(np.searchsorted(bounds, years, side="right")),
    )
    return add_fixed_splits(data, folder / files[3])


def read_papers100m(folder: Path, files: tuple[str, ...]) -> Data:
    """Map ogbn-papers100M into memory."""
    x, edges, labels, scratch = _map_papers100m(folder, files)
    # Sorting takes hours and 80 GB on disk, so its result is kept.
    target = scratch / "edge_index.npy"
    checksum = target.with_suffix(".crc32")
    if len(x) == 0:
        raise UserError(f"{_PAPERS}: {files[0]} has no nodes; {_AGAIN}")
    if target.is_file() and not checksum.exists():  # sorted by a version without checksums
        atomic_write(checksum, str(crc32(target)))
    if not is_intact(target, _recorded(checksum)):
        try:
            undirected_on_disk(edges, len(x), target)
        except UserError as error:
            raise UserError(f"{_PAPERS}, {files[0]}: {error} To repair it, {_AGAIN}") from None
        atomic_write(checksum, str(crc32(target)))
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.load(target, mmap_mode="c")),
        y=torch.from_numpy(labels.astype(np.float64)),
    )
    return _with_split(data, folder, files)


def _recorded(checksum: Path) -> int:
    """Return the checksum in a file, or one that no file has."""
    text = checksum.read_text() if checksum.is_file() else ""
    return int(text) if text.isdecimal() else -1


def open_papers100m(folder: Path, files: tuple[str, ...]) -> LargeGraph:
    """Open ogbn-papers100M (111 million nodes, 1.5 million labels) for reading in blocks."""
    x, edges, labels, _ = _map_papers100m(folder, files)
    y, class_names = encode_labels(labels, f"{_PAPERS}, node_label")
    return LargeGraph(
        name=_PAPERS,
        source=str(folder.resolve()),
        fingerprint=files_fingerprint(*(folder / file for file in files)),
        num_nodes=len(x),
        num_features=x.shape[1],
        num_edges=edges.shape[1],
        y=y,
        class_names=class_names,
        edges=edge_blocks(edges, _PAPERS),
        features=lambda rows: row_blocks(x, rows, _PAPERS),
        masks=_split_masks(folder, files, len(x)),
        metric="accuracy",
    )


def _map_papers100m(
    folder: Path, files: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Path]:
    """Return maps of features and edges, the labels, and the folder of unpacked files."""
    archive = folder / files[0]
    scratch = scratch_folder(_PAPERS, archive)
    x = map_member(archive, "node_feat", scratch)
    edges = map_member(archive, "edge_index", scratch)
    labels = np.array(map_member(folder / files[1], "node_label", scratch)).reshape(-1)
    return x, edges, labels, scratch


def _with_split(data: Data, folder: Path, files: tuple[str, ...]) -> Data:
    for key, mask in _split_masks(folder, files, data.num_nodes).items():
        data[key] = torch.from_numpy(mask)
    return data


def _split_masks(folder: Path, files: tuple[str, ...], num_nodes: int) -> dict[str, np.ndarray]:
    """Return the official split, which the last three files list."""
    masks = {}
    for key, file in zip(("train_mask", "val_mask", "test_mask"), files[-3:]):
        nodes = _read_matrix(folder / file, pa.int64())[:, 0]
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= num_nodes):
            raise UserError(
                f"{folder / file}: contains node {nodes.max()}, but the graph has {num_nodes:,} "
                f"nodes; {_AGAIN}"
            )
        masks[key] = np.zeros(num_nodes, dtype=bool)
        masks[key][nodes] = True
    return masks


def _read_matrix(path: Path, dtype: pa.DataType) -> np.ndarray:
    """Read a compressed CSV file without header."""
    try:
        with _CheckedStream(path) as stream:
            table = csv.read_csv(stream, csv.ReadOptions(autogenerate_column_names=True))
        columns = [column.cast(dtype).to_numpy() for column in table.itercolumns()]
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: cannot be read: {first_line(error)}; {_AGAIN}") from None
    return np.stack(columns, axis=1)


class _CheckedStream(io.RawIOBase):
    """The unpacked content of a file, as long as there is memory for what Arrow makes of it.

    A megabyte of gzip can unpack to a gigabyte.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stream = pa.input_stream(path)  # unpacks by the ending of the name

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        # The columns are converted and joined afterwards, which takes as much memory again.
        require_memory(pa.total_allocated_bytes(), str(self._path))
        content: bytes = self._stream.read(size)
        return content

    def close(self) -> None:
        self._stream.close()
        super().close()
