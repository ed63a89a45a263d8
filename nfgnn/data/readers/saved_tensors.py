"""A PyG graph in a file of plain tensors, which cannot run code when it is opened.

``torch.save(data.to_dict(), "graph.pt")`` or ``safetensors.torch.save_file(tensors,
"graph.safetensors")`` write one.
"""

import zipfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch_geometric.data import Data

from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.errors import UserError

_HOW = "save the graph with `torch.save(data.to_dict(), …)`."


def read_saved_tensors(path: Path) -> Data:
    """Read ``.pt`` (with ``weights_only``) or ``.safetensors``."""
    content = _safetensors(path) if path.suffix.lower() == ".safetensors" else _tensors(path)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{path.name}: contains a {type(content).__name__}; {_HOW}")
    return Data.from_dict(content)


def _tensors(path: Path) -> object:
    _check_archive(path)
    try:
        # Sparse tensors with indices out of bounds would corrupt memory later.
        with torch.sparse.check_sparse_tensor_invariants():
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{path.name}: is not a file of plain tensors ({first_line(error, 160)}); "
            f"no code was run; {_HOW}"
        ) from None


def _check_archive(path: Path) -> None:
    """Refuse anything but a zip archive whose members fit into memory.

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
    require_memory(unpacked, path.name)


def _safetensors(path: Path) -> object:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError(
            f"{path.name}: cannot be read as safetensors: {first_line(error)}; create the file "
            "again."
        ) from None
