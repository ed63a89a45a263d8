"""``load_dataset`` and ``open_large``: from any source to one validated graph."""

from collections.abc import Callable
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from scipy import sparse
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub

from nfgnn.data.download import download, find_raw_files
from nfgnn.data.fingerprints import known_fingerprints, recognise
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.messages import first_line
from nfgnn.data.processed_cache import load_processed, save_processed
from nfgnn.data.published import check_raw_files, check_small_files, published_file
from nfgnn.data.readers.array_folder import is_array_folder, read_array_folder
from nfgnn.data.readers.columns import Columns
from nfgnn.data.readers.feature_columns import TableEncoding
from nfgnn.data.readers.graph_tables import open_graph_folder, read_graph_folder
from nfgnn.data.readers.mapped_graph import open_array_folder, open_npz
from nfgnn.data.readers.npz import declared_bytes, read_npz
from nfgnn.data.readers.npz_members import check_members
from nfgnn.data.readers.python_objects import from_frames, from_networkx, from_scipy, is_networkx
from nfgnn.data.readers.saved_tensors import open_saved_tensors, read_saved_tensors
from nfgnn.data.readers.tables import estimate_bytes, find_table
from nfgnn.data.registry import REGISTRY, Entry, canonical_name, names
from nfgnn.data.remote_graph import local_path
from nfgnn.data.synthetic import mixed_graph
from nfgnn.data.validate import check_graph
from nfgnn.errors import UserError, system_error
from nfgnn.files import expand_user, require_regular_file
from nfgnn.object_store import is_remote

_FILE_READERS: dict[str, Callable[[Path], Data]] = {
    ".npz": read_npz,
    ".pt": read_saved_tensors,
    ".pth": read_saved_tensors,
    ".safetensors": read_saved_tensors,
}
_TENSOR_FILES = (".pt", ".pth", ".safetensors")


def load_dataset(
    source: Any = "mixed",
    root: str | Path | None = None,
    *,
    need_labels: bool = True,
    encoding: TableEncoding | None = None,
    **options: Any,
) -> Data:
    """Load a graph by name, from files, or from a Python object.

    Args:
        source: a registered name in any spelling (``nfgnn datasets`` lists them); a folder with
            ``nodes`` and ``edges`` as CSV or Parquet; an ``.npz``, ``.pt`` or ``.safetensors``
            file; a folder with the arrays of an ``.npz`` file as ``.npy`` files; the URL of such a
            file or folder, as ``s3://bucket/graph``; a PyG ``Data``; a NetworkX graph; or a SciPy
            sparse adjacency matrix.
        root: data root that is searched first, before ``NFGNN_DATA`` and the cache folder. Data
            sets that are not found are downloaded to the cache folder.
        need_labels: refuse a graph without two classes; ``False`` for a graph to predict on.
        encoding: how the columns of another table were encoded (``data.feature_encoding``, or
            ``NodeClassifier.feature_encoding_``), for a graph to predict on.
        **options: for the generated graph the arguments of :func:`mixed_graph`; for tables the
            names of columns (``id_column``, ``label_column``, ``split_column``,
            ``source_column``, ``target_column``, ``weight_column``, ``drop_columns``,
            ``category_columns``); for NetworkX and SciPy ``x`` and ``y``; for data frames ``nodes``
            and ``edges``.

    Returns:
        The graph as :func:`nfgnn.data.check_graph` returns it; ``data.notes`` lists what was fixed.
        ``data.registered_name`` is set if the graph is a registered data set: by the name that it
        was loaded under, or by its content, never by the name of a file. It selects the preset.
    """
    if "nodes" in options or "edges" in options:
        nodes = options.pop("nodes", None)
        edges = options.pop("edges", None)
        data = from_frames(nodes, edges, _columns(options), encoding)
        return _recognised(check_graph(data, need_labels=need_labels, where="the data frames"))
    if isinstance(source, str | Path):
        name = registered_name(source)
        if name is not None:
            data = _load_named(name, root, options)
            data.registered = True
            data.registered_name = name
            return data
        path = local_path(source)
        columns = _columns(options)
        return _recognised(_load_path(path, str(source), need_labels, columns, encoding))
    data = _recognised(_load_object(source, need_labels, options, encoding))
    _keep_name(source, data)
    return data


def _recognised(data: Data) -> Data:
    """Set the registered name of a graph that has the content of a registered data set."""
    name = recognise(data)
    if name is not None:
        data.registered_name = name
        data.metric = REGISTRY[name].metric
        data.notes = [
            *data.notes,
            f"the graph has the content of the data set {name}, whose presets apply",
        ]
    return data


def _keep_name(source: Any, data: Data) -> None:
    """Keep the name that a ``Data`` was loaded under, if its content cannot confirm the name."""
    if isinstance(source, Data) and data.get("registered_name") is None:
        name = source.get("registered_name")
        if name is not None and name not in known_fingerprints():
            data.registered_name = name


def graph_paths(path: str | Path) -> list[Path]:
    """Return the graphs that a path stands for: itself, or all in a folder that is not a graph."""
    path = expand_user(path)
    if not path.is_dir() or _is_graph(path):
        return [path]
    found = sorted(entry for entry in path.iterdir() if _is_graph(entry))
    if not found:
        raise UserError(
            f"{path}: contains no graph; a graph is a folder with nodes.csv and edges.csv (or "
            f".parquet), or a {', '.join(_FILE_READERS)} file."
        )
    return found


def _is_graph(path: Path) -> bool:
    if path.is_dir():
        return any(path.glob("edges.*")) or any(path.glob("nodes.*"))
    return path.suffix.lower() in _FILE_READERS


def registered_name(source: str | Path) -> str | None:
    """Return the data set that :func:`load_dataset` loads for ``source``, ``None`` for a path.

    A folder called ``cora`` does not hide the data set; ``./cora`` and ``cora/`` mean the folder.
    """
    name = canonical_name(str(source))
    is_path = isinstance(source, Path) or any(sign in source for sign in "/\\.")
    return None if is_path and Path(source).exists() else name


def open_large(
    source: str | Path, root: str | Path | None = None, **options: Any
) -> LargeGraph | None:
    """Open a graph that is read in blocks, or return ``None`` if its format has no such reader.

    Five formats have one: a folder with ``nodes`` and ``edges`` (CSV or Parquet), an ``.npz`` file,
    a folder with its arrays as ``.npy`` files, a ``.pt`` or ``.safetensors`` file, and the raw
    files of ogbn-papers100M.

    Args:
        source: as for :func:`nfgnn.data.load_dataset`.
        root: as for :func:`nfgnn.data.load_dataset`.
        **options: names of columns, as for :func:`nfgnn.data.load_dataset`.
    """
    path = local_path(source)
    large = _open_large_path(path, _columns(options))
    if large is not None:
        if is_remote(source):
            # The times of the local copy would not be those of the copy on another machine.
            return replace(large, source=str(source), fingerprint=path.parent.name)
        return large
    entry = REGISTRY.get(canonical_name(str(source)) or "")
    if entry is None or entry.large_reader is None:
        return None
    folder = find_raw_files(entry, root)
    if folder is None:
        return None
    check_small_files(entry, folder)
    return replace(entry.large_reader(folder, entry.required), registered_name=entry.name)


def _open_large_path(path: Path, columns: Columns) -> LargeGraph | None:
    if is_array_folder(path):
        return open_array_folder(path)
    if path.is_dir() and any(path.glob("edges.*")):
        return open_graph_folder(path, columns)
    if path.suffix == ".npz" and path.is_file():
        return open_npz(path)
    if path.suffix.lower() in _TENSOR_FILES and path.is_file():
        return open_saved_tensors(path)
    return None


def loaded_bytes(source: str | Path, root: str | Path | None = None) -> int:
    """Estimate the memory that :func:`load_dataset` needs; an upper estimate.

    The result is 0 for sources that :func:`open_large` cannot open.
    """
    path = local_path(source)
    if is_array_folder(path):
        return 4 * sum(file.stat().st_size for file in path.glob("*.npy"))
    if path.is_dir() and any(path.glob("edges.*")):
        return sum(estimate_bytes(find_table(path, stem)) for stem in ("nodes", "edges"))
    if path.suffix == ".npz" and path.is_file():
        return 4 * max(path.stat().st_size, declared_bytes(path))
    if path.suffix.lower() in _TENSOR_FILES and path.is_file():
        return 4 * path.stat().st_size
    entry = REGISTRY.get(canonical_name(str(source)) or "")
    if entry is None or entry.large_reader is None or find_raw_files(entry, root) is None:
        return 0
    return 4 * entry.nodes * entry.features + 200 * entry.edges


def held_bytes(source: str | Path, root: str | Path | None = None) -> int:
    """Estimate the memory that a loaded graph keeps, for sources without a reader in blocks.

    Reading it takes more for a while. The result is 0 for other sources.
    """
    name = registered_name(source)
    path = local_path(source)
    if name is None:
        is_file = path.suffix.lower() in _TENSOR_FILES and path.is_file()
        return path.stat().st_size if is_file else 0
    entry = REGISTRY.get(name)
    if entry is None or entry.large_reader is not None:
        return 0
    folder = find_raw_files(entry, root)
    files = int(1e6 * entry.megabytes)
    if folder is not None:
        files = sum((folder / file).stat().st_size for file in entry.required)
    # Features are dense, or sparse and then hardly smaller than in the files. The edges are two
    # numbers of 8 bytes in both directions.
    features = min(4 * entry.nodes * entry.features, files)
    return features + 32 * entry.edges + 8 * entry.nodes


def _load_named(name: str, root: str | Path | None, options: dict[str, Any]) -> Data:
    if name == "mixed":
        try:
            return mixed_graph(**options)
        except TypeError as error:
            raise UserError(f"mixed: {str(error).removeprefix('mixed_graph() ')}") from None
    if options:
        raise UserError(
            f"{name} has no option {next(iter(options))!r}; leave it out: columns are chosen for "
            "tables only."
        )
    if name == "karate":
        return check_graph(KarateClub()[0], name=name, metric="accuracy")
    return _load_entry(REGISTRY[name], root)


def _load_entry(entry: Entry, root: str | Path | None) -> Data:
    folder = find_raw_files(entry, root) or download(entry)
    if entry.large_reader is not None:  # the graph stays on disk and is not cached
        check_small_files(entry, folder)
        data = _read_entry(entry, folder)
    else:
        hashes = check_raw_files(entry, folder)
        data = load_processed(entry, hashes)
        if data is None:
            data = _read_entry(entry, folder)
            save_processed(entry, hashes, data)
    if entry.defect:
        data.notes = [f"known data issue: {entry.defect}", *data.notes]
    return data


def _read_entry(entry: Entry, folder: Path) -> Data:
    mapped = entry.large_reader is not None
    try:
        if not mapped:
            _check_declared_sizes(entry, folder)
        raw = entry.read(folder)
    except UserError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{entry.name}: the files in {folder} cannot be read: {first_line(error)}; "
            "download them again."
        ) from None
    return check_graph(raw, name=entry.name, metric=entry.metric, sorted_edges=mapped)


def _check_declared_sizes(entry: Entry, folder: Path) -> None:
    """Check archives whose content is not pinned, before a reader unpacks them."""
    for file in entry.required:
        if file.endswith(".npz") and published_file(entry, file) is None:
            check_members(folder / file)


def _load_path(
    path: Path, given: str, need_labels: bool, columns: Columns, encoding: TableEncoding | None
) -> Data:
    if not path.exists():
        close = get_close_matches(given.lower(), names(), n=3)
        hint = "`nfgnn datasets` lists the names."
        if close:
            hint = f"did you mean {' or '.join(close)}?"
        raise UserError(f"{given!r} is neither a data set nor an existing file or folder; {hint}")
    suffix = path.suffix.lower()
    if not path.is_dir() and suffix not in _FILE_READERS:
        raise UserError(
            f"{path}: graphs are read from a folder with nodes.csv and edges.csv (or "
            f".parquet), or from a {', '.join(_FILE_READERS)} file. Put tables into a folder under "
            "these names, and pass the folder."
        )
    if not path.is_dir():
        require_regular_file(path)
    try:
        if is_array_folder(path):
            data = read_array_folder(path)
        elif path.is_dir():
            data = read_graph_folder(path, columns, encoding)
        else:
            data = _FILE_READERS[suffix](path)
    except UserError:
        raise
    except PermissionError as error:
        raise system_error(error, path) from None
    except Exception as error:  # a damaged file can fail in any way
        raise UserError(
            f"{path.name}: cannot be read as a graph: {first_line(error)}; create the file again."
        ) from None
    name = path.stem or path.resolve().stem
    return check_graph(data, name=name, need_labels=need_labels, where=path.name or given)


def _load_object(
    source: Any, need_labels: bool, options: dict[str, Any], encoding: TableEncoding | None
) -> Data:
    x = options.pop("x", None)
    y = options.pop("y", None)
    columns = _columns(options)
    if isinstance(source, Data):
        return check_graph(source, need_labels=need_labels)
    if sparse.issparse(source):
        data = from_scipy(source, x, y)
        return check_graph(data, need_labels=need_labels, where="the sparse matrix")
    if is_networkx(source):
        data = from_networkx(source, columns, x, y, encoding)
        name = str(source.name or "graph")
        return check_graph(data, name=name, need_labels=need_labels, where="the NetworkX graph")
    raise UserError(
        f"a {type(source).__name__} is not a graph; pass a name, a path, a PyG Data, a NetworkX "
        "graph, a SciPy sparse adjacency matrix, or nodes= and edges= as data frames."
    )


def _columns(options: dict[str, Any]) -> Columns:
    available = sorted(field.name for field in fields(Columns))
    for name in options:
        if name not in available:
            raise UserError(f"there is no option {name!r}; options are {', '.join(available)}.")
    several = {}
    for name in ("drop_columns", "category_columns"):
        listed = options.get(name, ())
        several[name] = (listed,) if isinstance(listed, str) else tuple(listed)
    return Columns(**{**options, **several})
