"""Damaged stores, failing disks and changes under an open store end in a message."""

import errno
import io
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzz.seals import seal_store_files
from helpers.command_line import main_status
from helpers.prediction_clients import interrupt_after_one_request, request, serving
from helpers.serving_graphs import person, write_people

from nfgnn.errors import UserError
from nfgnn.serving import NewNode, StorePredictor
from nfgnn.store import Store, UnusableStoreError

NODE = NewNode(person(7), ["p3", "p8"])


class FullDisk(io.StringIO):
    """A log that cannot be written."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5)


@pytest.fixture
def copy(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a copy of ``store`` and ``run``, and with ``new`` nodes."""
    for name in ("store", "run"):
        shutil.copytree(served / name, tmp_path / name)
    write_people(tmp_path / "new", np.arange(120, 123))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def predict(copy: Path) -> Callable[..., object]:
    """Return a function that runs ``nfgnn predict --extends`` and returns its exit status."""

    def call(output: str = "p.csv", *options: str) -> object:
        command = ("predict", "run", "new", "--extends", "store", "--device", "cpu")
        return main_status(*command, "-o", output, *options)

    return call


@pytest.fixture
def opened(copy: Path) -> StorePredictor:
    return StorePredictor.open(copy / "run", copy / "store", device="cpu")


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
@pytest.mark.parametrize("command", ["predict", "serve"])
def test_a_damaged_file_is_refused(
    command: str,
    damage: Callable[[Path], None],
    copy: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of large files, only those of the graph and the ids are read as a whole.
    monkeypatch.setattr("nfgnn.store.store._FULL_BYTES", 0)
    names = sorted(path.name for path in Path("store").iterdir())
    assert {"indptr.npy", "indices.npy", "scale.npy", "id_text.npy", "terms.npy"} < set(names)
    arguments = {
        "predict": ("run", "new", "--extends", "store", "--device", "cpu", "-o", "p.csv"),
        "serve": ("run", "--extends", "store", "--device", "cpu", "--port", "0"),
    }
    for name in names:
        path = Path("store", name)
        content = path.read_bytes()
        damage(path)
        assert main_status(command, *arguments[command]) == 2, name
        message = capsys.readouterr().err
        assert message.startswith(f"nfgnn: {path}: ")
        assert "precompute the store again" in message
        assert message.count("\n") == 1
        assert not Path("p.csv").exists()
        path.write_bytes(content)


def test_an_unreadable_folder_is_refused(
    predict: Callable[..., object],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Path("store").absolute()
    original = os.stat

    def stat(path: object, *arguments: object, **options: object) -> os.stat_result:
        if isinstance(path, str | Path) and Path(path).absolute().parent == store:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", stat)
        assert predict() == 2
    message = capsys.readouterr().err
    assert "store/manifest.json: permission denied: change the permissions" in message
    assert message.count("\n") == 1
    assert not Path("p.csv").exists()


@pytest.fixture
def full_disk(copy: Path) -> Iterator[Path]:
    """Return a folder on a file system without free space."""
    disk = copy / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs Linux and the permission to mount a file system")
    (disk / "file").write_bytes(bytes(4096))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_full_disk(
    name: str,
    full_disk: Path,
    predict: Callable[..., object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert predict(f"disk/{name}") == 2
    message = capsys.readouterr().err
    assert "no space is left on the disk: free some" in message
    assert message.count("\n") == 1
    assert [path.name for path in full_disk.iterdir()] == ["file"]


def test_existing_outputs(
    predict: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    output = Path("p.csv")
    output.write_text("my notes\n")
    assert predict("p.csv", "--overwrite") == 2
    assert "is not a table of predictions" in capsys.readouterr().err
    assert output.read_text() == "my notes\n"
    output.unlink()
    assert predict() == 0
    written = output.read_bytes()
    assert predict() == 0
    capsys.readouterr()
    assert predict("p.csv", "--probabilities") == 2
    assert "replace it with --overwrite" in capsys.readouterr().err
    assert output.read_bytes() == written
    assert predict("p.csv", "--probabilities", "--overwrite") == 0
    assert output.read_bytes() != written


def test_a_replaced_or_deleted_store_remains_usable(opened: StorePredictor, copy: Path) -> None:
    """The files that are open keep their content."""
    expected = opened.predict([NODE])
    terms = ("--K", "2", "--serve", "--device", "cpu", "--overwrite")
    write_people(copy / "others", np.arange(30))
    assert main_status("precompute", "others", "--out", "store", *terms) == 0
    assert Store.open("store").manifest.K == 2
    assert opened.predict([NODE]) == expected
    shutil.rmtree("store")
    assert opened.predict([NODE]) == expected
    opened.check_store()


def test_a_store_that_is_replaced_while_it_is_opened_is_refused(opened: StorePredictor) -> None:
    """Otherwise the description of one store would be used with the files of another one."""
    store = Store.open("store")
    replace(store.manifest, dataset="others").save(Path("store"))
    with pytest.raises(UnusableStoreError, match="was replaced while it was opened; run the same"):
        StorePredictor(opened.classifier, store)


@pytest.mark.parametrize("name", ["terms", "indices", "id_text"])
@pytest.mark.parametrize("change", [flip, lambda path: os.truncate(path, 0)])
def test_files_that_change_in_place_are_noticed(
    change: Callable[[Path], None], name: str, opened: StorePredictor
) -> None:
    """Reading a truncated file through a memory map would end the process."""
    opened.predict([NODE])
    path = opened.store.path / f"{name}.npy"
    change(path)
    with pytest.raises(UnusableStoreError, match=f"{name}.npy: was changed while it was open"):
        opened.predict([NODE])


def test_probabilities_that_are_not_numbers_are_refused(
    predict: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    """With checksums that match the damage, only the result shows it."""
    path = Path("store", "scale.npy")
    np.save(path, np.load(path) * 1e60)
    seal_store_files(Path("store"))
    assert predict() == 2
    message = capsys.readouterr().err
    assert "probabilities that are not numbers" in message
    assert "the store with `nfgnn verify`" in message
    assert not Path("p.csv").exists()


def test_an_answer_is_not_given_if_the_store_changes_meanwhile(
    opened: StorePredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Store.attach

    def attach(store: Store, *arguments: object) -> object:
        found = original(store, *arguments)  # type: ignore[arg-type]
        flip(store.path / "terms.npy")
        return found

    monkeypatch.setattr(Store, "attach", attach)
    with pytest.raises(UserError, match=r"terms\.npy: was changed while it was open"):
        opened.predict([NODE])


def test_the_files_of_a_predictor_are_closed(copy: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs Linux")
    before = count()
    predictor = StorePredictor.open(copy / "run", copy / "store", device="cpu")
    assert count() > before
    del predictor
    assert count() == before


def test_a_server_reports_a_changed_store(
    opened: StorePredictor, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"nodes": [{"features": person(7), "neighbours": ["p3"]}]}
    with serving(opened) as server:
        assert request(server, "POST", "/predict", body)[0] == 200
        os.truncate(opened.store.path / "terms.npy", 200)
        for method, path in (("POST", "/predict"), ("GET", "/health"), ("POST", "/predict")):
            status, answer = request(server, method, path, body if method == "POST" else None)
            assert status == 503
            assert "restart the server with an intact store" in str(answer["error"])
            assert str(opened.store.path) not in str(answer)
    # The operator learns which file it is, once.
    assert capsys.readouterr().err.count("terms.npy: was changed while it was open") == 1


def test_the_server_starts_with_a_log_on_a_full_disk(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = interrupt_after_one_request(monkeypatch)
    monkeypatch.setattr("sys.stderr", FullDisk())
    command = ("serve", "run", "--extends", "store", "--device", "cpu", "--port", "0")
    assert main_status(*command) == 0
    assert statuses == [200]


def test_a_full_disk_of_the_log_does_not_stop_the_server(
    opened: StorePredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(nodes: object) -> None:
        raise RuntimeError("no memory on the device")

    monkeypatch.setattr(opened, "predict", fail)
    with serving(opened) as server:
        monkeypatch.setattr("sys.stderr", FullDisk())
        for _ in range(2):
            status, answer = request(server, "POST", "/predict", {"nodes": []})
            assert status == 500
            assert "the log of the server has the reason" in str(answer["error"])
        assert request(server, "GET", "/health")[0] == 200
