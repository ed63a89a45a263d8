"""A graph that is read in blocks gives the store that the same graph in memory gives, up to the scaling's last bits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.raw_layouts import ogb_binary
from helpers.store_graphs import files_of, planned, small_graph, terms_in_memory
from pyarrow import csv, parquet

from nfgnn.cli import main
from nfgnn.data import REGISTRY, load_dataset, loaded_bytes, open_large
from nfgnn.errors import UserError
from nfgnn.store import MemorySource, Settings, Store, parse_memory, precompute


def write_tables(folder: Path, ending: str, directed: bool = True) -> Path:
    """The small graph as two tables: links once, in one direction, some twice, with self-loops."""
    data, rng = small_graph(), np.random.default_rng(0)
    folder.mkdir()
    split = np.where(data.train_mask, "train", np.where(data.val_mask, "val", ""))
    label = [None if c < 0 else data.class_names[c] for c in data.y.tolist()]
    nodes = {
        "id": np.arange(60),
        "label": label,
        "split": split,
        **{f"x{i}": data.x[:, i].numpy() for i in range(7)},
    }
    links = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    flip = rng.random(links.shape[1]) < 0.5
    links = np.where(flip, links[::-1], links)
    links = np.concatenate([links, links[:, :9], np.array([[4, 5], [4, 5]])], axis=1)[
        :, rng.permutation(links.shape[1] + 11)
    ]
    for name, table in (
        ("nodes", pa.table(nodes)),
        ("edges", pa.table({"source": links[0], "target": links[1]})),
    ):
        (parquet.write_table if ending == "parquet" else csv.write_csv)(
            table, folder / f"{name}.{ending}"
        )
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("how", ["row", "auto"])
def test_tables(ending: str, how: str, tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "g", ending)
    data, large = load_dataset(folder), open_large(folder)
    assert large is not None
    settings = Settings(K=3, features=how)
    chosen = planned(
        MemorySource(data), tmp_path, settings, cut="streamed", width=2, stream_entries=50
    )
    store = precompute(large, tmp_path / "s", settings, chosen=chosen)  # type: ignore[arg-type]
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert store.manifest.class_names == data.class_names
    assert torch.equal(store.y, data.y[store.nodes])
    assert torch.equal(store.labels().val_mask, data.val_mask[store.nodes])
    loaded = precompute(MemorySource(data), tmp_path / "m", settings, chosen=chosen)
    torch.testing.assert_close(
        store.rows(slice(None)), loaded.rows(slice(None)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("lay_out", [np.ascontiguousarray, np.asfortranarray, np.transpose])
def test_npz(
    compressed: bool, lay_out: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = small_graph()
    save = np.savez_compressed if compressed else np.savez
    edges = lay_out(data.edge_index.T.numpy())
    save(tmp_path / "g.npz", edges=edges, node_features=data.x.numpy(), node_labels=data.y.numpy())
    large = open_large(tmp_path / "g.npz")
    assert large is not None
    settings = Settings(K=3, features="raw", self_loops=True)
    store = precompute(
        large,
        tmp_path / "s",
        settings,
        chosen=planned(MemorySource(data), tmp_path, settings, width=3),
    )
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))


def test_papers100m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entry = REGISTRY["ogbn-papers100m"]
    ogb_binary(entry, tmp_path / "root" / entry.folder)
    data, large = (
        load_dataset(entry.name, tmp_path / "root"),
        open_large(entry.name, tmp_path / "root"),
    )
    assert large is not None
    assert loaded_bytes(entry.name, tmp_path / "root") > 10**11
    settings = Settings(K=3, features="raw")
    store = precompute(
        large,
        tmp_path / "s",
        settings,
        chosen=planned(MemorySource(data), tmp_path, settings, width=3),
    )
    assert torch.equal(store.rows(slice(None)), terms_in_memory(data, store))
    assert torch.equal(store.labels().train_mask, data.train_mask[store.nodes])


@pytest.mark.parametrize(("change", "message"), [
    ({"id": np.arange(60)[::-1]}, r"row 1, column 'id': the id is 59"),
    ({"split": np.full(60, "maybe")}, "'maybe' is not train, val, test"),
])  # fmt: skip
def test_nodes_that_cannot_be_read_in_blocks(
    change: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    folder = write_tables(tmp_path / "g", "parquet")
    table = parquet.read_table(folder / "nodes.parquet")
    for name, column in change.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    parquet.write_table(table, folder / "nodes.parquet")
    with pytest.raises(UserError, match=message):
        open_large(folder)


@pytest.mark.parametrize(("source", "message"), [
    (np.array([0, 60]), r"names node 60, but the 60 nodes are numbered 0 … 59"),
    (np.array(["a", "b"]), "are whole row numbers"),
])  # fmt: skip
def test_links_that_cannot_be_read_in_blocks(
    source: np.ndarray, message: str, tmp_path: Path
) -> None:
    folder = write_tables(tmp_path / "g", "parquet")
    parquet.write_table(pa.table({"source": source, "target": [1, 2]}), folder / "edges.parquet")
    large = open_large(folder)
    assert large is not None
    with pytest.raises(UserError, match=message):
        large.write_pattern(tmp_path / "w", 10**6, False, lambda what, done, total: None)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = write_tables(tmp_path / "g", "csv"), tmp_path / "s"
    line = [
        "nfgnn",
        "precompute",
        str(folder),
        "--out",
        str(out),
        "--K",
        "2",
        "--basis",
        "legendre",
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", [*line, "--dry-run"])
    main_ends(0)
    dry = json.loads(capsys.readouterr().out)
    assert (dry["plan"]["products"], dry["plan"]["num_nodes"]) == (2, 60)
    assert not out.exists()
    monkeypatch.setattr(sys, "argv", line)
    main_ends(0)
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["K"], said["basis"]) == (
        int((small_graph().y >= 0).sum()),
        2,
        "legendre",
    )
    before = files_of(out)
    main_ends(0)
    assert files_of(out) == before
    assert torch.equal(
        Store.open(out).rows(slice(None)), terms_in_memory(load_dataset(folder), Store.open(out))
    )
    monkeypatch.setattr(sys, "argv", [*line, "--memory", "lots"])
    main_ends(2)
    assert "--memory lots is not a size" in capsys.readouterr().err


def main_ends(status: int) -> None:
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    assert code == status


def test_the_budget_is_kept(tmp_path: Path) -> None:
    """From outside: the peak of the process, with links that are sorted on disk, stays within what was allowed."""
    rng, n = np.random.default_rng(0), 100_000
    nodes = {
        "id": np.arange(n),
        "label": np.arange(n) % 4,
        **{f"x{i}": rng.random(n, np.float32) for i in range(16)},
    }
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet", row_group_size=2**14)
    links = rng.integers(0, n, (2, 1_000_000))
    parquet.write_table(
        pa.table({"source": links[0], "target": links[1]}), tmp_path / "edges.parquet"
    )
    code = "import re, sys; from nfgnn.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    # Not getrusage: that counts what the process had before it became this program, a copy of the tests' own.
    code += "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024, file=sys.stderr)"
    command = [
        sys.executable,
        "-c",
        code,
        "precompute",
        str(tmp_path),
        "--out",
        str(tmp_path / "s"),
        "--K",
        "2",
    ]
    done = subprocess.run(
        [*command, "--memory", "900MB", "--json"], capture_output=True, text=True, check=True
    )
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)["rows"] == n
    assert int(done.stderr.split()[-1]) <= 900e6


@pytest.mark.parametrize(
    ("text", "expected"), [("4GB", 4e9), ("512MiB", 2**29), (" 1.5 gb", 1.5e9), ("1000", 1000)]
)
def test_sizes_are_understood(text: str, expected: float) -> None:
    assert parse_memory(text) == expected
