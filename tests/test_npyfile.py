"""NumPy reads files that NpyFile writes, and NpyFile reads those of NumPy."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(0, 30),
    tail=st.lists(st.integers(1, 4), max_size=2),
    cuts=st.sets(st.integers(0, 30), max_size=4),
    kind=st.sampled_from(["f4", "f8", "i4", "i8", "u2", "?"]),
)
def test_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rows: int, tail: list[int], cuts: set[int], kind: str
) -> None:
    array = (np.random.default_rng(0).random((rows, *tail)) * 9).astype(kind)
    path = tmp_path_factory.mktemp("npy") / "a.npy"
    bounds = sorted({0, rows, *(cut for cut in cuts if cut < rows)})
    with NpyFile.create(path, np.dtype(kind), (2 * rows, *tail)) as file:
        for first, last in reversed(list(pairwise(bounds))):
            file.write(first, array[first:last])
        file.finish(rows)
    assert np.array_equal(np.load(path), array)
    np.save(path, array)
    with NpyFile.open(path) as file:
        assert file.shape == array.shape
        for first in range(rows):
            assert np.array_equal(file.read(first, rows), array[first:])


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"a\.npy: is truncated"):
        NpyFile.open(path)
    path.write_bytes(b"no array")
    with pytest.raises(UserError, match=r"a\.npy: cannot be read as an array"):
        NpyFile.open(path)
    np.save(path, np.asfortranarray(np.ones((3, 4))))
    with pytest.raises(UserError, match="cannot be read row by row"):
        NpyFile.open(path)
    path.write_bytes(whole)
    with NpyFile.open(path) as file:
        path.write_bytes(whole[:200])  # while it is open
        with pytest.raises(UserError, match="is truncated"):
            file.read(0, 100)
