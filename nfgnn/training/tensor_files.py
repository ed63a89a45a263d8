"""Write tensors in the safetensors format."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(
    tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors to a file; raise :class:`OSError` if the file system refuses."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise OSError(f"{path.name}: {error}") from error
    path.chmod(0o644)  # save_file makes it readable for its owner only
