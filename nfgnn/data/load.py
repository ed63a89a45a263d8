"""``load_dataset``: whatever the user has, turned into one checked graph."""

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from scipy import sparse
from torch_geometric.data import Data

from nfgnn.data.download import download
from nfgnn.data.entry import Entry
from nfgnn.data.paths import find
from nfgnn.data.processed_cache import recall, remember
from nfgnn.data.readers.folder import Columns, read_folder
from nfgnn.data.readers.npz import read_npz
from nfgnn.data.readers.objects import from_frames, from_networkx, from_scipy, is_networkx
from nfgnn.data.readers.saved import read_saved
from nfgnn.data.registry import REGISTRY, canonical_name, names
from nfgnn.data.synthetic import mixed_graph
from nfgnn.data.validate import check_graph
from nfgnn.errors import UserError

_FILES = {".npz": read_npz, ".pt": read_saved, ".pth": read_saved, ".safetensors": read_saved}


def load_dataset(
    source: Any = "mixed",
    root: str | Path | None = None,
    *,
    need_labels: bool = True,
    **options: Any,
) -> Data:
    """Load a graph by name, from files, or from an object in Python.

    Args:
        source: a registered name in any spelling (``nfgnn datasets`` lists them); a folder with ``nodes``
            and ``edges`` as CSV or Parquet; an ``.npz``, ``.pt`` or ``.safetensors`` file; a PyG ``Data``; a NetworkX
            graph; or a SciPy sparse adjacency matrix.
        root: folder of raw files to look in first; then ``NFGNN_DATA``, the cache folder, and a download.
        need_labels: refuse a graph without two classes; ``False`` for a graph that is only predicted on.
        **options: for the generated graph the arguments of :func:`mixed_graph`; for tables the names of columns
            (``id_column``, ``label_column``, ``split_column``, ``source_column``, ``target_column``,
            ``weight_column``, ``drop_columns``); for NetworkX and SciPy ``x`` and ``y``; for data frames
            ``nodes`` and ``edges``.

    Returns:
        The graph as :func:`nfgnn.data.check_graph` leaves it; ``data.notes`` says what was mended.
    """
    if "nodes" in options or "edges" in options:
        frames = options.pop("nodes", None), options.pop("edges", None)
        return check_graph(
            from_frames(*frames, _columns(options)),
            need_labels=need_labels,
            where="the data frames",
        )
    if isinstance(source, str | Path):
        name = registered_name(source)
        if name is not None:
            return _load_named(name, root, options)
        return _load_path(Path(source).expanduser(), str(source), need_labels, _columns(options))
    return _load_object(source, need_labels, options)


def registered_name(source: str | Path) -> str | None:
    """The registered dataset that :func:`load_dataset` understands by ``source``; ``None`` where it is a path."""
    return (
        None if Path(source).exists() and _looks_like_path(source) else canonical_name(str(source))
    )


def _looks_like_path(source: str | Path) -> bool:
    """A folder called ``cora`` must not hide the dataset; ``./cora`` and ``cora/`` mean the folder."""
    return (
        isinstance(source, Path)
        or canonical_name(source) is None
        or any(sign in source for sign in "/\\.")
    )


def _load_named(name: str, root: str | Path | None, options: dict[str, Any]) -> Data:
    if name == "mixed":
        try:
            return mixed_graph(**options)
        except TypeError as error:
            raise UserError(f"mixed: {str(error).removeprefix('mixed_graph() ')}") from None
    if options:
        raise UserError(f"{name} takes no option {next(iter(options))!r}.")
    if name == "karate":
        from torch_geometric.datasets import KarateClub

        return check_graph(KarateClub()[0], name=name)
    return _load_entry(REGISTRY[name], root)


def _load_entry(entry: Entry, root: str | Path | None) -> Data:
    folder = find(entry, root) or download(entry)
    mapped = entry.name == "ogbn-papers100m"  # its graph stays on disk, so there is nothing to keep
    data = None if mapped else recall(entry, folder)
    if data is None:
        try:
            raw = entry.reader(entry, folder)
        except UserError:
            raise
        except Exception as error:  # a damaged file can make a reader stumble over anything
            raise UserError(
                f"{entry.name}: the files in {folder} cannot be read: {_reason(error)}"
            ) from None
        data = check_graph(raw, name=entry.name, metric=entry.metric, sorted_edges=mapped)
        if not mapped:
            remember(entry, folder, data)
    if entry.defect:
        data.notes = [f"known defect: {entry.defect}", *data.notes]
    return data


def _load_path(path: Path, given: str, need_labels: bool, columns: Columns) -> Data:
    if not path.exists():
        close = get_close_matches(given.lower(), names(), n=3)
        hint = (
            f"did you mean {' or '.join(close)}?" if close else "`nfgnn datasets` lists the names."
        )
        raise UserError(f"{given!r} is neither a dataset nor a file or folder that exists; {hint}")
    try:
        if path.is_dir():
            data = read_folder(path, columns)
        elif path.suffix.lower() in _FILES:
            data = _FILES[path.suffix.lower()](path)
        else:
            raise UserError(
                f"{path.name}: graphs are read from a folder with nodes.csv and edges.csv (or .parquet), or "
                f"from a {', '.join(_FILES)} file."
            )
    except UserError:
        raise
    except Exception as error:  # a damaged file can make a reader stumble over anything
        raise UserError(f"{path.name}: cannot be read as a graph: {_reason(error)}") from None
    return check_graph(
        data,
        name=path.stem or path.resolve().stem,
        need_labels=need_labels,
        where=path.name or given,
    )


def _load_object(source: Any, need_labels: bool, options: dict[str, Any]) -> Data:
    x, y = options.pop("x", None), options.pop("y", None)
    if isinstance(source, Data):
        _columns(options)
        return check_graph(source, need_labels=need_labels)
    if sparse.issparse(source):
        _columns(options)
        return check_graph(
            from_scipy(source, x, y), need_labels=need_labels, where="the sparse matrix"
        )
    if is_networkx(source):
        data = from_networkx(source, _columns(options), x, y)
        return check_graph(
            data,
            name=str(source.name or "graph"),
            need_labels=need_labels,
            where="the NetworkX graph",
        )
    raise UserError(
        f"a {type(source).__name__} is not a graph; give a name, a path, a PyG Data, a NetworkX graph, a "
        "SciPy sparse adjacency matrix, or nodes= and edges= as data frames."
    )


def _columns(options: dict[str, Any]) -> Columns:
    known = {field.name for field in fields(Columns)}
    for name in options:
        if name not in known:
            raise UserError(
                f"there is no option {name!r}; the options are {', '.join(sorted(known))}."
            )
    drop = options.get("drop_columns", ())
    return Columns(**{**options, "drop_columns": (drop,) if isinstance(drop, str) else tuple(drop)})


def _reason(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
