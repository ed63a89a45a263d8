"""Write checksums anew after a mutation, as a careful attacker would."""

import contextlib
import hashlib
import json
from pathlib import Path

from nfgnn.checksums import SUMS, write_checksums
from nfgnn.errors import UserError
from nfgnn.store.file_format import file_checksums


def seal_folder(folder: Path) -> None:
    """Write the checksums of a saved model or run folder anew."""
    for pattern in ("seed-*", "ensemble/member-*", "ensemble"):
        for part in sorted(folder.glob(pattern)):
            if part.is_dir():
                _seal(part)
    _seal(folder)


def _seal(folder: Path) -> None:
    """Write the checksums of all files but pictures, as for a folder without a mutation."""
    if (folder / SUMS).is_file():
        files = [path for path in folder.iterdir() if path.is_file() and path.suffix != ".png"]
        sums = [path for path in folder.glob(f"*/{SUMS}") if path.is_file()]
        names = [str(path.relative_to(folder)) for path in (*files, *sums) if path.name != SUMS]
        names += [str(path.relative_to(folder)) for path in sums]
        write_checksums(folder, sorted(set(names)))


def seal_store(folder: Path) -> None:
    """Write the checksum of a manifest anew."""
    path = folder / "manifest.json"
    if not path.is_file():  # the mutation has replaced it by a pipe or a device
        return
    try:
        content = json.loads(path.read_text())
        content.pop("checksum", None)
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps({**content, "checksum": digest}))
    except (ValueError, AttributeError, OSError, RecursionError):
        return  # the mutation has left no JSON object


def seal_store_files(folder: Path) -> None:
    """Write the checksums of all files of a store anew."""
    path = folder / "manifest.json"
    if not path.is_file():
        return
    try:
        manifest = json.loads(path.read_text())
        checksums = manifest["checksums"]
        for name in checksums:
            rows = manifest["block_rows"] if name in ("terms", "sketch") else None
            with contextlib.suppress(UserError, OSError, ValueError, MemoryError):
                file = folder / f"{name}.npy"
                if file.is_file():  # not a pipe or a device
                    checksums[name] = file_checksums(file, rows)
        manifest.pop("samples", None)
        path.write_text(json.dumps(manifest))
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        return  # the mutation has left no manifest
    seal_store(folder)


def remove_seals(folder: Path) -> None:
    """Turn a run folder, model or store into one that older versions have written."""
    for path in folder.rglob(SUMS):
        path.unlink()
    for path in folder.rglob("*.json"):
        content = json.loads(path.read_text())
        for key in ("kind", "checksum", "samples"):
            content.pop(key, None)
        path.write_text(json.dumps(content))
