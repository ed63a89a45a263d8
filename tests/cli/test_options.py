"""Validation of options that several commands share."""

from pathlib import Path

import pytest

from nfgnn.cli import options
from nfgnn.errors import UserError


def test_a_choice_ignores_case_and_completes() -> None:
    choice = options.Choice("model", ("MLP", "NFGNN"))
    assert choice.validate("nfgnn") == "NFGNN"
    assert choice.validate(None) is None
    assert choice.complete("N") == ["NFGNN"]
    assert choice.complete("nf") == ["nfgnn"]
    assert choice.complete("") == ["MLP", "NFGNN"]
    with pytest.raises(UserError, match="unknown model 'GNN': choose one of MLP, NFGNN"):
        choice.validate("GNN")


def test_a_graph_is_a_name_in_any_spelling_or_an_existing_path(tmp_path: Path) -> None:
    for given in ("Texas", "ogbn_arxiv", "Roman Empire", str(tmp_path), None):
        assert options.validate_dataset(given) == given
    with pytest.raises(UserError, match="`nfgnn datasets` lists the names"):
        options.validate_dataset(str(tmp_path / "missing"))


def test_devices_and_bases_may_have_parameters() -> None:
    assert options.validate_device("cuda:1") == "cuda:1"
    assert options.validate_basis("jacobi(0.5, 1)") == "jacobi(0.5, 1)"
    with pytest.raises(UserError, match="did you mean cuda"):
        options.validate_device("cud:1")
    with pytest.raises(UserError, match="did you mean jacobi"):
        options.validate_basis("jacoby(0.5, 1)")


def test_output_paths(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    options.check_output_folder(None)
    options.check_output_folder(tmp_path / "new" / "folder")
    options.check_output_file(tmp_path / "a.CSV", ".csv")
    with pytest.raises(UserError, match="is a file"):
        options.check_output_folder(file / "folder")
    with pytest.raises(UserError, match="unsupported extension"):
        options.check_output_file(tmp_path / "a.txt", ".csv")
    with pytest.raises(UserError, match="is a folder"):
        options.check_output_file(tmp_path)
