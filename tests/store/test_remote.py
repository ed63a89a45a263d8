"""A remote store holds the bytes of the local one, survives kills, and reveals damage."""

import errno
import json
import os
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from helpers.forked_python import start_python
from helpers.s3_server import S3Server
from helpers.small_stores import graph, small_store
from helpers.store_graphs import small_graph

from nfgnn.data import cache_folder, load_dataset
from nfgnn.errors import UserError
from nfgnn.store import MemorySource, Settings, Store, is_store, precompute, verify_store
from nfgnn.store.manifest import FILE

URL = "s3://bucket/stores/mine"
PREFIX = "stores/mine/"
SETTINGS = Settings(K=3, sketch=4)


def compute(out: str | Path, settings: Settings = SETTINGS, overwrite: bool = False) -> Store:
    return precompute(MemorySource(small_graph()), out, settings, overwrite=overwrite)


def upload(server: S3Server, store: Store) -> None:
    for file in store.path.iterdir():
        server.buckets["bucket"][PREFIX + file.name] = file.read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def remote_contents(server: S3Server) -> dict[str, bytes]:
    objects = server.buckets["bucket"]
    return {key.removeprefix(PREFIX): objects[key] for key in objects if not key.endswith("/")}


def flip(server: S3Server, name: str) -> None:
    """Flip one bit in the middle of an object."""
    content = bytearray(server.buckets["bucket"][PREFIX + name])
    content[len(content) // 2] ^= 4
    server.buckets["bucket"][PREFIX + name] = bytes(content)


def test_precompute_uploads_the_bytes_of_a_local_store(s3: S3Server, tmp_path: Path) -> None:
    local = compute(tmp_path / "local")
    remote = compute(URL)
    assert remote.origin == URL
    assert remote_contents(s3) == contents(local.path)
    puts = [request for request in s3.requests if request.startswith("PUT")]
    assert FILE in puts[-1]
    # The copy for reading is the computed one.
    assert s3.count(f"GET /bucket/{PREFIX}terms.npy") == 0
    assert contents(remote.path) == contents(local.path)
    assert list((cache_folder() / "uploads").iterdir()) == []


def test_the_same_store_is_left_and_another_one_is_not_replaced(s3: S3Server) -> None:
    compute(URL)
    s3.requests.clear()
    compute(URL)
    assert not [request for request in s3.requests if request.startswith(("PUT", "POST"))]
    before = remote_contents(s3)
    other = Settings(K=2)
    with pytest.raises(UserError, match="replace it with --overwrite"):
        compute(URL, other)
    assert remote_contents(s3) == before
    assert compute(URL, other, overwrite=True).manifest.K == 2
    assert Store.open(URL, verify="checksums").manifest.K == 2


def test_other_files_are_not_replaced(s3: S3Server) -> None:
    s3.buckets["bucket"][PREFIX + "thesis.pdf"] = b"mine"
    with pytest.raises(UserError, match=r"files that nfgnn has not written \(thesis.pdf\)"):
        compute(URL)
    assert remote_contents(s3) == {"thesis.pdf": b"mine"}


def test_a_missing_bucket_is_reported_before_the_work(s3: S3Server) -> None:
    with pytest.raises(UserError, match="check the name of the bucket"):
        compute("s3://nowhere/store")
    assert not (cache_folder() / "uploads").exists() or not list(cache_folder().rglob("plan.json"))


def test_a_store_is_copied_once(s3: S3Server, tmp_path: Path) -> None:
    local = small_store(tmp_path / "local", graph())
    upload(s3, local)
    assert is_store(URL)
    store = Store.open(URL)
    assert contents(store.path) == contents(local.path)
    assert store.rows(slice(None)).equal(local.rows(slice(None)))
    s3.requests.clear()
    Store.open(f"{URL}/")
    assert s3.count(f"GET /bucket/{PREFIX}") == 1  # the manifest


def test_a_damaged_copy_is_repaired(s3: S3Server, tmp_path: Path) -> None:
    upload(s3, small_store(tmp_path / "local", graph()))
    copy = Store.open(URL).path / "y.npy"
    content = copy.read_bytes()
    copy.write_bytes(content[:-8] + b"\0\0\0\0\0\0\0\1")
    s3.requests.clear()
    Store.open(URL)
    assert copy.read_bytes() == content
    assert s3.count(f"GET /bucket/{PREFIX}y.npy") == 1
    assert s3.count(f"GET /bucket/{PREFIX}terms.npy") == 0


@pytest.mark.parametrize("name", ["terms.npy", "y.npy", "nodes.npy", FILE])
def test_a_flipped_bit_is_found(name: str, s3: S3Server, tmp_path: Path) -> None:
    upload(s3, small_store(tmp_path / "local", graph()))
    assert verify_store(URL) == (4, {})
    flip(s3, name)
    with pytest.raises(UserError) as caught:
        Store.open(URL)
    assert str(caught.value).startswith(f"{URL}/{name}: ")
    assert "damaged" in str(caught.value)
    if name == FILE:
        with pytest.raises(UserError, match="is damaged"):
            verify_store(URL)
    else:
        problem = "block 0 of 1 is damaged; upload the store again"
        assert verify_store(URL) == (4, {name: problem})
    # Nothing that is wrong stays in the cache folder.
    assert not list(cache_folder().rglob(FILE))
    assert not list(cache_folder().rglob(name))


def test_a_missing_file_is_found(s3: S3Server, tmp_path: Path) -> None:
    upload(s3, small_store(tmp_path / "local", graph()))
    del s3.buckets["bucket"][PREFIX + "y.npy"]
    with pytest.raises(UserError, match=r"mine/y\.npy: does not exist; check the bucket"):
        Store.open(URL)
    assert verify_store(URL) == (4, {"y.npy": "is missing; upload the store again"})


def test_a_full_disk_is_reported_and_the_copy_resumes(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = small_store(tmp_path / "local", graph())
    upload(s3, local)

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("nfgnn.object_store.sync_file", full)
        with pytest.raises(UserError, match=r"cache/nfgnn/stores/\w+: no space is left"):
            Store.open(URL)
    assert contents(Store.open(URL).path) == contents(local.path)


def test_a_manifest_cannot_name_other_files(s3: S3Server, tmp_path: Path) -> None:
    upload(s3, small_store(tmp_path / "local", graph()))
    objects = s3.buckets["bucket"]
    manifest = json.loads(objects[PREFIX + FILE])
    manifest.pop("checksum")
    manifest.pop("kind")  # as in older stores, which have no checksum
    manifest["checksums"]["../../../escaped"] = manifest["checksums"].pop("y")
    objects[PREFIX + FILE] = json.dumps(manifest).encode()
    objects["escaped.npy"] = objects[PREFIX + "y.npy"]
    with pytest.raises(UserError, match="checksums: not valid for a store"):
        Store.open(URL)
    assert not list(tmp_path.rglob("*escaped*"))


def test_a_killed_upload_is_no_store_and_resumes(s3: S3Server, tmp_path: Path) -> None:
    job = (
        "from nfgnn.data import load_dataset\n"
        "from nfgnn.store import MemorySource, Settings, precompute\n"
        f"precompute(MemorySource(load_dataset('karate')), {URL!r}, Settings(K=2))\n"
    )
    run_and_kill(s3, job, f"PUT /bucket/{PREFIX}y.npy", tmp_path)
    assert PREFIX + "terms.npy" in s3.buckets["bucket"]
    assert not is_store(URL)
    with pytest.raises(UserError, match="is an unfinished store: run the same"):
        load_dataset(URL)
    s3.requests.clear()
    source = MemorySource(load_dataset("karate"))
    precompute(source, URL, Settings(K=2))
    assert s3.count(f"POST /bucket/{PREFIX}terms.npy") == 0
    assert s3.count(f"POST /bucket/{PREFIX}y.npy") == 2  # begin and end of one upload
    local = precompute(source, tmp_path / "local", Settings(K=2))
    assert remote_contents(s3) == contents(local.path)


def test_a_killed_download_resumes(s3: S3Server, tmp_path: Path) -> None:
    local = small_store(tmp_path / "local", graph())
    upload(s3, local)
    job = f"from nfgnn.store import Store\nStore.open({URL!r})\n"
    run_and_kill(s3, job, f"GET /bucket/{PREFIX}y.npy", tmp_path)
    assert not list(cache_folder().rglob(FILE))
    s3.requests.clear()
    assert contents(Store.open(URL).path) == contents(local.path)
    assert s3.count(f"GET /bucket/{PREFIX}terms.npy") == 0
    assert s3.count(f"GET /bucket/{PREFIX}y.npy") == 1


def run_and_kill(server: S3Server, code: str, at: str, folder: Path) -> None:
    """Run Python code and kill its process by SIGKILL when it sends a request."""
    script = folder / "job.py"
    script.write_text(code)
    process = start_python(str(script))

    def kill(request: str) -> None:
        if request.startswith(at):
            process.kill()
            wait([process.sentinel])

    server.on_request = kill
    process.join()
    server.on_request = lambda request: None
    assert process.exitcode == -9
