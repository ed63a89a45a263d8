"""The tests cache data sets in a folder of their own."""

from pathlib import Path

import pytest

from nfgnn.data import published


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def cache(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))
    return session_cache


@pytest.fixture
def unpinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small files of a layout stand for a data set, by forgetting the published ones."""
    monkeypatch.setattr(published, "published_files", dict)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpinned: None) -> Path:
    """An empty cache, no data root, and no published files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    return tmp_path / "cache" / "nfgnn"
