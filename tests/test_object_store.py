"""Remote files: exact copies, downloads that resume, and errors that explain the fix."""

import os
from pathlib import Path

import pytest
from helpers.s3_server import S3Server

from nfgnn import object_store
from nfgnn.errors import UserError
from nfgnn.object_store import RemoteFolder, check_url, is_remote, remote_errors


def ignore(count: int) -> None:
    pass


def test_which_paths_are_remote() -> None:
    assert is_remote("s3://bucket/key")
    assert is_remote("memory://folder")
    assert not is_remote("folder/s3:/key")
    assert not is_remote("c:/folder")
    assert not is_remote(Path("s3://bucket/key"))  # a path has lost the second slash


@pytest.mark.parametrize("size", [0, 1, 2999, 3000, 10_001])
@pytest.mark.parametrize("scheme", ["s3", "memory", "file"])
def test_copies_are_exact(
    size: int, scheme: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_CHUNK", 1000)
    monkeypatch.setattr(object_store, "_REQUESTS", 3)
    place = f"{tmp_path}/remote" if scheme == "file" else "bucket/folder"
    Path(tmp_path, "remote").mkdir()
    content = os.urandom(size)
    Path(tmp_path, "source").write_bytes(content)
    remote = RemoteFolder.open(f"{scheme}://{place}")
    remote.upload(tmp_path / "source", "copy", ignore)
    counts: list[int] = []
    assert not remote.download("copy", tmp_path / "back", counts.append)
    assert Path(tmp_path, "back").read_bytes() == content
    assert sum(counts) == size
    assert [(file.name, file.size) for file in remote.files()] == [("copy", size)]
    assert remote.has("copy")
    assert not remote.has("cop")
    remote.delete("copy")
    assert remote.files() == []


def test_a_download_continues_where_it_stopped(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_CHUNK", 1000)
    monkeypatch.setattr(object_store, "_REQUESTS", 1)
    content = os.urandom(5500)
    s3.buckets["bucket"]["folder/file"] = content

    def refuse_the_fourth(request: str) -> None:
        if request == "GET /bucket/folder/file bytes=3000-3999":
            s3.access_key = "another"

    s3.on_request = refuse_the_fourth
    remote = RemoteFolder.open("s3://bucket/folder")
    with pytest.raises(UserError, match="ACCESS_DENIED"):
        remote.download("file", tmp_path / "file", ignore)
    assert not (tmp_path / "file").exists()
    s3.access_key = "test"
    s3.on_request = lambda request: None
    s3.requests.clear()
    assert remote.download("file", tmp_path / "file", ignore)
    assert (tmp_path / "file").read_bytes() == content
    reads = [request for request in s3.requests if request.startswith("GET")]
    assert reads == [
        f"GET /bucket/folder/file bytes={first}-{last}"
        for first, last in ((3000, 3999), (4000, 4999), (5000, 5499))
    ]


def test_the_version_changes_with_the_content(s3: S3Server) -> None:
    """Size and time of both objects are equal."""
    remote = RemoteFolder.open("s3://bucket/folder")
    s3.buckets["bucket"]["folder/file"] = b"one"
    one = remote.version("file")
    assert remote.version("file") == one
    s3.buckets["bucket"]["folder/file"] = b"two"
    assert remote.version("file") != one


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://bucket/nothing", "does not exist; check the bucket and the key"),
        ("s3://nowhere/key", "check the bucket"),
        ("s3://", "names no bucket; write it as s3://bucket/key"),
        ("s3://bucket/a b", "check the URL"),
        ("unknown://bucket/key", "the scheme unknown is not known; use s3://"),
        ("oss://bucket/key", "needs another package"),
    ],
)
def test_errors_explain_the_fix(url: str, words: str, s3: S3Server) -> None:
    with pytest.raises(UserError) as caught:
        RemoteFolder.open(url).read("file")
    assert str(caught.value).startswith(url)
    assert words in str(caught.value)


def test_a_missing_bucket_is_not_an_empty_folder(s3: S3Server) -> None:
    assert RemoteFolder.open("s3://bucket/new").files() == []
    with pytest.raises(UserError, match="check the name of the bucket, or create the bucket"):
        RemoteFolder.open("s3://nowhere/new").files()


def test_wrong_credentials(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    with pytest.raises(UserError, match="set credentials with access to the bucket"):
        RemoteFolder.open("s3://bucket/folder").files()


def test_a_server_that_does_not_answer() -> None:
    """The text is that of pyarrow, which retries for six seconds before it raises the error."""
    text = (
        "When listing objects under key 'a/' in bucket 'b': AWS Error NETWORK_CONNECTION during "
        "ListObjectsV2 operation: curlCode: 7, Could not connect to server (Request ID: X)"
    )
    with pytest.raises(UserError) as caught, remote_errors("s3://b/a"):
        raise OSError(text)
    assert str(caught.value).startswith("s3://b/a: cannot be read or written (")
    assert "address of the server in AWS_ENDPOINT_URL" in str(caught.value)
    assert "Request ID" not in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError) as caught:
        check_url("s3://KEY:SECRET@bucket/key")
    assert "SECRET@" not in str(caught.value)
    assert "environment variables" in str(caught.value)
    check_url("abfs://container@account/key")
    check_url("s3://bucket/a:b@c")


def test_other_object_storage_is_opened_by_pyarrow() -> None:
    """The server is not contacted: these file systems are not tested beyond this."""
    folders = {
        "gs://bucket/a/b/": ("gcs", "bucket/a/b"),
        "abfs://box@account.dfs.core.windows.net/a": ("abfs", "box/a"),
    }
    for url, expected in folders.items():
        folder = RemoteFolder.open(url)
        assert (folder.filesystem.type_name, folder.path) == expected
