"""Data sets that are read by a class of PyTorch Geometric.

Only classes that read text files and ``.npz`` files without pickles are used. A class writes a
``processed`` folder next to the raw files and loads it again; here that folder is temporary, so
that data roots stay unchanged and no processed file from elsewhere is ever loaded.
"""

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import torch_geometric.datasets
from torch_geometric.data import Data


def read_pyg(class_name: str, arguments: dict[str, Any], folder: Path, _: tuple[str, ...]) -> Data:
    """Read the raw files in ``folder`` with a data set class.

    Args:
        class_name: name of the class in :mod:`torch_geometric.datasets`.
        arguments: arguments of the class.
        folder: the folder of the raw files.
    """
    base = vars(torch_geometric.datasets)[class_name]
    with tempfile.TemporaryDirectory(prefix="nfgnn-") as work:
        folders = {"raw_dir": str(folder), "processed_dir": work}
        dataset_class = type(class_name, (base,), folders)
        # "Processing... Done!" would appear at every load.
        with contextlib.redirect_stderr(io.StringIO()):
            return dataset_class(work, **arguments)[0]
