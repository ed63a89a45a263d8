"""Columns of a table become features as scikit-learn's encoders make them."""

from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv, parquet
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from torch_geometric.data import Data

from nfgnn.data import TableEncoding, load_dataset, load_new_nodes, open_large
from nfgnn.data.readers.feature_columns import MAX_CATEGORIES, EncodedTable, encode_table
from nfgnn.errors import UserError


def encode(
    columns: dict[str, object],
    categorical: tuple[str, ...] = (),
    encoding: TableEncoding | None = None,
) -> EncodedTable:
    table = pa.table(columns)
    return encode_table(table, table.column_names, "nodes.csv", categorical, encoding)


def test_plain_numbers_stay_as_they_are() -> None:
    encoded = encode({"a": [1, 2], "b": [0.5, -1.5], "c": [True, False]})
    assert encoded.x.tolist() == [[1, 0.5, 1], [2, -1.5, 0]]
    assert (encoded.names, encoded.encoding, encoded.notes) == (["a", "b", "c"], None, [])


def test_categories_equal_one_hot_encoder() -> None:
    colours = ["red", "blue", "green", "blue", "red"]
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    expected = encoder.fit_transform(np.array(colours)[:, None])
    encoded = encode({"colour": colours})
    np.testing.assert_array_equal(encoded.x, expected)
    assert encoded.names == ["colour=blue", "colour=green", "colour=red"]
    assert encoded.notes == ["encoded 1 column: colour (3 categories)"]
    later = encode({"colour": ["violet", "red", "grey"]}, encoding=encoded.encoding)
    np.testing.assert_array_equal(later.x, encoder.transform([["violet"], ["red"], ["grey"]]))
    assert "2 rows with a category that the model does not know (violet, grey)" in later.notes[0]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_gaps_equal_simple_imputer(missing: float | None) -> None:
    values = [3.0, missing, 1.0, 8.0, missing, 4.0]
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    column = np.array([np.nan if v is None else v for v in values])[:, None]
    encoded = encode({"age": pa.array(values)})
    np.testing.assert_allclose(encoded.x, imputer.fit_transform(column))
    assert encoded.names == ["age", "age missing"]
    assert encoded.encoding is not None
    assert encoded.encoding.imputed() == ([0], [1])
    assert "age (gaps as the median, gaps as a further feature)" in encoded.notes[0]
    later = encode({"age": [None, 5.0]}, encoding=encoded.encoding)
    np.testing.assert_allclose(later.x, imputer.transform([[np.nan], [5.0]]))


def test_gaps_in_integers_booleans_and_categories() -> None:
    encoded = encode({"n": [2, None, 4], "b": [True, None, True], "c": ["u", "", "v"]})
    assert encoded.names == ["n", "n missing", "b", "b missing", "c=u", "c=v", "c missing"]
    assert encoded.x.tolist() == [
        [2, 0, 1, 0, 1, 0, 0],
        [3, 1, 1, 1, 0, 0, 1],
        [4, 0, 1, 0, 0, 1, 0],
    ]
    assert encoded.encoding is not None
    # A gap among categories is zero in all of them, so there is no median.
    assert encoded.encoding.imputed() == ([0, 2], [1, 3])


def test_a_new_gap_gets_the_median_of_the_first_table() -> None:
    first = encode({"n": [2.0, 4.0, 9.0], "c": ["u", "v", "u"]})
    later = encode({"c": ["u", "v"], "n": [None, 1.0]}, encoding=first.encoding)
    assert later.x.tolist() == [[4, 1, 0], [1, 0, 1]]
    assert later.notes == ["column 'n': filled 1 gap with the median 4"]


def test_dates_and_times_become_days() -> None:
    encoded = encode(
        {
            "joined": [date(2020, 3, 1), date(2020, 1, 1), None],
            "seen": [datetime(2021, 1, 1, 12), datetime(2021, 1, 1), datetime(2021, 1, 3)],
            "hour": [time(6), time(0), time(18)],
            "stay": [timedelta(days=2), timedelta(hours=12), timedelta(0)],
        }
    )
    assert encoded.names == ["joined", "joined missing", "seen", "hour", "stay"]
    expected = [[60, 0, 0.5, 0.25, 2], [0, 0, 0, 0, 0.5], [30, 1, 2, 0.75, 0]]
    torch.testing.assert_close(encoded.x, torch.tensor(expected))
    assert "joined (days since 2020-01-01, gaps as the median" in encoded.notes[0]
    later = encode(
        {
            "joined": [date(2019, 12, 31)],
            "seen": [datetime(2021, 1, 2)],
            "hour": [time(12)],
            "stay": [timedelta(1)],
        },
        encoding=encoded.encoding,
    )
    assert later.x.tolist() == [[-1, 0, 1, 0.5, 1]]


def test_numbers_as_text_are_numbers() -> None:
    encoded = encode({"a": ["1", "?", "2.5", "NA"]})
    assert encoded.x[:, 0].tolist() == [1, 1.75, 2.5, 1.75]
    with pytest.raises(UserError, match="row 2, column 'a': 'two' is not a number"):
        encode({"a": ["1", "two", "3"]})


def test_many_categories_have_to_be_declared() -> None:
    names = [f"name {i}" for i in range(MAX_CATEGORIES + 1)]
    with pytest.raises(UserError, match=r"51 different values.*--column drop=who.*category=who"):
        encode({"who": names})
    torch.testing.assert_close(encode({"who": names}, ("who",)).x.sum(0), torch.ones(51))
    assert len(encode({"who": names[:-1]}).names) == MAX_CATEGORIES


def test_dates_in_another_format_are_recognised() -> None:
    days = [f"{1 + i % 28:02}.{1 + i // 28:02}.2024" for i in range(MAX_CATEGORIES + 1)]
    with pytest.raises(UserError, match=r"write dates as 2024-05-31"):
        encode({"joined": days})
    with pytest.raises(UserError) as caught:
        encode({"who": [f"name {i}" for i in range(MAX_CATEGORIES + 1)]})
    assert "dates" not in str(caught.value)


def test_numbers_with_a_decimal_comma_are_refused() -> None:
    incomes = [f"{1000 + i},{i % 10}" for i in range(35)] + ["7", "NA", "other", "", "1.234,5"]
    with pytest.raises(UserError) as caught:
        encode({"income": incomes})
    assert str(caught.value) == (
        "nodes.csv: column 'income' holds numbers with a decimal comma; numbers need a decimal "
        "point (1000.0 instead of 1000,0), or pass --column category=income to read them as text."
    )
    declared = encode({"income": incomes}, ("income",))
    assert "income=1000,0" in declared.names
    torch.testing.assert_close(declared.x.sum(1), torch.ones(len(incomes)))


@pytest.mark.parametrize(
    ("values", "example"),
    [
        (["-0,5", "0,25"], "-0.5 instead of -0,5"),
        (["3,125", "2,1"], "2.1 instead of 2,1"),
        (["1.234,5", "7"], "1234.5 instead of 1.234,5"),
        (["1,5e-3", "2"], "1.5e-3 instead of 1,5e-3"),
        (["0,125", "0,250"], "0.125 instead of 0,125"),
    ],
)
def test_forms_of_decimal_commas(values: list[str], example: str) -> None:
    with pytest.raises(UserError, match=f"decimal point \\({example}\\)"):
        encode({"a": values})


@pytest.mark.parametrize(
    "values", [["1,000", "25,000", "1,000"], ["1,2", "b", "c", "d"], ["1,2,3", "1,2", "2,3,4"]]
)
def test_other_text_with_commas_is_a_category(values: list[str]) -> None:
    assert encode({"a": values}).names == [f"a={value}" for value in sorted(set(values))]


def test_a_decimal_comma_among_numbers_and_in_later_tables() -> None:
    fix = r"'2,5' is not a number; numbers need a decimal point \(2.5 instead of 2,5\), or pass"
    with pytest.raises(UserError, match=rf"row 3, column 'a': {fix} --column drop=a"):
        encode({"a": ["1", "3", "2,5"]})
    encoding = encode({"a": [1.0, None]}).encoding
    with pytest.raises(UserError, match=rf"row 2, column 'a': {fix}"):
        encode({"a": ["1", "2,5"]}, encoding=encoding)


def test_decimal_commas_of_files_are_refused_in_memory_and_in_blocks(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id;label;income\n0;u;3,1\n1;v;4,2\n2;u;5\n")
    (tmp_path / "edges.csv").write_text("source;target;weight\n0;1;0,5\n1;2;1\n")
    point = r"numbers need a decimal point \(3.1 instead of 3,1\)"
    with pytest.raises(UserError) as caught:
        load_dataset(tmp_path)
    assert "nodes.csv: column 'income' holds numbers with a decimal comma" in str(caught.value)
    assert "edges.csv: row 1, column 'weight': '0,5' is not a number" in str(caught.value)
    with pytest.raises(UserError, match=rf"row 1, column 'income': '3,1' .*{point}"):
        list(open_large(tmp_path).features(2))
    (tmp_path / "edges.csv").write_text("source;target\n0;1\n1;2\n")
    data = load_dataset(tmp_path, category_columns=("income",))
    assert data.feature_names == ["income=3,1", "income=4,2", "income=5"]
    assert data.x.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_declared_category_may_be_a_number() -> None:
    encoded = encode({"zip": [10115, 80331, 10115]}, ("zip",))
    assert encoded.names == ["zip=10115", "zip=80331"]
    assert encoded.x.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_an_empty_column_is_left_out() -> None:
    encoded = encode({"a": [1, 2], "b": pa.nulls(2), "c": [float("nan")] * 2, "d": ["", "NA"]})
    assert encoded.names == ["a"]
    assert encoded.notes[0].count("left out (empty)") == 3


def test_all_errors_of_a_table_are_reported_together() -> None:
    columns = {
        "a": ["1", "2", "x"] * 20,
        "b": [float("inf")] * 60,
        "c": [f"name {i}" for i in range(60)],
        "fine": [1] * 60,
    }
    with pytest.raises(UserError) as caught:
        encode(columns)
    lines = str(caught.value).splitlines()
    assert lines[0] == "3 errors:"
    assert [line.split("column ")[1].split("'")[1] for line in lines[1:]] == ["a", "b", "c"]


def test_features_of_the_same_name_are_refused() -> None:
    with pytest.raises(UserError, match="several columns become a feature 'a missing'"):
        encode({"a": [1, None], "a missing": [1, 2]})


def test_an_encoding_survives_json() -> None:
    encoding = encode({"n": [2.0, None], "c": ["u", "v"], "d": [date(2020, 1, 1)] * 2}).encoding
    assert encoding is not None
    assert TableEncoding.from_json(encoding.to_json()) == encoding


def test_missing_columns_and_other_types_are_refused_later() -> None:
    encoding = encode({"d": [date(2020, 1, 1)] * 2, "c": ["u", "v"]}).encoding
    with pytest.raises(UserError, match="there is no column 'c', which the model"):
        encode({"d": [date(2020, 1, 1)]}, encoding=encoding)
    with pytest.raises(UserError, match="'d' has type int64; the model was trained with dates"):
        encode({"d": [3], "c": ["u"]}, encoding=encoding)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_files_of_all_kinds_give_the_same_features(ending: str, tmp_path: Path) -> None:
    nodes = pa.table(
        {
            "id": ["a", "b", "c", "d"],
            "label": ["x", "y", "x", "y"],
            "age": [30, None, 50, 70],
            "member": [True, False, True, True],
            "city": ["Rome", "Oslo", None, "Rome"],
            "since": pa.array([date(2020, 1, 2), date(2020, 1, 1), date(2020, 1, 9), None]),
        }
    )
    edges = pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
    for name, table in (("nodes", nodes), ("edges", edges)):
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            parquet.write_table(table, path)
        else:
            options = csv.WriteOptions(delimiter="," if ending == "csv" else "\t")
            csv.write_csv(table, path, options)
    data = load_dataset(tmp_path)
    assert data.x.tolist() == [
        [30, 0, 1, 0, 1, 0, 1, 0],
        [50, 1, 0, 1, 0, 0, 0, 0],
        [50, 0, 1, 0, 0, 1, 8, 0],
        [70, 0, 1, 0, 1, 0, 1, 1],
    ]
    assert any(note.startswith("encoded 3 columns: age") for note in data.notes)
    again = load_dataset(tmp_path, encoding=data.feature_encoding)
    assert torch.equal(again.x, data.x)


@pytest.mark.parametrize("word", ["?", "None", "<NA>", "NULL", ""])
def test_words_for_missing_values_do_not_change_the_type_of_a_column(
    word: str, tmp_path: Path
) -> None:
    rows = ["id,label,born,active,size", "0,x,2023-01-01,true,1", "1,y,2024-05-30,false,2"]
    rows += [f"2,x,{word},{word},{word}", "3,y,2024-05-31,true,4"]
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    names = load_dataset(tmp_path).feature_names
    assert names == ["born", "born missing", "active", "active missing", "size", "size missing"]


@pytest.mark.parametrize(
    ("values", "new"),
    [
        ([True, False, True], ["True", "False", "True"]),
        ([1, 2, 20_000_000], ["1", "2", "20000000"]),
        ([1, 2, 3], ["1.0", "2.0", "3.0"]),
        ([1.0, 2.0, 2.5], ["1.0", "2.0", "2.5"]),
        ([1.0, 2.0, None], ["1.0", "2.0", ""]),
        (["01", "1", "01"], ["01", "1", "01"]),
        (["Yes", "1", "0"], ["Yes", "1", "0"]),
    ],
)
@pytest.mark.parametrize("as_new_nodes", [False, True])
def test_categories_of_a_typed_column_match_a_csv_file(
    as_new_nodes: bool, values: list[object], new: list[str], tmp_path: Path
) -> None:
    ids = ["a", "b", "c"]
    old = tmp_path / "old"
    old.mkdir()
    table = pa.table({"id": ids, "label": ["x", "y", "x"], "kind": values})
    parquet.write_table(table, old / "nodes.parquet")
    (old / "edges.csv").write_text("source,target\na,b\nb,c\n")
    known = load_dataset(old, category_columns=("kind",))
    rows = [f"new {name},{value}" for name, value in zip(ids, new)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,kind", *rows]) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\nnew a,new b\nnew b,new c\n")
    if as_new_nodes:
        loaded = load_new_nodes(tmp_path, known)
    else:
        loaded = load_dataset(tmp_path, encoding=known.feature_encoding, need_labels=False)
    assert torch.equal(loaded.x, known.x)


@pytest.mark.parametrize(
    ("values", "new"),
    [
        (("True", "False", "Unknown"), ("True", "False", "True")),
        (("01", "XL", "XXL"), ("01", "01", "01")),
    ],
)
def test_known_categories_of_a_new_table_are_read_as_text(
    values: tuple[str, ...], new: tuple[str, ...], tmp_path: Path
) -> None:
    def graph(kinds: tuple[str, ...], encoding: TableEncoding | None = None) -> Data:
        rows = [f"{i},{'xyx'[i]},{kind}" for i, kind in enumerate(kinds)]
        (tmp_path / "nodes.csv").write_text("\n".join(["id,label,kind", *rows]) + "\n")
        (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
        return load_dataset(tmp_path, encoding=encoding)

    known = graph(values)
    loaded = graph(new, known.feature_encoding)
    place = [values.index(kind) for kind in new]
    assert torch.equal(loaded.x, known.x[place])
