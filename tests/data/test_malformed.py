"""Hundreds of malformed inputs: each gives a valid graph or one message that names the file.

Nothing else may happen: no other exception, no file written, nothing unpickled.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from safetensors.torch import save
from torch_geometric.data import Data

from nfgnn.data import load_dataset
from nfgnn.errors import UserError

MANY = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
WORDS = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "-1",
            "nan",
            "inf",
            "1e400",
            "NULL",
            "id",
            "0.5",
            '"',
            "'",
            "a,b",
            "train",
            " ",
            "\u202e",
        ]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=6),
)


def outcome(source: Any, names: tuple[str, ...], **options: Any) -> None:
    """Load; check what comes out, or that the message names one of ``names``."""
    try:
        data = load_dataset(source, **options)
    except UserError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert any(name in message for name in names), f"{message} names none of {names}"
        # Several errors are a numbered list.
        _, *lines = message.strip().split("\n")
        assert [line.split(". ")[0] for line in lines] == [str(i + 1) for i in range(len(lines))]
        return
    assert data.x.dtype == torch.float32
    assert data.x.size(0) == data.y.size(0) == data.num_nodes
    values = data.x.values() if data.x.layout == torch.sparse_csr else data.x
    assert bool(torch.isfinite(values).all())
    row, col = data.edge_index
    key = row * data.num_nodes + col
    assert bool((key.diff() > 0).all())
    assert torch.equal((col * data.num_nodes + row).sort().values, key)
    assert bool((row != col).all())
    assert int(data.y.min()) >= -1
    assert int(data.y.max()) < data.num_classes == len(data.class_names)


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_folder(
    root: pytest.TempPathFactory, files: dict[str, bytes], names: tuple[str, ...], single: str = ""
) -> None:
    folder = root.mktemp("graph")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    before = listing(folder)
    outcome(folder / single if single else folder, names)
    assert listing(folder) == before


@st.composite
def table(draw: st.DrawFn, columns: list[str]) -> bytes:
    """Draw a valid CSV file and damage it."""
    names = list(columns)
    for _ in range(draw(st.integers(0, 2))):
        names[draw(st.integers(0, len(names) - 1))] = draw(
            st.sampled_from([*columns, "other", "", " id", "ID", "x"])
        )
    lines = [names]
    for i in range(draw(st.integers(0, 6))):
        row = [
            draw(st.one_of(st.just(str(i)), WORDS)) if draw(st.integers(0, 3)) == 0 else str(i % 3)
            for _ in names
        ]
        if draw(st.integers(0, 12)) == 0:
            row = row[: draw(st.integers(0, len(row)))]
        lines.append(
            row if columns[0] != "id" or draw(st.integers(0, 5)) == 0 else [str(i), *row[1:]]
        )
    delimiter = draw(st.sampled_from([",", ",", ",", ";", "\t"]))
    text = "\n".join(delimiter.join(line) for line in lines)
    content = text.encode("utf-8", errors="surrogatepass")
    return draw(
        st.sampled_from(
            [content, content, content, b"", b"\xff\xfe" + content, content[: len(content) // 2]]
        )
    )


@settings(MANY, max_examples=260)
@given(table(["id", "label", "split", "a", "b"]), table(["source", "target", "weight"]))
def test_csv(tmp_path_factory: pytest.TempPathFactory, nodes: bytes, edges: bytes) -> None:
    in_folder(
        tmp_path_factory,
        {"nodes.csv": nodes, "edges.csv": edges},
        ("nodes.csv", "edges.csv", "graph"),
    )


def good_parquet() -> tuple[bytes, bytes]:
    nodes, edges = io.BytesIO(), io.BytesIO()
    parquet.write_table(
        pa.table({"id": list("abcdef"), "label": [0, 1] * 3, "f": np.arange(6.0)}), nodes
    )
    parquet.write_table(pa.table({"source": list("abc"), "target": list("def")}), edges)
    return nodes.getvalue(), edges.getvalue()


@settings(MANY, max_examples=120)
@given(st.data())
def test_damaged_parquet(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    files = dict(zip(("nodes.parquet", "edges.parquet"), good_parquet()))
    name = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[name])
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    else:
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    in_folder(
        tmp_path_factory,
        files | {name: bytes(content)},
        ("nodes.parquet", "edges.parquet", "graph"),
    )


COLUMNS = st.sampled_from(
    [
        pa.array([1, 2, 2**62]),
        pa.array([0.5, None, float("nan")]),
        pa.array(["x", "y", None]),
        pa.array([True, False, True]),
        pa.array([[1, 2], [3], []]),
        pa.array([{"a": 1}, {"a": 2}, None]),
        pa.array([b"\xff", b"\x00", b""]),
        pa.array([1, 2, 3], pa.timestamp("s")),
        pa.array([1, 2, 3], pa.decimal128(5, 2)),
        pa.array([None, None, None]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([1, 2, 2**64 - 1], pa.uint64()),
    ]
)


@settings(MANY, max_examples=120)
@given(st.lists(COLUMNS, min_size=3, max_size=3), st.lists(COLUMNS, min_size=3, max_size=3))
def test_parquet_of_odd_types(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[Any], edges: list[Any]
) -> None:
    files = {}
    for name, columns, titles in (
        ("nodes.parquet", nodes, ("id", "label", "f")),
        ("edges.parquet", edges, ("source", "target", "weight")),
    ):
        buffer = io.BytesIO()
        parquet.write_table(pa.table(dict(zip(titles, columns))), buffer)
        files[name] = buffer.getvalue()
    in_folder(tmp_path_factory, files, ("nodes.parquet", "edges.parquet", "graph"))


ARRAYS: dict[str, Callable[[], np.ndarray]] = {
    "links": lambda: np.array([[0, 1], [1, 2], [2, 0]]),
    "one link": lambda: np.array([[0, 1]]),
    "flat": lambda: np.arange(3),
    "gigantic": lambda: np.array([[0, 2**62], [1, 2]]),
    "negative": lambda: np.array([[0, -5]]),
    "small integers": lambda: np.array([[0, 1], [1, 2]], dtype=np.int8),
    "unsigned": lambda: np.array([[0, 2**64 - 1]], dtype=np.uint64),
    "floats": lambda: np.array([[0.5, 1.0], [2.0, np.nan], [1.0, 1.0]]),
    "features": lambda: np.eye(3, dtype=np.float32),
    "big-endian": lambda: np.eye(3, dtype=">f8"),
    "text": lambda: np.array(["a", "b", "a"]),
    "bytes": lambda: np.array([b"a", b"b", b"\xff"]),
    "objects": lambda: np.array([{}, [], None], dtype=object),
    "complex": lambda: np.eye(3, dtype=complex),
    "long double": lambda: np.eye(3, dtype=np.longdouble),
    "labels": lambda: np.array([0, 1, 1]),
    "scalar": lambda: np.array(3),
    "empty": lambda: np.zeros((0, 2)),
    "structured": lambda: np.zeros(3, dtype=[("a", "i4")]),
    "dates": lambda: np.zeros(3, dtype="datetime64[s]"),
    "masks": lambda: np.eye(3, dtype=bool),
    "pointers": lambda: np.array([0, 1, 9, 2]),
    "shape": lambda: np.array([3, 3]),
}
KEYS = [
    "edges", "node_features", "node_labels", "train_masks", "val_masks", "edge_weights",
    "node_ids", "class_names", "attr_data", "attr_indices", "attr_indptr", "attr_shape",
    "adj_data", "adj_indices", "adj_indptr", "adj_shape", "labels",
]  # fmt: skip


@settings(MANY, max_examples=200)
@given(
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(sorted(ARRAYS)), max_size=8),
    st.integers(0, 9),
    st.booleans(),
)
def test_npz(
    tmp_path_factory: pytest.TempPathFactory, kinds: dict[str, str], cut: int, start_right: bool
) -> None:
    if start_right:
        kinds = {"edges": "links", "node_features": "features", "node_labels": "labels"} | dict(
            list(kinds.items())[:1]
        )
    buffer = io.BytesIO()
    np.savez(buffer, **{key: ARRAYS[kind]() for key, kind in kinds.items()})
    content = buffer.getvalue()
    content = content[: len(content) // 2] if cut == 0 else content
    in_folder(tmp_path_factory, {"graph.npz": content}, ("graph.npz", "graph"), "graph.npz")


TENSORS: dict[str, Callable[[], Any]] = {
    "links": lambda: torch.tensor([[0, 1, 2], [1, 2, 0]]),
    "int32": lambda: torch.tensor([[0, 1], [1, 2]], dtype=torch.int32),
    "gigantic": lambda: torch.tensor([[0], [2**62]]),
    "floats": lambda: torch.rand(3, 3),
    "nan": lambda: torch.full((3, 2), float("nan")),
    "half": lambda: torch.eye(3, dtype=torch.float16),
    "bfloat": lambda: torch.eye(3, dtype=torch.bfloat16),
    "flat": lambda: torch.arange(3),
    "scalar": lambda: torch.tensor(1),
    "empty": lambda: torch.zeros(0),
    "bool": lambda: torch.tensor([True, False, True]),
    "sparse": lambda: torch.eye(3).to_sparse_coo(),
    "cube": lambda: torch.zeros(3, 3, 3),
    "masks": lambda: torch.eye(3, dtype=torch.bool),
    "complex": lambda: torch.eye(3, dtype=torch.complex64),
    "none": lambda: None,
    "list": lambda: [0, 1, 1],
    "text": lambda: "abc",
    "names": lambda: ["a", "b", "c"],
}
FIELDS = [
    "x",
    "edge_index",
    "y",
    "edge_weight",
    "train_mask",
    "val_mask",
    "test_mask",
    "num_nodes",
    "class_names",
    "other",
]


@settings(MANY, max_examples=200)
@given(
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(sorted(TENSORS)), max_size=5),
    st.booleans(),
)
def test_pyg_data(kinds: dict[str, str], start_right: bool) -> None:
    if start_right:
        kinds = {"x": "floats", "edge_index": "links", "y": "bool"} | dict(list(kinds.items())[:1])
    data = Data()
    for field, kind in kinds.items():
        data[field] = TENSORS[kind]()
    outcome(data, ("graph",))


@settings(MANY, max_examples=60)
@given(
    st.binary(max_size=200),
    st.sampled_from(["npz", "pt", "safetensors", "parquet", "csv"]),
    st.booleans(),
)
def test_junk(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, ending: str, start_right: bool
) -> None:
    if start_right:
        tensors = {
            "x": torch.eye(3),
            "y": torch.tensor([0, 1, 1]),
            "edge_index": torch.tensor([[0], [1]]),
        }
        junk = save(tensors)[: 8 + len(junk)] + junk
    in_folder(
        tmp_path_factory, {f"graph.{ending}": junk}, (f"graph.{ending}", "graph"), f"graph.{ending}"
    )
