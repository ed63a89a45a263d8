"""Work that is killed, or runs out of disk, at any write goes on to the same bytes; damage in between is named."""

import errno
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.store_graphs import files_of, planned, small_graph

from nfgnn.data import csr_on_disk
from nfgnn.data.edges import undirected
from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile
from nfgnn.store import MemorySource, Settings, Store, precompute

SETTINGS = Settings(K=4, basis="bernstein")
MOMENTS = np.random.default_rng(0).random(10).tolist()


def work(out: Path, cut: str) -> Store:
    source = MemorySource(small_graph())
    return precompute(
        source,
        out,
        SETTINGS,
        chosen=planned(source, out, SETTINGS, cut=cut, width=3, stream_entries=60),
    )


def sort(out: Path) -> None:
    edges = np.random.default_rng(1).integers(0, 500, (2, 3000))

    def links(size: int):  # type: ignore[no-untyped-def]
        for first in range(0, edges.shape[1], size):
            yield edges[0, first : first + size], edges[1, first : first + size]

    csr_on_disk(links, 500, out, memory=60_000)


def writes(
    job: Callable[[], object], at: int | None, action: Callable[[], None], patch: pytest.MonkeyPatch
) -> int:
    """Run a job; ``action`` happens right before write number ``at``. Returns the number of writes."""
    count, put, rename = 0, NpyFile._write_bytes, Path.replace

    def counted(function):  # type: ignore[no-untyped-def]
        def call(*args, **options):  # type: ignore[no-untyped-def]
            nonlocal count
            count += 1
            if count == at:
                action()
            return function(*args, **options)

        return call

    with patch.context() as context:
        context.setattr(NpyFile, "_write_bytes", counted(put))
        context.setattr(Path, "replace", counted(rename))
        job()
    return count


def killed(job: Callable[[], object], at: int, patch: pytest.MonkeyPatch) -> None:
    """Run a job in a process of its own that dies by SIGKILL right before write number ``at``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        writes(job, at, lambda: os.kill(os.getpid(), signal.SIGKILL), patch)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


@pytest.mark.parametrize("cut", ["resident", "streamed"])
def test_killed_at_ten_moments(cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = writes(lambda: work(tmp_path / "whole", cut), None, lambda: None, monkeypatch)
    expected = files_of(tmp_path / "whole")
    for i, moment in enumerate(MOMENTS):
        out = tmp_path / f"s{i}"
        killed(lambda out=out: work(out, cut), 1 + int(moment * total), monkeypatch)  # type: ignore[misc]
        assert not (out / "manifest.json").exists()
        work(out, cut)
        assert files_of(out) == expected


def test_killed_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work(tmp_path / "whole", "streamed")
    for at in range(40, 4, -4):
        killed(lambda: work(tmp_path / "s", "streamed"), at, monkeypatch)
    work(tmp_path / "s", "streamed")
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")


def test_a_sort_killed_at_many_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = writes(lambda: sort(tmp_path / "whole"), None, lambda: None, monkeypatch)
    expected = files_of(tmp_path / "whole")
    edges = np.random.default_rng(1).integers(0, 500, (2, 3000))
    assert np.array_equal(
        np.load(tmp_path / "whole/indices.npy"), undirected(edges[0], edges[1], 500)[0][1]
    )
    for at in range(1, total + 1, 7):
        killed(lambda at=at: sort(tmp_path / f"s{at}"), at, monkeypatch)  # type: ignore[misc]
        sort(tmp_path / f"s{at}")
        assert files_of(tmp_path / f"s{at}") == expected


@pytest.mark.parametrize("at", [3, 17, 30])
def test_a_full_disk_is_named_and_mended(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(tmp_path / "whole", "streamed")
    pwrite, count = os.pwrite, 0

    def full(file: int, data: memoryview, place: int) -> int:
        nonlocal count
        count += 1
        if count >= at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(file, data, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(UserError, match=r"\.(npy|part): the disk is full"):
            work(tmp_path / "s", "streamed")
    work(tmp_path / "s", "streamed")
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")


def test_a_real_limit_of_the_file_size_is_named(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
        with pytest.raises(UserError, match="the disk is full"):
            work(tmp_path / "s", "resident")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_too_little_disk_is_said_before_anything_is_written(tmp_path: Path) -> None:
    source = MemorySource(small_graph())
    with pytest.raises(UserError, match=r"GB of disk space are needed, 0\.0 GB are free"):
        precompute(
            source,
            tmp_path / "s",
            SETTINGS,
            chosen=planned(source, tmp_path / "s", SETTINGS, free_bytes=10),
        )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("damage", "message"), [
    (lambda data: data[:-5], "is truncated"),
    (lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:], "is damaged"),
])  # fmt: skip
def test_a_damaged_block_is_named_and_computed_anew(
    damage: Callable[[bytes], bytes], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(tmp_path / "whole", "resident")

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["nfgnn.store.precompute"], "assemble_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            work(tmp_path / "s", "resident")
    path = tmp_path / "s/work/block-0001/terms-02.npy"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"block-0001/terms-02\.npy: .*{message}"):
        work(tmp_path / "s", "resident")
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    work(tmp_path / "s", "resident")
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")


def test_unfinished_work_is_no_store_and_of_other_settings_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(lambda: work(tmp_path / "s", "resident"), 12, monkeypatch)
    with pytest.raises(UserError, match="is an unfinished store"):
        Store.open(tmp_path / "s")
    source = MemorySource(small_graph(seed=3))
    with pytest.raises(UserError, match="unfinished work of another graph"):
        precompute(source, tmp_path / "s", SETTINGS)
