"""Batches contain every row once, in an order that interruptions and processes do not change."""

import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nfgnn.store import MemoryRows, RowLoader, RowSource, stream_seed, write_store
from nfgnn.store.file_format import DTYPES

CPU = torch.device("cpu")
ROW = 2 * 3  # values of a row below


def source(n: int) -> MemoryRows:
    return MemoryRows(torch.arange(n, dtype=torch.float32)[:, None, None].expand(n, 2, 3).clone())


def loader(
    n: int, batch: int, window_rows: int, seed: int | None = 0, rank: int = 0, count: int = 1
) -> RowLoader:
    index = torch.arange(0, 2 * n, 2)
    window = 4 * ROW * window_rows
    return RowLoader(
        source(2 * n), -torch.arange(2 * n), index, batch, seed, CPU, rank, count, window
    )


def epoch_rows(rows: RowLoader, epoch: int, start: int = 0) -> list[Tensor]:
    """Return the batches of an epoch as row numbers; the label of a row is its negative number."""
    found = []
    for batch in rows.batches(epoch, start):
        assert torch.equal(batch.rows[:, 0, 0].long(), -batch.y)
        assert rows.count > 1 or batch.total == batch.y.numel()
        found.append(batch.rows[:, 0, 0].long())
    rows.close()
    return found


sizes = given(
    n=st.integers(1, 80),
    batch=st.integers(1, 30),
    window=st.integers(1, 100),
    seed=st.integers(0, 5),
)


@sizes
@settings(max_examples=60, deadline=None)
def test_an_epoch_has_every_row_once_in_batches_of_the_given_size(
    n: int, batch: int, window: int, seed: int
):
    batches = epoch_rows(loader(n, batch, window, seed), epoch=3)
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(0, 2 * n, 2))
    assert all(len(rows) == batch for rows in batches[:-1])


@sizes
@settings(max_examples=60, deadline=None)
def test_a_resumed_epoch_has_the_same_batches(n: int, batch: int, window: int, seed: int):
    whole = epoch_rows(loader(n, batch, window, seed), epoch=1)
    for start in range(len(whole)):
        rest = epoch_rows(loader(n, batch, window, seed), epoch=1, start=start)
        assert [r.tolist() for r in rest] == [r.tolist() for r in whole[start:]]


@sizes
@settings(max_examples=60, deadline=None)
def test_processes_divide_the_batches_of_one_process(n: int, batch: int, window: int, seed: int):
    whole = epoch_rows(loader(n, batch, window, seed), epoch=2)
    shares = [epoch_rows(loader(n, batch, window, seed, rank, 3), epoch=2) for rank in range(3)]
    assert [torch.cat(parts).tolist() for parts in zip(*shares)] == [r.tolist() for r in whole]
    assert all(max(map(len, parts)) - min(map(len, parts)) <= 1 for parts in zip(*shares))


def test_epochs_and_seeds_give_different_orders() -> None:
    orders = {
        tuple(torch.cat(epoch_rows(loader(64, 8, 64, seed), e)).tolist())
        for seed in (0, 1)
        for e in (0, 1)
    }
    assert len(orders) == 4
    assert stream_seed(1, 2) != stream_seed(2, 1) != stream_seed(1, 2, 0)


def test_windows_consist_of_distant_blocks() -> None:
    """48 blocks of 4 rows in 3 windows: a window spans most of the index and reads it in ranges."""
    rows = loader(192, 8, 64)
    for number in range(3):
        places = rows.window_order(0, number).sort().values
        ranges = 1 + int((places.diff() != 1).sum())
        assert int(places[-1] - places[0]) > 120
        assert ranges <= 16


def test_without_a_seed_rows_keep_their_order() -> None:
    assert torch.equal(
        torch.cat(epoch_rows(loader(50, 7, 20, seed=None), 0)), torch.arange(0, 100, 2)
    )


def test_the_next_window_is_read_in_advance() -> None:
    class Slow(MemoryRows):
        def rows(self, index: Tensor) -> Tensor:
            calls.append(index.numel())
            return super().rows(index)

    calls: list[int] = []
    rows = RowLoader(
        Slow(source(60).terms), torch.arange(60), torch.arange(60), 10, 0, CPU, 0, 1, 4 * ROW * 20
    )
    batches = rows.batches(0)
    next(batches)
    deadline = time.monotonic() + 20
    while (
        len(calls) < 3 and time.monotonic() < deadline
    ):  # the size of a row, the first window, the one after it
        time.sleep(0.01)
    assert calls == [1, 20, 20]
    list(batches)
    rows.close()
    loading = rows.loading()
    assert loading["rows_per_second"] > 0
    assert 0 <= loading["waited"] <= 1
    assert rows.rows_given == 60


def test_an_error_of_the_source_is_raised_in_the_trainer() -> None:
    class Broken(MemoryRows):
        def rows(self, index: Tensor) -> Tensor:
            if index.numel() > 1:
                raise OSError("the disk is gone")
            return super().rows(index)

    rows = RowLoader(
        Broken(source(60).terms), torch.arange(60), torch.arange(60), 10, 0, CPU, 0, 1, 4 * ROW * 20
    )
    with pytest.raises(OSError, match="the disk is gone"):
        next(rows.batches(0))
    rows.close()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_batches_are_the_same_wherever_the_rows_are(dtype: str, tmp_path: Path) -> None:
    """Rows of a file in windows, rows that are kept, and rows in memory."""
    terms = torch.randn(200, 3, 5).to(DTYPES[dtype].torch)
    y = torch.arange(200)
    store = write_store(tmp_path / "store", terms.float(), y, dtype=dtype)
    index = torch.arange(200)[torch.arange(200) % 5 > 0]
    kinds: list[tuple[RowSource, bool | None]] = [
        (store, None),
        (store, True),
        (MemoryRows(terms.float()), None),
        (MemoryRows(terms.float()), True),
    ]
    found = []
    for rows, keep in kinds:
        made = RowLoader(rows, y, index, 7, 3, CPU, window_bytes=4 * 15 * 40, keep=keep)
        assert made.window < index.numel()
        batches = [batch for epoch in range(3) for batch in made.batches(epoch, start=epoch)]
        made.close()
        found.append(batches)
    for batches in found[1:]:
        for a, b in zip(batches, found[0], strict=True):
            assert a.rows.dtype == torch.float32
            assert torch.equal(a.rows, b.rows)
            assert torch.equal(a.y, b.y)
    for batch in found[0]:
        assert torch.equal(batch.rows, terms[batch.y].float())


def test_batches_stay_valid_while_later_windows_are_read(tmp_path: Path) -> None:
    """The buffers of windows are reused, the batches are not."""
    terms = torch.randn(120, 2, 3)
    store = write_store(tmp_path / "store", terms, torch.arange(120))
    made = RowLoader(store, store.y, store.y, 8, 0, CPU, window_bytes=4 * ROW * 16)
    batches = [batch for epoch in range(2) for batch in made.batches(epoch)]
    made.close()
    for batch in batches:
        assert torch.equal(batch.rows, terms[batch.y])


def test_only_the_newest_iterator_can_be_used(tmp_path: Path) -> None:
    """Windows share their buffers, so an older iterator would return rows of another window."""
    terms = torch.randn(120, 2, 3)
    store = write_store(tmp_path / "store", terms, torch.arange(120))
    made = RowLoader(store, store.y, store.y, 8, 0, CPU, window_bytes=4 * ROW * 16)
    older = made.batches(0)
    next(older)
    newer = made.batches(0)
    with pytest.raises(RuntimeError, match="use one iterator of a RowLoader at a time"):
        next(older)
    found = torch.cat([batch.y for batch in newer])
    made.close()
    assert torch.equal(found.sort().values, torch.arange(120))
