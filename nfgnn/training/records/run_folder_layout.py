"""The files of a run folder, and the refusal to replace anything else.

:mod:`nfgnn.training.records.run_folder` describes what each file holds.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nfgnn.checksums import SUMS
from nfgnn.errors import UserError, system_error
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import refuse_foreign_files

_DESCRIPTION_KEYS = {"dataset", "fingerprint", "protocol", "seeds", "config"}
MARKER = {"kind": "nfgnn run folder", "format": 2}
"""Fields of ``config.json``. Folders without them were written before there were checksums."""
_CHECKPOINT = r"seed-\d+(\.restart-\d+)?\.checkpoint"
_TEMPORARY = r"\.tmp[A-Za-z0-9]{6}"  # safetensors writes to such a file before it renames it
_WRITTEN = r"\.(seed-\d+|config\.json|summary\.json|report\.\w+|run\.png)\..*\.partial"
PARTIAL = rf"{_WRITTEN}|{_TEMPORARY}|{_CHECKPOINT}"
_NAMES = re.compile(
    rf"config\.json|summary\.json|report\.(json|md|png)|run\.png|{SUMS}|seed-\d+|{PARTIAL}"
    r"|auto\.(json|html)|best\.toml|ensemble|\.(auto|best|SHA256SUMS)\..*\.partial"
)
_SEED_NAMES = re.compile(
    r"classifier\.json|weights\.safetensors|coefficients\.npy|history\.csv|metrics\.json"
    rf"|report\.json|{SUMS}"
)
_ENSEMBLE_NAMES = re.compile(rf"ensemble\.json|member-\d+|{SUMS}")
_PARTS = {
    "seed-*[0-9]": ("a run", _SEED_NAMES),
    "ensemble": ("an ensemble", _ENSEMBLE_NAMES),
    "ensemble/member-*[0-9]": ("a run", _SEED_NAMES),
}
"""What the folders inside a run folder hold, and the names of the files there."""
WHAT = "a run folder"
REMEDY = "train the run again, or restore the folder from a copy"


def holds_run_folder(folder: Path) -> bool:
    """Whether a folder holds a run folder to replace; refuse anything else that it holds."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    refuse_other_files(folder)
    content = json_object_or_empty(folder / "config.json")
    kind = content.get("kind", MARKER["kind"])
    ours = kind == MARKER["kind"] and content.keys() >= _DESCRIPTION_KEYS
    refuse_replacement(folder, WHAT, ours=ours, overwrite=True)
    return True


def refuse_other_files(folder: Path) -> None:
    """Refuse to delete files that are not part of a run folder."""
    _refuse_other_names(folder, _NAMES, WHAT)
    for pattern, (what, names) in _PARTS.items():
        for part in folder.glob(pattern):
            _refuse_other_names(part, names, what)


def _refuse_other_names(folder: Path, names: re.Pattern[str], what: str) -> None:
    refuse_foreign_files(folder, lambda name: bool(names.fullmatch(name)), what)


def describes(folder: Path, description: Mapping[str, Any]) -> bool:
    """Whether the ``config.json`` of a folder equals this description."""
    found = json_object_or_empty(folder / "config.json")
    expected = json.loads(json.dumps(description))  # tuples become lists, as in the file
    return bool({key: found[key] for key in found.keys() - MARKER.keys()} == expected)


def json_object_or_empty(path: Path) -> dict[str, Any]:
    """Return a JSON object, empty if there is none."""
    try:
        return read_json(path) if path.is_file() else {}
    except UserError:
        return {}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise system_error(error, path) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}; {REMEDY}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no JSON object; {REMEDY}")
    return content
