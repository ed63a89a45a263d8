"""The Open Graph Benchmark's file layout, read without its package (which does not load on current torch).

``raw/edge.csv.gz``, ``raw/node-feat.csv.gz`` and ``raw/node-label.csv.gz`` have no header;
``split/<kind>/train.csv.gz`` and its siblings list node numbers. papers100M has ``raw/data.npz`` and
``raw/node-label.npz`` instead, of which nothing is read whole: features and links are memory maps, and the
links are made two-way on disk.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import csv
from torch_geometric.data import Data

from nfgnn.data.entry import Entry
from nfgnn.data.external_sort import undirected_on_disk
from nfgnn.data.readers.mapped import map_member, scratch_folder
from nfgnn.errors import UserError


def read_ogb(entry: Entry, folder: Path) -> Data:
    """Read ogbn-arxiv or ogbn-products with the official split."""
    x = _read_csv(folder / "raw/node-feat.csv.gz", pa.float32())
    y = _read_csv(folder / "raw/node-label.csv.gz", pa.float64())[:, 0]
    edges = _read_csv(folder / "raw/edge.csv.gz", pa.int64())
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges.T), y=torch.from_numpy(y))
    return _with_split(data, entry, folder)


def read_ogb_mapped(entry: Entry, folder: Path) -> Data:
    """Read ogbn-papers100M by memory map."""
    scratch = scratch_folder(entry.name, folder / "raw/data.npz")
    x = map_member(folder / "raw/data.npz", "node_feat", scratch)
    edges = map_member(folder / "raw/data.npz", "edge_index", scratch)
    labels = map_member(folder / "raw/node-label.npz", "node_label", scratch).reshape(-1)
    target = scratch / "edge_index.npy"
    if not target.is_file():
        undirected_on_disk(edges, len(x), target)
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.load(target, mmap_mode="c")),
        y=torch.from_numpy(np.array(labels, dtype=np.float64)),
    )
    return _with_split(data, entry, folder)


def _with_split(data: Data, entry: Entry, folder: Path) -> Data:
    for key, mask in split_masks(entry, folder, data.num_nodes).items():
        data[key] = torch.from_numpy(mask)
    return data


def split_masks(entry: Entry, folder: Path, n: int) -> dict[str, np.ndarray]:
    """The official split as masks."""
    masks = {}
    for key, file in zip(("train", "val", "test"), entry.required[-3:]):
        nodes = _read_csv(folder / file, pa.int64())[:, 0]
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= n):
            raise UserError(f"{file}: names the node {nodes.max()}, but there are {n:,}.")
        masks[f"{key}_mask"] = np.zeros(n, dtype=bool)
        masks[f"{key}_mask"][nodes] = True
    return masks


def _read_csv(path: Path, kind: pa.DataType) -> np.ndarray:
    """A gzipped CSV without header as a matrix; Arrow unpacks by the ending of the name."""
    try:
        table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
        columns = [column.cast(kind).to_numpy() for column in table.itercolumns()]
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: cannot be read: {str(error).splitlines()[0][:200]}") from None
    return np.stack(columns, axis=1)
