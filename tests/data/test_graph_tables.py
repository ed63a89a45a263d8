"""A graph as a folder of tables: CSV, TSV and Parquet."""

from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from nfgnn.data import load_dataset, open_large
from nfgnn.data.readers.tables import column_names
from nfgnn.errors import UserError

NODES = "id,label,a,b\nx,red,1,0.5\ny,blue,2,1.5\nz,,3,2.5\nw,red,4,3.5\n"
EDGES = "source,target\nx,y\ny,z\nz,w\n"


def folder(tmp_path: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    path = tmp_path / "mine"
    path.mkdir(parents=True, exist_ok=True)
    (path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (path / "edges.csv").write_text(edges, encoding="utf-8")
    return path


def test_two_csv_files(tmp_path: Path) -> None:
    data = load_dataset(folder(tmp_path))
    assert data.name == "mine"
    assert data.node_ids.tolist() == ["x", "y", "z", "w"]
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, 0, -1, 1]
    assert data.feature_names == ["a", "b"]
    assert data.x.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5], [4, 3.5]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert "train_mask" not in data


READ_ALIKE = {
    "semicolons": (NODES.replace(",", ";"), EDGES.replace(",", ";")),
    "tabs": (NODES.replace(",", "\t"), EDGES.replace(",", "\t")),
    "windows line ends": (NODES.replace("\n", "\r\n"), EDGES.replace("\n", "\r\n")),
    "carriage returns": (NODES.replace("\n", "\r"), EDGES.replace("\n", "\r")),
    "byte order mark": ("\ufeff" + NODES, "\ufeff" + EDGES),
    "blanks": (NODES.replace("\nx,", "\n x ,"), EDGES.replace(",", ", ")),
    "quotes": (NODES.replace("red", '"red"'), EDGES.replace("x", '"x"')),
    "no last line end": (NODES.rstrip(), EDGES.rstrip()),
}


@pytest.mark.parametrize("case", READ_ALIKE)
def test_csv_dialects_read_alike(case: str, tmp_path: Path) -> None:
    data = load_dataset(folder(tmp_path, *READ_ALIKE[case]))
    plain = load_dataset(folder(tmp_path))
    assert torch.equal(data.edge_index, plain.edge_index)
    assert torch.equal(data.x, plain.x)
    assert torch.equal(data.y, plain.y)


def test_ids_stay_what_they_are(tmp_path: Path) -> None:
    nodes = "id,label,a\n007,0,1\n7,1,2\nżółw 猫,0,3\nNA,1,4\n"
    data = load_dataset(folder(tmp_path, nodes, "source,target\n007,7\nżółw 猫,NA\n"))
    assert data.node_ids.tolist() == ["007", "7", "żółw 猫", "NA"]
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_splits_and_weights(tmp_path: Path) -> None:
    nodes = "id,label,split,a\n1,0,train,1\n2,1,Val,2\n3,0,test,3\n4,1,,4\n"
    data = load_dataset(folder(tmp_path, nodes, "source,target,weight\n1,2,2\n2,1,4\n3,4,1\n"))
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.val_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, True, False]
    assert data.edge_weight.tolist() == [3, 3, 1, 1]


def test_columns_of_edges_that_are_not_read_are_noted(tmp_path: Path) -> None:
    edges = "source,target,amount\n1,2,5\n"
    path = folder(tmp_path, "id,label,a\n1,0,1\n2,1,2\n", edges)
    note = "ignored 1 column of edges.csv: amount; --column weight=amount uses amount as the edge"
    assert f"{note} weight" in load_dataset(path).notes
    notes = load_dataset(path, weight_column="amount").notes
    assert not any(text.startswith("ignored") for text in notes)


def test_a_weight_is_suggested_for_numbers_without_gaps_only(tmp_path: Path) -> None:
    nodes = "id,label,a\n1,0,1\n2,1,2\n"
    text = folder(tmp_path / "text", nodes, "source,target,kind,gap\n1,2,call,\n2,1,mail,3\n")
    assert "ignored 2 columns of edges.csv: kind, gap" in load_dataset(text).notes
    mixed = folder(tmp_path / "mixed", nodes, "source,target,kind,n,share\n1,2,call,2,0.5\n")
    note = (
        "ignored 3 columns of edges.csv: kind, n, share; --column weight=NAME uses one of n, share "
        "as the edge weight"
    )
    assert note in load_dataset(mixed).notes


def test_the_remedy_for_a_weight_that_is_no_number_works(tmp_path: Path) -> None:
    nodes = "id,label,a\n1,0,1\n2,1,2\n"
    kind = folder(tmp_path / "kind", nodes, "source,target,kind\n1,2,call\n")
    remedy = "encode it as numbers, or omit --column weight=kind to ignore it"
    with pytest.raises(UserError, match=f"edge weights are numbers: {remedy}"):
        load_dataset(kind, weight_column="kind")
    assert load_dataset(kind).get("edge_weight") is None
    weight = folder(tmp_path / "weight", nodes, "source,target,weight\n1,2,call\n")
    remedy = "encode it as numbers, or rename the column to ignore it"
    with pytest.raises(UserError, match=f"edge weights are numbers: {remedy}"):
        load_dataset(weight)
    gap = folder(tmp_path / "gap", nodes, "source,target,n\n1,2,\n2,1,3\n")
    with pytest.raises(UserError, match="fill the gap, or omit --column weight=n to ignore it"):
        load_dataset(gap, weight_column="n")


def test_other_column_names(tmp_path: Path) -> None:
    nodes = NODES.replace("id,label,a", "name,colour,a")
    edges = EDGES.replace("source,target", "from,to")
    names = {
        "id_column": "name",
        "label_column": "colour",
        "source_column": "from",
        "target_column": "to",
    }
    data = load_dataset(folder(tmp_path, nodes, edges), drop_columns="b", **names)
    assert data.feature_names == ["a"]
    assert data.class_names == ["blue", "red"]


def test_a_graph_without_label_column_is_for_prediction(tmp_path: Path) -> None:
    path = folder(tmp_path, "id,a\n1,1\n2,2\n", "source,target\n1,2\n")
    assert load_dataset(path, need_labels=False).y.tolist() == [-1, -1]
    with pytest.raises(UserError, match="no node has a label"):
        load_dataset(path)


def write_parquet(path: Path, nodes: dict[str, object], edges: dict[str, object]) -> Path:
    path.mkdir()
    parquet.write_table(pa.table(nodes), path / "nodes.parquet")
    parquet.write_table(pa.table(edges), path / "edges.parquet")
    return path


def test_parquet_of_many_types(tmp_path: Path) -> None:
    nodes = {
        "id": pa.array([10, 20, 30], pa.int32()),
        "label": pa.array(["u", None, "v"]).dictionary_encode(),
        "flag": [True, False, True],
        "vector": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
    }
    path = write_parquet(tmp_path / "p", nodes, {"source": [10, 20], "target": [20.0, 30.0]})
    data = load_dataset(path)
    assert data.feature_names == ["flag", "vector_0", "vector_1"]
    assert data.x.tolist() == [[1, 1, 2], [0, 3, 4], [1, 5, 6]]
    assert data.y.tolist() == [0, -1, 1]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize(
    "ids", [[5, 10**17, -3], [0.5, 1.5, 2.5], ["a", "b", "c"], [True, False, None]]
)
def test_ids_of_any_kind(ids: list[object], tmp_path: Path) -> None:
    nodes = {"id": ids, "label": [0, 1, 0], "a": [1, 2, 3]}
    path = write_parquet(tmp_path / "p", nodes, {"source": ids[:1], "target": ids[1:2]})
    if None in ids:
        with pytest.raises(UserError, match="row 3, column 'id': the id is missing"):
            load_dataset(path)
    else:
        assert load_dataset(path).edge_index.tolist() == [[0, 1], [1, 0]]


REFUSED = {
    "nodes.csv: row 2, column 'b': 'many' is not a number": (NODES.replace("1.5", "many"), EDGES),
    "nodes.csv: row 1, column 'b': the feature is inf": (NODES.replace("0.5", "inf"), EDGES),
    "nodes.csv: row 4, column 'id': the id 'x' is already in row 1": (
        NODES.replace("\nw", "\nx"),
        EDGES,
    ),
    "nodes.csv: row 2, column 'id': the id is missing": (NODES.replace("\ny", "\n"), EDGES),
    "edges.csv: row 3, column 'target': the id 'q' is not in nodes.csv": (
        NODES,
        EDGES.replace("z,w", "z,q"),
    ),
    "edges.csv: row 1, column 'source': the id is missing": (NODES, EDGES.replace("x,y", ",y")),
    "edges.csv: there is no column 'source'": (NODES, EDGES.replace("source", "from")),
    "nodes.csv: there is no column 'id'": (NODES.replace("id", "name"), EDGES),
    "nodes.csv: the column 'a' occurs more than once": (NODES.replace("a,b", "a,a"), EDGES),
    "nodes.csv: the file is empty": ("", EDGES),
    "nodes.csv: there are no rows": ("id,label,a\n", EDGES),
    "Row #3": (NODES.replace("y,blue,2,1.5", "y,blue,2"), EDGES),
    "'maybe' is not a valid split": (
        "id,label,split\n1,0,train\n2,1,maybe\n",
        "source,target\n1,2\n",
    ),
    "weight of edge 0": (NODES, "source,target,weight\nx,y,-1\n"),
    "edges.csv: row 1, column 'weight': the weight is missing": (
        NODES,
        "source,target,weight\nx,y,\n",
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_mistakes_are_named_with_file_row_and_column(message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_dataset(folder(tmp_path, *REFUSED[message]))
    assert message in str(caught.value)


def test_a_missing_or_double_file_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "edges.parquet").touch()
    with pytest.raises(UserError, match=r"both edges\.parquet and edges\.csv"):
        load_dataset(path)
    (path / "nodes.csv").rename(path / "customers.csv")
    with pytest.raises(UserError, match=r"there is no nodes\.csv.*rename one of customers\.csv"):
        load_dataset(path)


def test_a_list_column_next_to_a_column_of_its_entries_is_refused(tmp_path: Path) -> None:
    nodes = {"id": [0, 1], "label": [0, 1], "f0_0": [5.0, 6.0], "f0": [[1.0, 2.0], [3.0, 4.0]]}
    for order in (nodes, dict(reversed(nodes.items()))):
        parquet.write_table(pa.table(order), tmp_path / "nodes.parquet")
        parquet.write_table(pa.table({"source": [0], "target": [1]}), tmp_path / "edges.parquet")
        with pytest.raises(UserError, match=r"nodes\.parquet: the list column 'f0'.*'f0_0'"):
            load_dataset(tmp_path)


def test_unsigned_features_beyond_int64_stay_positive(tmp_path: Path) -> None:
    nodes = {"id": [0, 1], "label": [0, 1], "f": pa.array([2**64 - 1, 1], pa.uint64())}
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    parquet.write_table(pa.table({"source": [0], "target": [1]}), tmp_path / "edges.parquet")
    assert load_dataset(tmp_path).x.tolist() == [[2.0**64], [1.0]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    path = folder(tmp_path)
    (path / "nodes.csv").write_text(NODES, encoding=encoding)
    for read in (load_dataset, open_large):
        with pytest.raises(UserError, match=r"nodes\.csv: .* not UTF-8 text; save the file as"):
            read(path)


def test_numbers_beyond_float32_are_refused_in_blocks_too(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,a\n0,x,1\n1,y,1e39\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    graph = open_large(tmp_path)
    with pytest.raises(UserError, match=r"row 1, column 0 .* is inf"):
        list(graph.features(1))


def test_a_long_name_of_a_column_is_shortened(tmp_path: Path) -> None:
    name = "a" * 5000
    (tmp_path / "nodes.csv").write_text(f"id,label,{name}\n0,x,1\n1,y,inf\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    with pytest.raises(UserError, match="a finite number is required") as caught:
        load_dataset(tmp_path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_delimiters_in_quoted_names_of_columns(delimiter: str, tmp_path: Path) -> None:
    header = delimiter.join(["id", "label", '"income, EUR; net"'])
    rows = [delimiter.join(row) for row in (("x", "a", "1.5"), ("y", "b", "2.5"))]
    nodes = "\n".join([header, *rows]) + "\n"
    path = folder(tmp_path, nodes, f"source{delimiter}target\nx{delimiter}y\n")
    data = load_dataset(path)
    assert data.feature_names == ["income, EUR; net"]
    assert data.x.tolist() == [[1.5], [2.5]]
    assert column_names(path / "nodes.csv") == ["id", "label", "income, EUR; net"]


def test_tables_with_carriage_returns_are_read_in_batches(tmp_path: Path) -> None:
    path = folder(tmp_path, NODES.replace("\n", "\r"), EDGES.replace("\n", "\r"))
    assert column_names(path / "nodes.csv") == ["id", "label", "a", "b"]
    graph = open_large(path)
    assert graph.class_names == ["blue", "red"]
    assert np.concatenate(list(graph.features(2))).tolist() == load_dataset(path).x.tolist()


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_name_of_a_column_may_be_long(quote: str, tmp_path: Path) -> None:
    name = 200_000 * "a"
    nodes = f"id,label,{quote}{name}{quote}\nx,red,1\ny,blue,2\n"
    path = folder(tmp_path, nodes, "source,target\nx,y\n")
    data = load_dataset(path)
    assert data.feature_names == [name]
    assert data.x.tolist() == [[1], [2]]
    assert np.concatenate(list(open_large(path).features(1))).tolist() == [[1], [2]]


HEADERS = {
    "line break": ('id,label,"a\nb",c\n', ["a\nb", "c"]),
    "line breaks of Windows": ('id,label,"a\r\nb",c\r\n', ["a\r\nb", "c"]),
    "blank lines": ('"id",label,"a\n\n,b","c"\n', ["a\n\n,b", "c"]),
    "many delimiters in a name": ('id,label,"a;;;;\n;;;;b",c\n', ["a;;;;\n;;;;b", "c"]),
    "blanks before quotes": ('id, "label", "a b" , "c, d"\n', ["a b", "c, d"]),
    "quotes in a name": ('id,label,"""a""",5" disk\n', ['"a"', '5" disk']),
    "replacement character": ("id,label,a\ufffd,c\n", ["a\ufffd", "c"]),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_are_read_alike_in_memory_and_in_batches(case: str, tmp_path: Path) -> None:
    header, names = HEADERS[case]
    path = folder(tmp_path, "", 'source, "target"\n1,0\n')
    rows = "0,red,1,0.5\n1,blue,2,1.5\n"
    (path / "nodes.csv").write_bytes((header + rows).encode())
    assert column_names(path / "nodes.csv") == ["id", "label", *names]
    data = load_dataset(path)
    assert data.feature_names == names
    assert data.x.tolist() == [[1, 0.5], [2, 1.5]]
    assert data.class_names == ["blue", "red"]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    large = open_large(path)
    assert np.concatenate(list(large.features(1))).tolist() == data.x.tolist()
    assert large.class_names == ["blue", "red"]
    assert [end.tolist() for end in next(large.edges(10))] == [[1], [0]]


BAD_HEADERS = {
    "the first line is blank; remove it": b"\n" + NODES.encode(),
    "the file is empty": b"\r\n \n",
    "a quotation mark in the first line is not closed": NODES.replace(",a,", ',"a,').encode(),
    "the header is not UTF-8 text": NODES.replace(",a,", ",größe,").encode("latin-1"),
}


@pytest.mark.parametrize("message", BAD_HEADERS)
def test_headers_that_cannot_be_read(message: str, tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "nodes.csv").write_bytes(BAD_HEADERS[message])
    for read in (load_dataset, open_large):
        with pytest.raises(UserError, match=rf"nodes\.csv: {message}"):
            read(path)


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n"])
def test_edges_may_be_a_header_only(end: str, tmp_path: Path) -> None:
    path = folder(tmp_path, NODES)
    (path / "edges.csv").write_bytes(f"source,target{end}".encode())
    assert load_dataset(path).edge_index.shape == (2, 0)
    large = open_large(path)
    assert large.num_edges == 0
    assert list(large.edges(10)) == []


def test_uuids_of_parquet_files_are_ids(tmp_path: Path) -> None:
    ids = [UUID(int=0), UUID(int=1), UUID("f2345678-1234-5678-1234-567812345678")]
    nodes = {"id": pa.array(ids), "label": ["u", "v", "u"], "a": [1.0, 2.0, 3.0]}
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(f"source,target\n{ids[0]},{ids[2]}\n")
    data = load_dataset(tmp_path)
    assert data.node_ids.tolist() == [str(name) for name in ids]
    assert data.edge_index.tolist() == [[0, 2], [2, 0]]
    large = open_large(tmp_path)
    assert large.node_ids.to_pylist() == [str(name) for name in ids]
    assert [end.tolist() for end in next(large.edges(10))] == [[0], [2]]
