"""The CSV files of twitch-gamers: accounts with their attributes, and who follows whom.

The LINKX study predicts the column ``mature``. Its features are the other columns but
``numeric_id``: dates as numbers (20160229), languages numbered in the order of their appearance,
every column standardised over all nodes.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import compute, csv
from torch_geometric.data import Data

from nfgnn.data.memory import require_memory
from nfgnn.data.messages import first_line
from nfgnn.data.readers.fixed_splits import add_fixed_splits
from nfgnn.errors import UserError

_LABEL = "mature"
_FEATURES = (
    "views",
    "life_time",
    "created_at",
    "updated_at",
    "dead_account",
    "language",
    "affiliate",
)
_EDGES = ("numeric_id_1", "numeric_id_2")
_AGAIN = "download the file again."


def read_twitch_gamers(folder: Path, files: tuple[str, ...]) -> Data:
    """Read the files of accounts, edges and splits."""
    accounts = _read_columns(folder / files[0], (*_FEATURES, _LABEL))
    edges = _read_columns(folder / files[1], _EDGES)
    x = accounts[:, :-1]
    labels = accounts[:, -1].astype(np.int64)
    edge_index = np.ascontiguousarray(edges.T).astype(np.int64)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0, ddof=1), 1e-12)
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(edge_index),
        y=torch.from_numpy(labels),
    )
    return add_fixed_splits(data, folder / files[2])


def _read_columns(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """Return columns of a file as numbers, ``[rows, names]``."""
    require_memory(4 * path.stat().st_size, str(path))
    # Dates stay text, so that their digits can be read as one number.
    types = {"created_at": pa.string(), "updated_at": pa.string()}
    convert = csv.ConvertOptions(column_types=types, include_columns=list(names))
    try:
        table = csv.read_csv(path, convert_options=convert)
        columns = [_numbers(table.column(name)) for name in names]
    except (pa.ArrowException, KeyError) as error:
        raise UserError(f"{path}: cannot be read: {first_line(error)}; {_AGAIN}") from None
    content = np.stack(columns, axis=1)
    if not np.isfinite(content).all():
        column = names[int(np.isfinite(content).all(axis=0).argmin())]
        raise UserError(f"{path}: the column {column!r} has missing values; {_AGAIN}")
    return content


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Return numbers as they are, dates by their digits, and other text by first appearance."""
    if pa.types.is_string(column.type):
        digits = compute.replace_substring(column, "-", "")
        if compute.all(compute.utf8_is_digit(digits)).as_py():
            column = digits.cast(pa.int64())
        else:
            column = column.combine_chunks().dictionary_encode().indices
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
