"""Predictions as a table, written as CSV or Parquet."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import ids_as_array, split
from nfgnn.errors import UserError
from nfgnn.existing_output import output_file, refuse_foreign_file
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.inputs import fingerprint
from nfgnn.training.metrics import parts
from nfgnn.training.predict_new_nodes import predict_new_nodes
from nfgnn.training.records.read_run_folder import read_description
from nfgnn.training.scoring import Predictor
from nfgnn.training.split_check import class_names

_WHAT = "a table of predictions"
_FIRST_COLUMNS = ("id", "predicted", "probability")
_MARKER = {"nfgnn": "predictions, format 1"}


def prediction_table(
    classifier: Predictor,
    data: Data,
    extends: Data | None = None,
    probabilities: bool = False,
    shares: Tensor | None = None,
) -> Any:
    """Return a pyarrow table with one row per node.

    The columns are ``id``, the ``predicted`` class, its ``probability``, and its ``margin`` over
    the second most probable class. A graph with labels adds ``label``, one with the split of the
    run (:func:`split_of_run`) adds ``part``; both are empty for other nodes.

    Args:
        classifier: the trained model.
        data: the graph, or new nodes only.
        extends: the graph that the new nodes of ``data`` belong to
            (:func:`~nfgnn.training.predict_new_nodes.predict_new_nodes`).
        probabilities: add a column ``probability_CLASS`` for every class.
        shares: the class probabilities, if they are known.
    """
    import pyarrow as pa

    if extends is None and shares is None:
        shares = classifier.predict_proba(data)
    elif extends is not None and isinstance(classifier, NodeClassifier):
        shares = predict_new_nodes(classifier, extends, data)
    elif shares is None:
        raise UserError(
            "an ensemble needs the whole graph: predict on the extended graph, or use the best "
            "single model (--single)"
        )
    if not bool(shares.isfinite().all()):
        raise UserError(
            "the model returns probabilities that are not numbers: check the features and edge "
            "weights of the graph for very large values"
        )
    classes = classifier.num_classes_
    names = np.array(classifier.class_names_ or [str(c) for c in range(classes)])
    top = shares.topk(min(2, classes))
    best = top.values[:, 0]
    margin = best - top.values[:, 1] if classes > 1 else best
    ids = data.get("node_ids")
    if ids is None:
        ids = np.arange(len(shares))
    columns = {
        "id": ids_as_array(ids),
        "predicted": pa.array(names[top.indices[:, 0].numpy()]),
        "probability": pa.array(best.numpy()),
        "margin": pa.array(margin.numpy()),
        **_known_columns(data),
    }
    if probabilities:
        for name, share in zip(names, shares.T):
            columns[f"probability_{name}"] = pa.array(share.contiguous().numpy())
    return pa.table(columns)


def split_of_run(run: Path, seed: int, data: Data) -> Data:
    """Return the graph with the split of a run; without any split if the run had another graph."""
    description = read_description(run)
    if fingerprint(data) == description["fingerprint"]:
        return split(data, description["protocol"], seed)
    return data


def _known_columns(data: Data) -> dict[str, Any]:
    """Return the labels of the nodes and their parts of the split, as far as they are known."""
    import pyarrow as pa

    found = {}
    y = data.get("y")
    if y is not None and bool((y >= 0).any()):
        names = np.array([*class_names(data), None], dtype=object)  # -1 is the last
        found["label"] = pa.array(names[y.numpy()], pa.string())
    if data.get("split_seed") is not None:
        part_of = np.full(data.num_nodes, None, dtype=object)
        for part, nodes in parts(data).items():
            part_of[nodes.numpy()] = part
        found["part"] = pa.array(part_of, pa.string())
    return found


def write_table(table: Any, path: Path, overwrite: bool = False) -> None:
    """Write a table of predictions atomically; the extension chooses CSV or Parquet.

    Args:
        table: from :func:`prediction_table`.
        path: the file.
        overwrite: replace an existing table of other predictions.
    """
    from pyarrow import parquet
    from pyarrow.csv import write_csv

    writers = {".csv": write_csv, ".parquet": parquet.write_table}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise UserError(f"cannot write predictions to {path}: use a .csv or .parquet file")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder {path.parent} does not exist: create it or choose another file"
        )
    marked = table.replace_schema_metadata(_MARKER)
    with output_file(path, _holds_predictions, _WHAT, overwrite) as partial:
        write(marked, str(partial))


def check_table_output(path: Path) -> None:
    """Refuse a file that exists and is no table of predictions; call it before long work."""
    refuse_foreign_file(path, _holds_predictions, _WHAT)


def _holds_predictions(path: Path) -> bool:
    """Whether a CSV or Parquet file has the columns of :func:`prediction_table`.

    CSV has no place for a marker but the names of its columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        if path.suffix.lower() == ".parquet":
            names = parquet.read_schema(path).names
        else:
            with path.open(encoding="utf-8") as file:
                names = next(csv.reader(file), [])
    except (pa.ArrowException, UnicodeDecodeError, csv.Error):
        return False
    return tuple(names[: len(_FIRST_COLUMNS)]) == _FIRST_COLUMNS
