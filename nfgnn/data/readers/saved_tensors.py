"""A PyG graph in a file of plain tensors, which cannot run code when it is opened.

``torch.save(data.to_dict(), "graph.pt")`` or ``safetensors.torch.save_file(tensors,
"graph.safetensors")`` write one. :func:`read_saved_tensors` reads a graph into memory,
:func:`open_saved_tensors` reads one in blocks.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data.features import find_nonfinite, nonfinite_error
from nfgnn.data.labels import UNLABELLED, encode_labels
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.data.paths import files_fingerprint
from nfgnn.data.readers.csr_blocks import CsrBlocks
from nfgnn.errors import UserError

_HOW = "save the graph with `torch.save(data.to_dict(), …)`."


def read_saved_tensors(path: Path) -> Data:
    """Read ``.pt`` (with ``weights_only``) or ``.safetensors``."""
    return Data.from_dict(_content(path))


def open_saved_tensors(path: Path) -> LargeGraph | None:
    """Open a file for reading in blocks.

    Returns ``None`` for a graph that can only be read as a whole: without labels ``[n]`` and
    features that are dense or CSR.
    """
    content = _content(path, mapped=True)
    sparse = _csr_blocks(path, content.get("x"))
    x = _dense(content, "x", 2) if sparse is None else content["x"]
    edges = _dense(content, "edge_index", 2)
    labels = _dense(content, "y", 1)
    if x is None or edges is None or labels is None:
        return None
    if len(edges) != 2 or edges.is_floating_point() or len(labels) != len(x):
        return None  # reading the whole graph reports what is wrong
    weighted = "edge_weight" in content
    weight = _dense(content, "edge_weight", 1)
    if weighted and (weight is None or len(weight) != edges.shape[1] or weight.is_complex()):
        return None
    y, class_names = encode_labels(labels.numpy(), f"{path.name}, y")
    masks: dict[str, np.ndarray] = {}
    for key in ("train_mask", "val_mask", "test_mask"):
        if key not in content:
            continue
        mask = _dense(content, key, 1)
        if mask is None or mask.dtype != torch.bool or len(mask) != len(x):
            return None
        masks[key] = mask.numpy() & (y != UNLABELLED)
    names = content.get("feature_names")
    return LargeGraph(
        name=path.stem,
        source=str(path.resolve()),
        fingerprint=files_fingerprint(path),
        num_nodes=x.shape[0],
        num_features=x.shape[1],
        num_edges=edges.shape[1],
        y=y,
        class_names=class_names,
        edges=lambda size: _edge_blocks(path, size, weighted),
        features=(lambda rows: _feature_blocks(path, rows))
        if sparse is None
        else sparse.dense_rows,
        weighted=weighted,
        sparse_features=sparse is not None and sparse.is_sparse,
        masks=masks,
        feature_names=list(map(str, names)) if isinstance(names, list | tuple) else None,
    )


def _dense(content: dict[str, Any], key: str, dimensions: int) -> Tensor | None:
    """Return a dense tensor with this number of dimensions, if there is one."""
    value = content.get(key)
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return None
    return value if value.dim() == dimensions else None


def _csr_blocks(path: Path, x: object) -> CsrBlocks | None:
    """Return a CSR matrix for reading in blocks, if it is one."""
    if not isinstance(x, Tensor) or x.layout != torch.sparse_csr or x.dim() != 2:
        return None
    if x.is_complex() or x.values().dim() != 1 or x.crow_indices().numel() != len(x) + 1:
        return None
    if x.col_indices().numel() != x.values().numel():
        return None

    def read(part: str, first: int, last: int) -> np.ndarray:
        mapped = _content(path, mapped=True)["x"]
        parts = {
            "data": mapped.values,
            "indices": mapped.col_indices,
            "indptr": mapped.crow_indices,
        }
        values = parts[part]()[first:last].clone()
        # NumPy has no bfloat16.
        array: np.ndarray = (values.float() if values.is_floating_point() else values).numpy()
        return array

    return CsrBlocks(read, (x.shape[0], x.shape[1]), x.values().numel(), f"{path.name}: x")


def _edge_blocks(path: Path, size: int, weighted: bool) -> Iterator[tuple[np.ndarray, ...]]:
    total = _content(path, mapped=True)["edge_index"].shape[1]
    for first in range(0, total, size):
        # The pages of a map count as memory of the process, so every block has a map of its own.
        content = _content(path, mapped=True)
        block = [*content["edge_index"][:, first : first + size].long().clone()]
        if weighted:
            block.append(content["edge_weight"][first : first + size].double().clone())
        del content
        yield tuple(values.numpy() for values in block)


def _feature_blocks(path: Path, rows: int) -> Iterator[np.ndarray]:
    total = len(_content(path, mapped=True)["x"])
    for first in range(0, total, rows):
        block = _content(path, mapped=True)["x"][first : first + rows].clone().float()
        place = find_nonfinite(block)
        if place is not None:
            raise nonfinite_error(block[place].item(), first + place[0], place[1], path.name)
        yield block.numpy()


def _content(path: Path, mapped: bool = False) -> dict[str, Any]:
    """Return what the file contains, on request as maps of the file."""
    if path.suffix.lower() == ".safetensors":
        content = _safetensors(path)
    else:
        content = _tensors(path, mapped)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{path.name}: contains a {type(content).__name__}; {_HOW}")
    return content


def _tensors(path: Path, mapped: bool) -> object:
    _check_archive(path, mapped)
    try:
        # Sparse tensors with indices out of bounds would corrupt memory later. The blocks of a
        # map are checked when they are read.
        with torch.sparse.check_sparse_tensor_invariants(not mapped):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{path.name}: is not a file of plain tensors ({first_line(error, 160)}); "
            f"no code was run; {_HOW}"
        ) from None


def _check_archive(path: Path, mapped: bool) -> None:
    """Refuse anything but a zip archive whose members fit into memory, unless they are mapped.

    Before PyTorch 1.6 files were no archives. They can declare tensors of any size.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise UserError(
            f"{path.name}: is not a file of plain tensors ({first_line(error)}); no code was run; "
            f"{_HOW}"
        ) from None
    if not mapped:
        require_memory(unpacked, path.name)


def _safetensors(path: Path) -> object:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"{path.name}: cannot be read as safetensors: {first_line(error)}; create the file "
            "again."
        ) from None
