"""Predictions as a table, written as CSV or Parquet."""

from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier


def prediction_table(classifier: NodeClassifier, data: Data) -> Any:
    """``id``, ``predicted`` class, its ``probability`` and its ``margin`` over the next class, a row per node."""
    import pyarrow as pa

    top = classifier.predict_proba(data).topk(min(2, classifier.num_classes_))
    best, second = top.values[:, 0], top.values[:, 1] if classifier.num_classes_ > 1 else 0.0
    names = np.array(classifier.class_names_ or [str(c) for c in range(classifier.num_classes_)])
    ids = data.get("node_ids")
    return pa.table(
        {
            "id": pa.array(np.arange(data.num_nodes) if ids is None else ids),
            "predicted": pa.array(names[top.indices[:, 0].numpy()]),
            "probability": pa.array(best.numpy()),
            "margin": pa.array((best - second).numpy()),
        }
    )


def write_table(table: Any, path: Path) -> None:
    """Write under a temporary name, then rename."""
    from pyarrow import csv, parquet

    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    if path.suffix.lower() not in writers:
        raise UserError(f"{path} has an unknown ending: write predictions to a .csv or .parquet file")
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist: make it, or name another file")
    partial = path.with_name(f".{path.name}.partial")
    try:
        writers[path.suffix.lower()](table, str(partial))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
