"""Records: nothing is lost, nothing is doubled, files and databases hold the same."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.records import database as module
from nfgnn.training.records.database import Record, Records, run_key
from nfgnn.training.records.export import export, merge, open_records

CONFIG = RunConfig.resolve("GCN", {}, "texas", "full").to_dict()


def made(seed: int, **changes) -> Record:
    metrics = {"test_accuracy": 0.5 + seed / 1000, "val_loss": 1.25, "epochs": 201, "seconds": 0.3}
    return replace(
        Record("texas", "f00d", "full", seed, CONFIG, metrics, "cpu", "a machine"), **changes
    )


def test_a_run_is_known_by_all_that_decides_it(tmp_path: Path) -> None:
    first = made(1)
    others = [
        made(2),
        made(1, fingerprint="beef"),
        made(1, protocol="semi"),
        made(1, config={**CONFIG, "lr": 0.2}),
        made(1, config={**CONFIG, "model": "SGC"}),
        made(1, version=0),
    ]
    same = [
        made(1, device="gpu"),
        made(1, machine="another"),
        made(1, metrics={"test_accuracy": 0.1}),
    ]
    assert len({r.key for r in [first, *others]}) == 7
    assert {r.key for r in same} == {first.key}
    with Records(tmp_path / "r.sqlite") as records:
        assert records.add([first, *others]) == 7
        assert records.add(same) == 0
        assert records.find("f00d", "full", CONFIG, [1, 2, 3]) == {1: first, 2: made(2)}
        assert made(1, version=0) not in records.all()


def test_a_batch_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        with pytest.raises(sqlite3.IntegrityError):
            records.add([made(1), made(2, dataset=None)])
        assert records.all() == []
        assert records.add([made(1)]) == 1  # and the database is as usable as before


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


@settings(max_examples=25, deadline=None)
@given(st.lists(runs, max_size=8))
def test_every_form_holds_the_same_runs(
    tmp_path_factory: pytest.TempPathFactory, content: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    with Records(folder / "a.sqlite") as source:
        source.add(content)
        expected = source.all()
        for file in ("out.csv", "out.json"):
            export(source, folder / file)
    for file in ("out.csv", "out.json", "a.sqlite"):
        with Records(folder / f"from-{file}.sqlite") as target:
            assert merge(target, folder / file) == len(expected)
            assert merge(target, folder / file) == 0
            assert target.all() == expected
            export(target, folder / "again.csv")
    assert (folder / "again.csv").read_bytes() == (folder / "out.csv").read_bytes()


def test_the_order_of_arrival_does_not_show(tmp_path: Path) -> None:
    texts = []
    for name, seeds in (("a", [1, 2, 3]), ("b", [3, 1, 2])):
        with Records(tmp_path / f"{name}.sqlite") as records:
            for seed in seeds:
                records.add([made(seed)])
            export(records, tmp_path / f"{name}.csv")
        texts.append((tmp_path / f"{name}.csv").read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].decode().splitlines()[0].startswith("dataset,protocol,model,seed,config")


def test_a_database_takes_up_what_is_committed_beside_it(tmp_path: Path) -> None:
    with Records(tmp_path / "elsewhere.sqlite") as records:
        records.add([made(1), made(2)])
        export(records, tmp_path / "records.csv")
    with open_records(tmp_path / "records.sqlite") as records:
        assert [r.seed for r in records.all()] == [1, 2]
        assert records.fingerprints("texas") == ["f00d"]


def test_a_setting_that_was_added_later_has_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {key: value for key, value in CONFIG.items() if key != "patience"}
    assert run_key("f00d", "full", 1, older) != made(1).key
    with monkeypatch.context() as patch:
        patch.setattr(module, "_defaults", lambda: {"as": "it was"})
        with Records(tmp_path / "r.sqlite") as records:
            records.add([made(1, config=older), made(2, config={"model": "gone", "x": 1}), made(3)])
            export(records, tmp_path / "r.json")
    with Records(tmp_path / "r.sqlite") as records, Records(tmp_path / "merged.sqlite") as merged:
        merge(merged, tmp_path / "r.json")
        for database in (records, merged):
            assert database.find("f00d", "full", CONFIG, [1, 3]) == {1: made(1), 3: made(3)}
            assert len(database.all()) == 3


WRITER = """
import sys, json
from pathlib import Path
from nfgnn.training.records.database import Record, Records
config = json.loads(sys.argv[2])
for start in range(int(sys.argv[3]), int(sys.argv[3]) + 60, 10):
    with Records(Path(sys.argv[1])) as records:
        for seed in range(start, start + 10):
            records.add([Record("texas", "f00d", "full", seed, config, {"test_accuracy": seed}, sys.argv[3], "m")])
"""


def test_processes_that_write_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "r.sqlite"), json.dumps(CONFIG)]
    writers = [subprocess.Popen([*command, str(start)]) for start in (0, 30, 60)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with Records(tmp_path / "r.sqlite") as records:
        found = records.all()
    assert [r.seed for r in found] == list(range(120))
    assert all(r.metrics == {"test_accuracy": r.seed} for r in found)


@pytest.mark.parametrize("name", ["r.sqlite", "r.csv", "r.json"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("dataset,config\nthis is no database of records" * 50)
    (tmp_path / "r.configs.json").write_text("{}")
    with Records(tmp_path / "good.sqlite") as records:
        with pytest.raises(UserError, match=name):
            merge(records, tmp_path / name)
        with pytest.raises(UserError, match=r"no file .*absent\.json"):
            merge(records, tmp_path / "absent.json")
        with pytest.raises(UserError, match=r"\.csv or \.json"):
            export(records, tmp_path / "x.txt")
