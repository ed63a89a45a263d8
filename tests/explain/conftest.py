"""A browser and a page that several tests of the explorer look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import launched
from helpers.explorer_runs import awkward_graph, train_run

from nfgnn.explain.explorer import explorer_rows, find_subject, write_page
from nfgnn.explain.explorer.rows import ExplorerRows


@pytest.fixture(
    scope="module"
)  # while it lives, no other test in this process can run an event loop
def browser() -> Iterator[Any]:
    with launched() as running:
        yield running


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> ExplorerRows:
    """NFGNN beside PolyGNN."""
    folder, data = tmp_path_factory.mktemp("runs"), awkward_graph()
    runs = [train_run(folder / model, model, data) for model in ("NFGNN", "PolyGNN")]
    return explorer_rows(find_subject(*runs), data)


@pytest.fixture(scope="session")
def explorer_file(compared: ExplorerRows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    write_page(compared, path)
    return path
