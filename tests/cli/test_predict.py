"""``nfgnn predict``: the table of predictions, and where it may be written."""

from pathlib import Path

QUICK = ("--protocol", "stratified", "--runs", "2", "--set", "epochs=15", "--set", "K=3")


def test_a_run_is_applied_to_a_graph(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    status, _, err = call("predict", "run", "karate", "-o", "p.csv")
    assert status == 0
    assert "34 predictions" in err
    rows = (tmp_path / "p.csv").read_text().splitlines()
    assert len(rows) == 35
    assert rows[0].replace('"', "").split(",")[:4] == ["id", "predicted", "probability", "margin"]


def test_the_file_needs_a_known_ending_and_an_existing_folder(call, tmp_path: Path) -> None:
    call("train", "karate", *QUICK, "--out", "run")
    for target, message in (("p.xlsx", ".csv or .parquet"), ("no/p.csv", "does not exist")):
        status, _, err = call("predict", "run", "karate", "-o", target)
        assert status == 2
        assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


NODES = """id,label,age,income,city,joined
{rows}
"""


def write_people(folder: Path, cities: tuple[str, ...]) -> None:
    """A table with gaps, a heavy tail, text and dates."""
    folder.mkdir()
    rows = []
    for i in range(40):
        age = "" if i % 7 == 0 else str(20 + i % 2 * 10 + i % 5)
        city = cities[i % len(cities)]
        rows.append(f"p{i},{'ab'[i % 2]},{age},{10 ** (i % 6)},{city},2024-01-{1 + i % 28:02d}")
    (folder / "nodes.csv").write_text(NODES.format(rows="\n".join(rows)))
    edges = "\n".join(f"p{i},p{(i + 2) % 40}" for i in range(40))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")


def test_a_table_is_encoded_as_the_one_of_training(call, tmp_path: Path) -> None:
    write_people(tmp_path / "people", ("Rome", "Oslo", "Bonn"))
    status, out, err = call("train", "people/", *QUICK, "--set", "features=auto", "--out", "run")
    assert status == 0
    assert "note: encoded 3 columns: age (gaps as the median, gaps as a further feature)" in err
    assert "city (3 categories); joined (days since 2024-01-01)" in err
    text = " ".join(out.split())
    assert "Features: 3 columns standardised (1 after a logarithm), 4 columns of 0 and 1" in text
    write_people(tmp_path / "others", ("Rome", "Kyiv"))
    status, _, err = call("predict", "run", "others/", "-o", "p.csv")
    assert status == 0
    assert "note: column 'city': 20 rows with a category that the model does not know (Kyiv)" in err
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 41


def test_all_errors_of_two_tables_come_in_one_message(call, tmp_path: Path) -> None:
    write_people(tmp_path / "people", ("Rome", "Oslo"))
    nodes = tmp_path / "people/nodes.csv"
    edges = tmp_path / "people/edges.csv"
    nodes.write_text(nodes.read_text().replace("p3,b,33,1000", "p3,b,old,inf"))
    edges.write_text(edges.read_text().replace("p5,p7", "p5,nobody") + "somebody,p1\n")
    status, _, err = call("train", "people/")
    assert status == 2
    lines = err.strip().splitlines()
    assert lines[0] == "nfgnn: 4 errors:"
    assert "column 'source': the id 'somebody' is not in nodes.csv" in lines[1]
    assert "row 6, column 'target': the id 'nobody'" in lines[2]
    assert "row 4, column 'age': 'old' is not a number" in lines[3]
    assert "row 4, column 'income': the feature is inf" in lines[4]
