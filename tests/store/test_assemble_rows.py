"""Assembling rows verifies the blocks, and resumes after an interruption."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.store_graphs import files_of, make_store, small_graph

from nfgnn.errors import UserError
from nfgnn.store import assemble_rows, file_format


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-5], "is truncated"),
        (lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:], "is damaged"),
    ],
)
def test_a_damaged_block_is_reported_and_recomputed(
    damage: Callable[[bytes], bytes], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_graph()
    make_store(data, tmp_path / "whole")

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["nfgnn.store.precompute"], "assemble_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            make_store(data, tmp_path / "s")
    path = tmp_path / "s/work/block-0001/terms-02.npy"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"block-0001/terms-02\.npy: .*{message}"):
        make_store(data, tmp_path / "s")
    shutil.rmtree(path.parent)
    make_store(data, tmp_path / "s")
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")


def test_an_interrupted_assembly_resumes_after_its_last_saved_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of two rows are saved every time; the assembly stops after three of them."""
    monkeypatch.setattr(file_format, "_CHECKSUM_BYTES", 2 * 5 * 7 * 4)
    monkeypatch.setattr(assemble_rows, "_SAVE_EVERY", 1)
    data = small_graph()
    make_store(data, tmp_path / "whole")
    first_rows = []
    rows = assemble_rows._rows

    def stop_after_three(*args: object, piece: int) -> object:
        first_rows.append(args[2])
        if len(first_rows) == 4:
            raise KeyboardInterrupt
        return rows(*args, piece=piece)

    monkeypatch.setattr(assemble_rows, "_rows", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        make_store(data, tmp_path / "s")
    make_store(data, tmp_path / "s")
    assert first_rows[:5] == [0, 2, 4, 6, 6]
    assert files_of(tmp_path / "s") == files_of(tmp_path / "whole")
