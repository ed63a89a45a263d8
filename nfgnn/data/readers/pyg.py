"""Datasets that PyTorch Geometric has a class for.

A class writes its ``processed`` folder beside the raw files, which a data root must not suffer. So the raw
files are linked into a temporary folder, the class does its work there, and only the graph survives.
"""

import contextlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.data.entry import Entry


def read_pyg(entry: Entry, folder: Path) -> Data:
    """Read the raw files in ``folder`` through the entry's PyG class."""
    assert entry.pyg is not None
    class_name, arguments = entry.pyg
    with tempfile.TemporaryDirectory(prefix="nfgnn-") as work:
        raw = Path(work, entry.folder)
        raw.mkdir(parents=True)
        for file in entry.required:
            _link(folder / file, raw / file)
        with contextlib.redirect_stderr(
            io.StringIO()
        ):  # "Processing... Done!" would be repeated for every load
            dataset = _dataset_class(class_name)(
                str(Path(work, entry.folder.split("/")[0])), **arguments
            )
        return dataset[0]


def _dataset_class(name: str) -> Any:
    import torch_geometric.datasets as classes

    return getattr(classes, name)


def _link(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source.resolve())
    except OSError:  # no links on this file system
        shutil.copyfile(source, target)
