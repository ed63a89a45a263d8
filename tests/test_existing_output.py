"""The rule for outputs that exist: the same is left, ours needs overwrite, others are refused."""

from pathlib import Path

import pytest

from nfgnn.errors import UserError
from nfgnn.existing_output import (
    output_file,
    refuse_foreign_file,
    refuse_replacement,
    starts_with,
    write_output,
)

is_ours = starts_with("marker 1", "marker 0")


def write(path: Path, content: str, overwrite: bool = False) -> None:
    write_output(path, content, is_ours, "a page", overwrite)


def test_a_missing_or_an_empty_file_is_written(tmp_path: Path) -> None:
    write(tmp_path / "new", "marker 1")
    (tmp_path / "empty").touch()
    write(tmp_path / "empty", "marker 1")
    assert (tmp_path / "new").read_text() == (tmp_path / "empty").read_text() == "marker 1"


def test_the_same_content_is_accepted(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path / "file", "marker 1: a")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_other_content_needs_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("marker 0: a")
    with pytest.raises(UserError, match=r"is a page with different content.*--overwrite"):
        write(path, "marker 1: b")
    assert path.read_text() == "marker 0: a"
    write(path, "marker 1: b", overwrite=True)
    assert path.read_text() == "marker 1: b"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_foreign_file_is_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "thesis"
    path.write_text("mine")
    with pytest.raises(UserError, match="is not a page of nfgnn"):
        write(path, "marker 1", overwrite)
    with pytest.raises(UserError, match="is not a page of nfgnn"):
        refuse_foreign_file(path, is_ours, "a page")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="is not a page of nfgnn"):
        write(tmp_path / "folder", "marker 1", overwrite)
    assert path.read_text() == "mine"


def test_a_file_that_appears_while_another_is_written_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write_late() -> None:
        with output_file(path, is_ours, "a page", overwrite=True) as partial:
            partial.write_text("marker 1")
            path.write_text("mine")

    with pytest.raises(UserError, match="is not a page"):
        write_late()
    assert path.read_text() == "mine"


def test_the_rule() -> None:
    path = Path("p")
    refuse_replacement(path, "a page", ours=True, same=True)
    refuse_replacement(path, "a page", ours=True, overwrite=True)
    for wrong in ({"ours": True}, {"ours": False, "same": True, "overwrite": True}):
        with pytest.raises(UserError):
            refuse_replacement(path, "a page", **wrong)
