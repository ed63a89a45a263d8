"""``nfgnn explore``."""

from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_finds_the_graph_of_the_run(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("datasets", "--template", "mine")[0] == 0
    train = ("train", "mine/", "--protocol", "stratified", "--runs", "1", "--set", "epochs=3")
    assert call(*train, "--out", "run")[0] == 0
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert call("explore", "../run", "-o", "page.html", "--nodes", "50")[0] == 0
    assert "person-00" in Path("page.html").read_text(encoding="utf-8")
    (tmp_path / "mine").rename(tmp_path / "moved")
    assert call("explore", "../run", "-o", "again.html")[0] == 2
    assert not Path("again.html").exists()
    assert call("explore", "../run", "--dataset", "../moved", "-o", "again.html")[0] == 0
