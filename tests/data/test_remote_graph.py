"""Graphs at a URL equal their local files, are copied once, and stay in the cache folder."""

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.s3_server import S3Server
from safetensors.torch import save_file
from torch_geometric.data import Data

from nfgnn.data import (
    load_dataset,
    load_new_nodes,
    loaded_bytes,
    open_large,
    write_template,
)
from nfgnn.data.paths import cache_folder
from nfgnn.errors import UserError


def put(server: S3Server, file: Path, key: str) -> None:
    server.buckets["bucket"][key] = file.read_bytes()


@pytest.fixture
def tables(s3: S3Server, tmp_path: Path) -> Path:
    """Return a folder of tables, which the bucket also holds as ``graphs/mine``."""
    folder = tmp_path / "mine"
    write_template(folder)
    for file in folder.iterdir():
        put(s3, file, f"graphs/mine/{file.name}")
    return folder


def assert_equal(one: Data, other: Data) -> None:
    assert one.name == other.name
    for key in ("x", "y", "edge_index"):
        assert torch.equal(one[key].to_dense(), other[key].to_dense())


def test_tables(s3: S3Server, tables: Path) -> None:
    url = "s3://bucket/graphs/mine"
    assert_equal(load_dataset(url), load_dataset(tables))
    s3.requests.clear()
    assert_equal(load_dataset(f"{url}/"), load_dataset(tables))
    load_dataset(url)
    assert loaded_bytes(url) == loaded_bytes(tables)
    # The first URL was copied before, the one with a slash once.
    assert s3.count("GET /bucket/graphs/mine/nodes.csv bytes") == 1


@pytest.mark.parametrize("ending", [".npz", ".pt", ".safetensors"])
def test_files(ending: str, s3: S3Server, tmp_path: Path) -> None:
    file = tmp_path / f"graph{ending}"
    data = load_dataset("mixed", num_nodes=60)
    if ending == ".pt":
        torch.save({"x": data.x, "edge_index": data.edge_index, "y": data.y}, file)
    elif ending == ".safetensors":
        save_file({"x": data.x, "edge_index": data.edge_index, "y": data.y}, file)
    else:
        edges = data.edge_index.T.numpy()
        np.savez(file, edges=edges, node_features=data.x.numpy(), node_labels=data.y.numpy())
    put(s3, file, file.name)
    assert_equal(load_dataset(f"s3://bucket/{file.name}"), load_dataset(file))


def test_a_changed_file_is_copied_again(s3: S3Server, tables: Path) -> None:
    """Its size is the same, and so is the time that the server states."""
    before = load_dataset("s3://bucket/graphs/mine")
    nodes = (tables / "nodes.csv").read_text()
    label = before.class_names[0]
    other = label[:-1] + chr(ord(label[-1]) + 1)
    s3.buckets["bucket"]["graphs/mine/nodes.csv"] = nodes.replace(label, other).encode()
    after = load_dataset("s3://bucket/graphs/mine")
    assert other in after.class_names
    assert label not in after.class_names


def test_a_graph_in_blocks_is_the_same_on_every_machine(
    s3: S3Server, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "s3://bucket/graphs/mine"
    large = open_large(url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another-machine"))
    other = open_large(url)
    assert large is not None
    assert other is not None
    assert large.source == url
    assert large.fingerprint == other.fingerprint


def test_new_nodes(s3: S3Server, tmp_path: Path) -> None:
    graph = load_dataset("mixed", num_nodes=40)
    names = [f"f{i}" for i in range(graph.num_features)]
    rows = [",".join(["id", *names]), ",".join(["new", *["0.5"] * len(names)])]
    s3.buckets["bucket"]["new/nodes.csv"] = "\n".join(rows).encode()
    s3.buckets["bucket"]["new/edges.csv"] = b"source,target\nnew,3\n"
    new = load_new_nodes("s3://bucket/new", graph)
    assert new.node_ids == ["new"]
    assert new.edge_index.flatten().tolist() in ([40, 3], [3, 40])


def test_keys_cannot_leave_the_cache_folder(s3: S3Server, tables: Path, tmp_path: Path) -> None:
    objects = s3.buckets["bucket"]
    for key in ("..", "../../escaped.npy", "..\\escaped.npy", "/tmp/escaped.npy", ".bashrc"):
        objects[f"graphs/mine/{key}"] = b"hostile"
    load_dataset("s3://bucket/graphs/mine")
    copied = {file.name for file in cache_folder().rglob("*") if file.is_file()}
    assert copied == {"nodes.csv", "edges.csv"}
    assert not list(tmp_path.rglob("*escaped*"))
    objects["graphs/.."] = b"hostile"
    with pytest.raises(UserError):
        load_dataset("s3://bucket/graphs/..")


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("unpickled"),)


def test_a_pickle_is_not_executed(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    torch.save({"x": _Bomb()}, buffer)
    s3.buckets["bucket"]["graph.pt"] = buffer.getvalue()
    s3.buckets["bucket"]["raw.pt"] = pickle.dumps(_Bomb())
    for name in ("graph.pt", "raw.pt"):
        with pytest.raises(UserError):
            load_dataset(f"s3://bucket/{name}")
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://bucket/nothing", "contains no graph; pass the URL of a folder with nodes.csv"),
        ("s3://bucket/graphs/mine/nodes.csv", "pass the URL of the folder"),
        ("s3://nowhere/graph", "check the name of the bucket"),
    ],
)
def test_what_is_not_a_graph(url: str, words: str, tables: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_dataset(url)
    assert str(caught.value).startswith(url)
    assert words in str(caught.value)
