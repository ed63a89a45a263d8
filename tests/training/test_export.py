"""Exported files and databases hold the same runs, bit by bit."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.records import Record, Records, run_key
from nfgnn.training.records import database as module
from nfgnn.training.records import export as export_module
from nfgnn.training.records.export import (
    export_records,
    has_records,
    merge_records,
    open_records,
)

RESULTS = Path(__file__).parents[2] / "results"
CONFIG = RunConfig.resolve("GCN", {}, "texas", "full").to_dict()
numbers = st.floats(allow_nan=False, allow_infinity=False)
runs = st.builds(
    Record,
    dataset=st.sampled_from(["texas", 'a "graph", of mine', "größer"]),
    fingerprint=st.sampled_from(["f00d", "beef"]),
    protocol=st.sampled_from(["full", "semi"]),
    seed=st.integers(0, 2000),
    config=st.sampled_from(
        [CONFIG, {**CONFIG, "lr": 1 / 3}, RunConfig.resolve("LINK", {}, None, None).to_dict()]
    ),
    metrics=st.dictionaries(
        st.sampled_from(["test_accuracy", "val_loss", "zeta"]), numbers, min_size=1
    ),
    device=st.just("cpu"),
    machine=st.just("AMD, 2 cores"),
)


def made(seed: int, **changes) -> Record:
    metrics = {"test_accuracy": 0.5 + seed / 1000, "val_loss": 1.25, "epochs": 201, "seconds": 0.3}
    return replace(
        Record("texas", "f00d", "full", seed, CONFIG, metrics, "cpu", "a machine"), **changes
    )


@settings(max_examples=12, deadline=None)
@given(st.lists(runs, max_size=8))
def test_every_form_holds_the_same_runs(
    tmp_path_factory: pytest.TempPathFactory, content: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    with Records(folder / "a.sqlite") as source:
        source.add(content)
        expected = source.all()
        for file in ("out.parquet", "out.csv", "out.json"):
            export_records(source, folder / file)
    for file in ("out.parquet", "out.csv", "out.json", "a.sqlite"):
        with Records(folder / f"from-{file}.sqlite") as target:
            assert merge_records(target, folder / file) == len(expected)
            assert merge_records(target, folder / file) == 0
            assert target.all() == expected
            for ending in ("parquet", "csv"):
                export_records(target, folder / f"again.{ending}")
        for ending in ("parquet", "csv"):
            again = folder / f"again.{ending}"
            assert again.read_bytes() == (folder / f"out.{ending}").read_bytes()
            again.unlink()


def test_committed_records_survive_the_conversion(tmp_path: Path) -> None:
    """The CSV and the Parquet file hold the same keys and bits as the committed runs."""
    committed = export_module._read_parquet(RESULTS / "records.parquet")
    assert len(committed) > 20_000
    # Every fifth run, which are some of every table and model: reading text takes long.
    part = committed[::5]
    export_module._write_csv(part, tmp_path / "r.csv")
    for run, again in zip(part, export_module._read_csv(tmp_path / "r.csv"), strict=True):
        assert repr(run) == repr(again)
    export_module._write_parquet(committed, tmp_path / "r.parquet")
    written = pq.read_table(tmp_path / "r.parquet")
    assert written.equals(pq.read_table(RESULTS / "records.parquet"))


def test_a_parquet_file_with_the_same_runs_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with Records(tmp_path / "r.sqlite") as records:
        records.add([made(1)])
        path.write_bytes(b"damaged")
        export_records(records, path)
        pq.write_table(pq.read_table(path), path, compression="none")  # the same runs, other bytes
        before = path.read_bytes()
        export_records(records, path)
        assert path.read_bytes() == before
        records.add([made(2)])
        export_records(records, path)
        assert pq.read_table(path)["seed"].to_pylist() == [1, 2]


def test_the_order_of_arrival_does_not_show(tmp_path: Path) -> None:
    texts = []
    for name, seeds in (("a", [1, 2, 3]), ("b", [3, 1, 2])):
        with Records(tmp_path / f"{name}.sqlite") as records:
            for seed in seeds:
                records.add([made(seed)])
            export_records(records, tmp_path / f"{name}.csv")
        texts.append((tmp_path / f"{name}.csv").read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].decode().splitlines()[0].startswith("dataset,protocol,model,seed,config")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_database_takes_up_what_is_committed_beside_it(tmp_path: Path, ending: str) -> None:
    with Records(tmp_path / "elsewhere.sqlite") as records:
        records.add([made(1), made(2)])
        export_records(records, tmp_path / f"records.{ending}")
    with open_records(tmp_path / "records.sqlite") as records:
        assert [r.seed for r in records.all()] == [1, 2]
        assert records.fingerprints("texas") == ["f00d"]


@pytest.mark.parametrize("ending", ["parquet", "csv", "sqlite"])
def test_a_folder_has_records_as_a_database_or_beside_it(tmp_path: Path, ending: str) -> None:
    assert not has_records(tmp_path / "new" / "records.sqlite")
    assert not (tmp_path / "new").exists()
    with Records(tmp_path / "elsewhere.sqlite") as records:
        records.add([made(1)])
        if ending != "sqlite":
            export_records(records, tmp_path / f"elsewhere.{ending}")
    if ending != "sqlite":
        (tmp_path / "elsewhere.sqlite").unlink()
    assert has_records(tmp_path / "elsewhere.sqlite")


def test_a_setting_that_was_added_later_has_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {key: value for key, value in CONFIG.items() if key != "patience"}
    assert run_key("f00d", "full", 1, older) != made(1).key
    with monkeypatch.context() as patch:
        patch.setattr(module, "_all_defaults", lambda: {"as": "it was"})
        with Records(tmp_path / "r.sqlite") as records:
            records.add([made(1, config=older), made(2, config={"model": "gone", "x": 1}), made(3)])
            export_records(records, tmp_path / "r.json")
    with Records(tmp_path / "r.sqlite") as records, Records(tmp_path / "merged.sqlite") as merged:
        merge_records(merged, tmp_path / "r.json")
        for database in (records, merged):
            assert database.find("f00d", "full", CONFIG, [1, 3]) == {1: made(1), 3: made(3)}
            assert len(database.all()) == 3


@pytest.mark.parametrize("name", ["r.sqlite", "r.parquet", "r.csv", "r.json"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("dataset,config\nthis is no database of records" * 50)
    (tmp_path / "r.configs.json").write_text("{}")
    with Records(tmp_path / "good.sqlite") as records:
        with pytest.raises(UserError, match=name):
            merge_records(records, tmp_path / name)
        with pytest.raises(UserError, match=r"no file .*absent\.json"):
            merge_records(records, tmp_path / "absent.json")
        with pytest.raises(UserError, match=r"\.parquet, \.csv or \.json"):
            export_records(records, tmp_path / "x.txt")
