"""Downloads from a local server: complete, checked, and without partial files."""

import hashlib
import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers.raw_layouts import ogb, writer_of

from nfgnn.data import Entry, load, load_dataset
from nfgnn.data.download import download, fetch, find_raw_files
from nfgnn.data.registry import REGISTRY
from nfgnn.errors import UserError


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        if "chunked" not in self.path:
            super().do_GET()
            return
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"ff\r\nonly a few bytes")  # 255 are announced

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Content-Length" and "short" in self.path:  # promise more than will come
            value = str(int(value) + 100)
        super().send_header(keyword, value)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    (tmp_path / "address").write_text(f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()
    server.server_close()


def at(served: Path, entry: Entry) -> Entry:
    """The entry, published on the local server."""
    address = (served.parent / "address").read_text()
    return replace(entry, urls={file: f"{address}/{file}" for file in entry.urls})


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in cache.rglob("*") if path.name.endswith(".part")]


def test_downloads_then_loads(
    served: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = REGISTRY["minesweeper"]
    writer_of(entry)(entry, served)
    monkeypatch.setitem(load.REGISTRY, "minesweeper", at(served, entry))
    assert load_dataset("minesweeper").num_nodes == 40
    assert (empty_cache / "raw" / entry.folder / "minesweeper.npz").is_file()
    for file in served.iterdir():  # from now on the cache is enough
        file.unlink()
    assert load_dataset("minesweeper").num_nodes == 40
    assert leftovers(empty_cache) == []


def test_an_archive_is_unpacked_and_removed(
    served: Path, empty_cache: Path, tmp_path: Path
) -> None:
    entry = REGISTRY["ogbn-arxiv"]
    ogb(entry, tmp_path / "arxiv")
    with zipfile.ZipFile(served / "arxiv.zip", "w") as archive:
        for file in (tmp_path / "arxiv").rglob("*.gz"):
            archive.write(file, Path("arxiv") / file.relative_to(tmp_path / "arxiv"))
    folder = download(at(served, entry))
    assert all((folder / file).is_file() for file in entry.required)
    assert not (folder / "arxiv.zip").exists()
    assert leftovers(empty_cache) == []


def test_a_wrong_archive_is_refused(served: Path, empty_cache: Path) -> None:
    (served / "arxiv.zip").write_bytes(b"no zip")
    with pytest.raises(UserError, match="not a zip archive"):
        download(at(served, REGISTRY["ogbn-arxiv"]))
    assert leftovers(empty_cache) == []


def test_a_short_download_is_refused(served: Path, tmp_path: Path) -> None:
    (served / "short.npz").write_bytes(b"0123456789")
    with pytest.raises((UserError, OSError)):
        fetch((tmp_path / "address").read_text() + "/short.npz", tmp_path / "short.npz")
    assert not (tmp_path / "short.npz").exists()
    assert leftovers(tmp_path) == []


def test_the_checksum_is_held(served: Path, tmp_path: Path) -> None:
    (served / "file").write_bytes(b"content")
    address = (tmp_path / "address").read_text() + "/file"
    fetch(address, tmp_path / "good", hashlib.sha256(b"content").hexdigest())
    with pytest.raises(UserError, match="not the published file"):
        fetch(address, tmp_path / "bad", hashlib.sha256(b"other").hexdigest())
    assert (tmp_path / "good").read_bytes() == b"content"
    assert not (tmp_path / "bad").exists()


def test_a_web_page_is_not_taken_for_a_file(served: Path, tmp_path: Path) -> None:
    (served / "file").write_bytes(b"<!DOCTYPE html><html>quota exceeded</html>")
    with pytest.raises(UserError, match="web page"):
        fetch((tmp_path / "address").read_text() + "/file", tmp_path / "file")


def test_the_bar_goes_to_standard_error(
    served: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (served / "file").write_bytes(b"content")
    fetch((tmp_path / "address").read_text() + "/file", tmp_path / "file")
    assert capsys.readouterr().out == ""


def test_without_network_the_files_and_the_folder_are_named(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(
        REGISTRY["minesweeper"], urls={"minesweeper.npz": "http://127.0.0.1:9/minesweeper.npz"}
    )
    monkeypatch.setitem(load.REGISTRY, "minesweeper", entry)
    with pytest.raises(UserError) as caught:
        load_dataset("minesweeper")
    message = str(caught.value)
    for part in (
        "cannot be downloaded",
        "minesweeper.npz",
        str(empty_cache / "raw" / entry.folder),
        "NFGNN_DATA",
    ):
        assert part in message


def test_order_of_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    entry = REGISTRY["minesweeper"]
    places = [tmp_path / "given", tmp_path / "environment", empty_cache / "raw"]
    for place in places:
        (place / entry.folder).mkdir(parents=True)
    monkeypatch.setenv("NFGNN_DATA", str(places[1]))
    for place in reversed(places):
        writer_of(entry)(entry, place / entry.folder)
        assert find_raw_files(entry, places[0]) == place / entry.folder


@pytest.mark.usefixtures("empty_cache")
def test_the_folder_of_a_single_class_is_found(tmp_path: Path) -> None:
    entry = REGISTRY["minesweeper"]
    (tmp_path / "minesweeper/raw").mkdir(parents=True)
    writer_of(entry)(entry, tmp_path / "minesweeper/raw")
    assert find_raw_files(entry, tmp_path) == tmp_path / "minesweeper/raw"


def write_arxiv(served: Path, tmp_path: Path) -> Entry:
    entry = REGISTRY["ogbn-arxiv"]
    ogb(entry, tmp_path / "arxiv")
    with zipfile.ZipFile(served / "arxiv.zip", "w") as archive:
        for file in (tmp_path / "arxiv").rglob("*.gz"):
            archive.write(file, Path("arxiv") / file.relative_to(tmp_path / "arxiv"))
    return at(served, entry)


@pytest.mark.parametrize("moved", [False, True])
def test_an_archive_that_was_not_unpacked_is_unpacked_later(
    moved: bool, served: Path, empty_cache: Path, tmp_path: Path
) -> None:
    """A process was killed after the download, or while it moved the unpacked folders."""
    entry = write_arxiv(served, tmp_path)
    folder = empty_cache / "raw" / entry.folder
    folder.mkdir(parents=True)
    shutil.move(served / "arxiv.zip", folder / "arxiv.zip")
    if moved:
        (folder / "raw").mkdir()
        shutil.copy(tmp_path / "arxiv/raw/edge.csv.gz", folder / "raw")
    download(entry)
    assert all((folder / file).is_file() for file in entry.required)
    assert not (folder / "arxiv.zip").exists()


def test_a_broken_chunked_reply_is_one_message(
    served: Path, empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = (tmp_path / "address").read_text()
    entry = replace(REGISTRY["minesweeper"], urls={"minesweeper.npz": f"{address}/chunked"})
    monkeypatch.setitem(load.REGISTRY, "minesweeper", entry)
    with pytest.raises(UserError, match=r"cannot be downloaded \(the connection closed"):
        load_dataset("minesweeper")
    assert leftovers(empty_cache) == []


def test_every_address_is_encrypted() -> None:
    for entry in REGISTRY.values():
        assert all(url.startswith("https://") for url in entry.urls.values())
