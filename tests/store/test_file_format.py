"""Values and checksums survive the way to the disk and back."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from nfgnn.store.file_format import DTYPES, checksum, file_checksums, rows_per_checksum, write_json


@pytest.mark.parametrize("name", DTYPES)
def test_decoded_values_are_the_rounded_ones(name: str) -> None:
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    dtype = DTYPES[name]
    stored = dtype.encode(x)
    assert stored.dtype == dtype.numpy
    assert stored.itemsize == dtype.itemsize
    assert torch.equal(dtype.decode(stored), x.to(dtype.torch).float())


@pytest.mark.parametrize("block_rows", [None, 1, 7, 100])
def test_checksums_of_a_file_are_those_of_its_blocks(
    block_rows: int | None, tmp_path: Path
) -> None:
    array = np.random.default_rng(0).random((20, 3))
    np.save(tmp_path / "a.npy", array)
    step = block_rows or 20
    expected = [checksum(array[first : first + step]) for first in range(0, 20, step)]
    assert file_checksums(tmp_path / "a.npy", block_rows) == expected
    assert expected[0] == hashlib.sha256(array[:step].tobytes()).hexdigest()


def test_an_empty_file_has_one_checksum(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.empty((0, 3)))
    assert file_checksums(tmp_path / "a.npy", 5) == [hashlib.sha256().hexdigest()]


def test_checksums_cover_about_64_megabytes() -> None:
    assert rows_per_checksum(10, 64, "float32") * 11 * 64 * 4 == pytest.approx(2**26, rel=1e-3)
    assert rows_per_checksum(10, 10**8, "float32") == 1


def test_json_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    write_json(path, {"b": "ä"}, sync=False)
    assert json.loads(path.read_text(encoding="utf-8")) == {"b": "ä"}
    with pytest.raises(TypeError):
        write_json(path, {"c": object()})
    assert json.loads(path.read_text(encoding="utf-8")) == {"b": "ä"}
