"""Predictions as a table, written as CSV or Parquet."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier
from nfgnn.training.predict_new_nodes import predict_new_nodes


def prediction_table(classifier: NodeClassifier, data: Data, extends: Data | None = None) -> Any:
    """``id``, ``predicted`` class, its ``probability`` and its ``margin`` over the next class, a row per node.

    Where ``extends`` is given, ``data`` holds new nodes of that graph (:func:`predict_new_nodes`).
    """
    import pyarrow as pa

    if extends is None:
        data = align_features(data, classifier.feature_names_)
        probabilities = classifier.predict_proba(data)
    else:
        probabilities = predict_new_nodes(classifier, extends, data)
    top = probabilities.topk(min(2, classifier.num_classes_))
    best, second = top.values[:, 0], top.values[:, 1] if classifier.num_classes_ > 1 else 0.0
    names = np.array(classifier.class_names_ or [str(c) for c in range(classifier.num_classes_)])
    ids = data.get("node_ids")
    return pa.table(
        {
            "id": _ids(np.arange(len(probabilities)) if ids is None else ids),
            "predicted": pa.array(names[top.indices[:, 0].numpy()]),
            "probability": pa.array(best.numpy()),
            "margin": pa.array((best - second).numpy()),
        }
    )


def _ids(ids: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.array(ids)
    except pa.ArrowException:  # ids of several types, as NetworkX allows them
        return pa.array([str(name) for name in ids])


def align_features(data: Data, trained: list[str] | None) -> Data:
    """The graph with its features in the order of training, where both know their names."""
    names = data.get("feature_names")
    if not trained or not names or names == trained:
        return data
    missing = [name for name in trained if name not in set(names)]
    if missing:
        raise UserError(
            f"the model was trained with {len(trained)} features, of which this graph lacks {len(missing)}: "
            f"{', '.join(missing[:5])}{', …' if len(missing) > 5 else ''}"
        )
    place = {name: i for i, name in enumerate(names)}
    aligned = copy.copy(data)
    aligned.x = data.x.to_dense()[:, [place[name] for name in trained]]
    aligned.feature_names = trained
    return aligned


def write_table(table: Any, path: Path) -> None:
    """Write under a temporary name, then rename."""
    from pyarrow import csv, parquet

    writers = {".csv": csv.write_csv, ".parquet": parquet.write_table}
    if path.suffix.lower() not in writers:
        raise UserError(
            f"{path} has an unknown ending: write predictions to a .csv or .parquet file"
        )
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist: make it, or name another file")
    partial = path.with_name(f".{path.name}.partial")
    try:
        writers[path.suffix.lower()](table, str(partial))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
