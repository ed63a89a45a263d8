"""Load the graph that a command names, or the graph of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.cli import values
from nfgnn.cli._print import print_notes
from nfgnn.data import (
    TableEncoding,
    canonical_name,
    load_dataset,
    local_path,
    node_columns,
    registered_name,
)
from nfgnn.errors import UserError
from nfgnn.files import expand_user
from nfgnn.object_store import is_remote
from nfgnn.store import Store, is_store


def load_graph(
    dataset: str,
    root: Path | None,
    column: list[str] | None,
    need_labels: bool = True,
    encoding: TableEncoding | None = None,
) -> Data:
    """Return a graph, or the labels of a store, and print notes about it.

    Args:
        dataset: name or path.
        root: folder with raw datasets.
        column: the values of ``--column``.
        need_labels: refuse a graph without two classes.
        encoding: how a trained model encodes the columns of a table.
    """
    if is_store(dataset):
        return Store.open(dataset).labels()
    options: dict[str, Any] = values.columns(column)
    data: Data = load_dataset(
        dataset, root=root, need_labels=need_labels, encoding=encoding, **options
    )
    print_notes(data)
    return data


@dataclass(frozen=True)
class GraphSource:
    """Where a graph is read from."""

    dataset: str
    """Name or path."""
    root: Path | None
    columns: list[str]
    """Values of ``--column``."""


def source_record(dataset: str, root: Path | None, column: list[str] | None) -> dict[str, Any]:
    """Return where the graph of a run was read from, to be stored in its summary."""
    place = registered_name(dataset)
    if place is None:
        place = dataset if is_remote(dataset) else str(expand_user(dataset).resolve())
    record: dict[str, Any] = {"dataset": place, "columns": column or []}
    if root is not None:
        record["root"] = str(expand_user(root).resolve())
    return record


def source_arguments(dataset: str, root: Path | None, column: list[str] | None) -> list[str]:
    """Return the command-line arguments that select a graph from any working directory."""
    record = source_record(dataset, root, column)
    arguments = [record["dataset"]]
    for entry in record["columns"]:
        arguments += ["--column", entry]
    if "root" in record:
        arguments += ["--root", record["root"]]
    return arguments


def source_of_run(
    summary: Mapping[str, Any], dataset: str | None, root: Path | None, column: list[str] | None
) -> GraphSource:
    """Return where to read a graph for a run; arguments not given default to those of training.

    Args:
        summary: of the run.
        dataset: name or path; by default the graph of the run.
        root: folder with raw datasets.
        column: the values of ``--column``.
    """
    recorded = _recorded_source(summary)
    if not recorded and canonical_name(summary["dataset"]):
        recorded = {"dataset": summary["dataset"]}
    place = dataset or recorded.get("dataset")
    if place is None:
        raise UserError("the run does not record where its graph is: pass the graph (DATASET)")
    if root is None and recorded.get("root"):
        root = Path(recorded["root"])
    columns = column or []
    if not columns and registered_name(place) is None:
        columns = _found_columns(recorded.get("columns") or [], place)
    return GraphSource(place, root, columns)


def _recorded_source(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source recorded in the summary of a run; older versions did not record it."""
    recorded = summary.get("source") or {}
    well_formed = isinstance(recorded, dict) and isinstance(recorded.get("columns", []), list)
    if well_formed:
        texts = [recorded.get("dataset", ""), recorded.get("root", "")]
        texts += recorded.get("columns", [])
        well_formed = all(isinstance(text, str) for text in texts)
    if not well_formed:
        raise UserError(
            "summary.json: the field source does not describe a graph; pass the graph "
            "(DATASET), or restore the file from a copy"
        )
    return dict(recorded)


def _found_columns(columns: list[str], place: str) -> list[str]:
    """Drop the label and split columns that another node table does not have."""
    if not columns or is_store(place):
        return columns
    folder = local_path(place)
    if not folder.is_dir():
        return columns
    names = node_columns(folder)
    optional = [f"{role}={name}" for role in ("label", "split", "drop") for name in names]
    roles = ("label=", "split=", "drop=")
    return [item for item in columns if not item.startswith(roles) or item in optional]
