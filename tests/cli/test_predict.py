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
