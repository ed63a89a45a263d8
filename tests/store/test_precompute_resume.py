"""Work that is killed or runs out of disk space at any write resumes and gives the same bytes."""

import errno
import os
import resource
import signal
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

SETTINGS = Settings(K=4, basis="bernstein", sketch=5, two_hop=4, degree=True, agreement=True)
MOMENTS = np.random.default_rng(0).random(10).tolist()


def work(out: Path, cut: str) -> Store:
    source = MemorySource(small_graph())
    plan = planned(source, out, SETTINGS, cut=cut, width=3, stream_entries=60)
    return precompute(source, out, SETTINGS, chosen=plan)


def sort(out: Path, weighted: bool) -> None:
    edges = np.random.default_rng(1).integers(0, 500, (2, 3000))
    weight = np.random.default_rng(2).random(3000)

    def edge_blocks(size: int):
        for first in range(0, edges.shape[1], size):
            part = slice(first, first + size)
            ends = (edges[0, part], edges[1, part])
            yield (*ends, weight[part]) if weighted else ends

    csr_on_disk(edge_blocks, 500, out, memory=60_000, weighted=weighted)


def writes(
    job: Callable[[], object], at: int | None, action: Callable[[], None], patch: pytest.MonkeyPatch
) -> int:
    """Run a job, call ``action`` before write number ``at``, and return the number of writes."""
    count = 0
    write = NpyFile._write_bytes
    rename = Path.replace

    def counted(function):
        def call(*args, **options):
            nonlocal count
            count += 1
            if count == at:
                action()
            return function(*args, **options)

        return call

    with patch.context() as context:
        context.setattr(NpyFile, "_write_bytes", counted(write))
        context.setattr(Path, "replace", counted(rename))
        job()
    return count


def killed(job: Callable[[], object], at: int, patch: pytest.MonkeyPatch) -> None:
    """Run a job in a process that is killed by SIGKILL before write number ``at``."""
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
        killed(lambda out=out: work(out, cut), 1 + int(moment * total), monkeypatch)
        assert not (out / "manifest.json").exists()
        work(out, cut)
        assert files_of(out) == expected


def test_killed_repeatedly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work(tmp_path / "whole", "streamed")
    for at in range(40, 4, -4):
        killed(lambda: work(tmp_path / "s", "streamed"), at, monkeypatch)
    work(tmp_path / "s", "streamed")
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sort_killed_at_many_writes(
    weighted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = writes(lambda: sort(tmp_path / "whole", weighted), None, lambda: None, monkeypatch)
    expected = files_of(tmp_path / "whole")
    edges = np.random.default_rng(1).integers(0, 500, (2, 3000))
    assert np.array_equal(
        np.load(tmp_path / "whole/indices.npy"), undirected(edges[0], edges[1], 500)[0][1]
    )
    assert (tmp_path / "whole/weight.npy").is_file() == weighted
    for at in range(1, total + 1, 12 if weighted else 7):
        killed(lambda at=at: sort(tmp_path / f"s{at}", weighted), at, monkeypatch)
        sort(tmp_path / f"s{at}", weighted)
        assert files_of(tmp_path / f"s{at}") == expected


@pytest.mark.parametrize("at", [3, 17, 30])
def test_a_full_disk_is_reported_and_work_resumes(
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


def test_a_limit_of_the_file_size_is_reported(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
        with pytest.raises(UserError, match="the disk is full"):
            work(tmp_path / "s", "resident")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_too_little_disk_space_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    source = MemorySource(small_graph())
    with pytest.raises(UserError, match=r"GB of disk space is needed, but only 0\.0 GB"):
        precompute(
            source,
            tmp_path / "s",
            SETTINGS,
            chosen=planned(source, tmp_path / "s", SETTINGS, free_bytes=10),
        )
    assert not (tmp_path / "s").exists()


def test_unfinished_work_is_not_a_store_and_rejects_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(lambda: work(tmp_path / "s", "resident"), 12, monkeypatch)
    with pytest.raises(UserError, match="is an unfinished store"):
        Store.open(tmp_path / "s")
    source = MemorySource(small_graph(seed=3))
    with pytest.raises(UserError, match="unfinished work on another graph"):
        precompute(source, tmp_path / "s", SETTINGS)


def test_the_rest_of_a_replaced_store_does_not_block_the_next(tmp_path: Path) -> None:
    """The old store is deleted after the exchange; its manifest may go before a disk fails."""
    work(tmp_path / "s", "resident")
    rest = tmp_path / ".s.partial"
    rest.mkdir()
    (rest / "y.npy").touch()
    source = MemorySource(small_graph(seed=3))
    precompute(source, tmp_path / "s", SETTINGS, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    rest.mkdir()
    (rest / "thesis.txt").touch()
    with pytest.raises(UserError, match=r"thesis\.txt"):
        precompute(source, tmp_path / "s", SETTINGS, overwrite=True)
    assert (rest / "thesis.txt").exists()
