"""A PyG graph saved in a safe format: tensors only, so that opening the file can run no code.

Write one with ``torch.save(data.to_dict(), "graph.pt")`` or ``safetensors.torch.save_file(tensors,
"graph.safetensors")``.
"""

from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.errors import UserError

_HOW = "save the graph with `torch.save(data.to_dict(), …)`."


def read_saved(path: Path) -> Data:
    """Read ``.pt`` (with ``weights_only``) or ``.safetensors``."""
    content = _safetensors(path) if path.suffix == ".safetensors" else _tensors(path)
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UserError(f"{path.name}: holds a {type(content).__name__}; {_HOW}")
    return Data.from_dict(content)


def _tensors(path: Path) -> object:
    try:
        with torch.sparse.check_sparse_tensor_invariants():
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file fails in many ways, all before anything is run
        reason = (
            str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        )
        raise UserError(
            f"{path.name}: is not a file of plain tensors ({reason}); nothing in it was run; {_HOW}"
        ) from None


def _safetensors(path: Path) -> object:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError(f"{path.name}: cannot be read as safetensors: {error}") from None
