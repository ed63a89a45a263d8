"""Raw files are compared with the published ones at every load."""

import os
import shutil
from pathlib import Path

import pytest

from nfgnn.data import REGISTRY, load_dataset, paths, published
from nfgnn.data.published import check_raw_files, check_small_files, published_files
from nfgnn.errors import UserError

TEXAS = REGISTRY["texas"]
EDGES = "out1_graph_edges.txt"


@pytest.fixture
def root(tmp_path: Path, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of Texas that can be changed, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(data_root / TEXAS.folder, tmp_path / "root" / TEXAS.folder)
    for path in (tmp_path / "root").rglob("*"):
        path.chmod(0o755)
    return tmp_path / "root"


def test_every_available_raw_file_is_pinned(data_root: Path) -> None:
    for entry in REGISTRY.values():
        folder = data_root / entry.folder
        if all((folder / file).is_file() for file in entry.required):
            for file in entry.required:
                recorded = published_files()[f"{entry.folder}/{file}"]
                assert recorded.size == (folder / file).stat().st_size
            check_raw_files(entry, folder)


def test_a_truncated_file_is_refused_with_both_sizes(root: Path) -> None:
    file = root / TEXAS.folder / EDGES
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(UserError) as caught:
        load_dataset("texas", root)
    for part in (str(file), f"{file.stat().st_size:,} bytes", "2,172", "Replace it", "nodes.csv"):
        assert part in str(caught.value)


def test_a_changed_byte_is_refused_with_both_hashes(root: Path) -> None:
    file = root / TEXAS.folder / EDGES
    content = file.read_bytes()
    file.write_bytes(content[:-2] + (b"1" if content[-2:-1] != b"1" else b"2") + content[-1:])
    with pytest.raises(UserError, match=r"its SHA-256 is [0-9a-f]{64}, that of the published"):
        load_dataset("texas", root)


def test_a_damaged_download_can_be_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    folder = tmp_path / "cache/nfgnn/raw" / TEXAS.folder
    shutil.copytree(root / TEXAS.folder, folder)
    (folder / EDGES).write_text("node_id\tnode_id\n")
    with pytest.raises(UserError, match="Delete the file to download it again"):
        load_dataset("texas")


def test_a_change_of_the_same_size_and_time_is_noticed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the remembered hashes nor the processed graph are those of the old file."""
    monkeypatch.setattr(paths, "_SETTLED", -1.0)
    load_dataset("texas", root)
    load_dataset("texas", root)
    file = root / TEXAS.folder / EDGES
    old = file.stat()
    content = file.read_bytes()
    first, second = content.splitlines(keepends=True)[1:3]
    file.write_bytes(content.replace(first + second, second + first))
    os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert file.stat().st_size == old.st_size
    assert file.stat().st_mtime_ns == old.st_mtime_ns
    with pytest.raises(UserError, match="is damaged or was modified"):
        load_dataset("texas", root)


@pytest.mark.usefixtures("unpinned")
def test_a_file_without_a_recorded_hash_is_read_again_after_such_a_change(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_SETTLED", -1.0)
    before = load_dataset("texas", root).edge_index
    file = root / TEXAS.folder / EDGES
    old = file.stat()
    lines = file.read_text().splitlines(keepends=True)
    # Another edge of the same length takes the place of the last one.
    lines[-1] = next(line for line in lines[1:] if len(line) == len(lines[-1]))
    file.write_text("".join(lines))
    os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert file.stat().st_size == old.st_size
    assert load_dataset("texas", root).edge_index.size(1) < before.size(1)


def test_the_documentation_names_the_data_sets_without_recorded_hashes() -> None:
    page = Path(__file__).parents[2] / "docs" / "datasets.md"
    paragraph = page.read_text(encoding="utf-8").split("Not listed", 1)[1].split("\n\n", 1)[0]
    for name, entry in REGISTRY.items():
        pinned = all(f"{entry.folder}/{file}" in published_files() for file in entry.required)
        assert (f"`{name}`" in paragraph) != pinned, name


def test_small_files_of_a_graph_on_disk_are_compared_by_hash(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root / TEXAS.folder
    check_small_files(TEXAS, folder)
    file = folder / EDGES
    content = file.read_bytes()
    file.write_bytes(content[:-2] + (b"1" if content[-2:-1] != b"1" else b"2") + content[-1:])
    with pytest.raises(UserError, match="SHA-256 is not that of the published file"):
        check_small_files(TEXAS, folder)
    monkeypatch.setattr(published, "_SMALL", 10)
    check_small_files(TEXAS, folder)  # large files by size only
    file.write_bytes(content[:-10])
    with pytest.raises(UserError, match="bytes"):
        check_small_files(TEXAS, folder)
