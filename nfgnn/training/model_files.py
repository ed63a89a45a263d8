"""The files of a saved model: what they contain, and the checks when they are read.

``classifier.json`` describes the model, ``weights.safetensors`` holds its tensors.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nfgnn.data import SCALINGS
from nfgnn.errors import UserError, system_error

FILES = ("classifier.json", "weights.safetensors")
MARKER = {"kind": "nfgnn model", "format": 2}
"""Fields of ``classifier.json``. Models without them were written before there were checksums."""
_SMALL = 2**20  # bytes; buffers of a model that are not among its weights
REMEDY = "train the model again, or restore the file from a copy"


def read_description(folder: Path) -> dict[str, Any]:
    """Read ``classifier.json`` and check that it describes a model."""
    path = folder / "classifier.json"
    if not path.is_file():
        raise UserError(
            f"{folder} is not a saved model: classifier.json is missing; pass the folder of a "
            "saved model"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kind = content.get("kind", MARKER["kind"])
        if kind == MARKER["kind"] and content.keys() >= {"config", "seed", "scaling"}:
            description: dict[str, Any] = content
            return description
    except OSError as error:
        raise system_error(error, path) from None
    except (ValueError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: is damaged ({error}); {REMEDY}") from None
    raise UserError(f"{path}: does not describe a model, or is damaged; {REMEDY}")


def at_most_twice(state: dict[str, Tensor]) -> Callable[[int], None]:
    """Return a check that a model is not much larger than its weights, before it is built."""
    expected = sum(value.numel() * value.element_size() for value in state.values())

    def check(num_bytes: int) -> None:
        if num_bytes > 2 * expected + _SMALL:
            raise ValueError("the sizes in classifier.json exceed those of weights.safetensors")

    return check


def check_names(description: dict[str, Any]) -> None:
    """Check the fields that the shapes of the weights do not confirm."""
    for key, count in (("class_names", "num_classes"), ("feature_names", "num_features")):
        names = description[key]
        if names and (not isinstance(names, list) or len(names) != description[count]):
            raise ValueError(f"{key} is not a list of {description[count]} names")
        if not all(isinstance(name, str) for name in names or []):
            raise ValueError(f"{key} contains a value that is not a name")
    seed = description["seed"]
    if not isinstance(seed, int) or not 0 <= seed < 2**63 or description["scaling"] not in SCALINGS:
        raise ValueError("seed or scaling is not valid")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a model and refuse those that are not finite."""
    if not path.is_file():
        raise UserError(f"{path.parent} is not a saved model: {path.name} is missing; {REMEDY}")
    try:
        tensors = load_file(path)
    except (SafetensorError, ValueError) as error:
        raise UserError(f"{path}: is damaged ({error}); {REMEDY}") from None
    except (OSError, RuntimeError) as error:  # torch opens the file again
        raise UserError(f"{path}: cannot be read ({error}); check the disk, or {REMEDY}") from None
    for name, values in tensors.items():
        if not bool(values.isfinite().all()):
            raise UserError(f"{path}: {name} has values that are not finite; train the model again")
    return tensors
