"""A browser and a page for the tests of the explorer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import launched
from helpers.explorer_runs import awkward_graph, train_run

from nfgnn.explain import build_node_table, select_runs, write_explorer
from nfgnn.explain.explorer import NodeTable


# Until the browser closes, no other test in this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as running:
        yield running


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> NodeTable:
    """Return the table of an NFGNN and a PolyGNN run."""
    folder, data = tmp_path_factory.mktemp("runs"), awkward_graph()
    runs = [train_run(folder / model, model, data) for model in ("NFGNN", "PolyGNN")]
    return build_node_table(select_runs(*runs), data)


@pytest.fixture(scope="session")
def explorer_file(compared: NodeTable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    write_explorer(compared, path)
    return path
