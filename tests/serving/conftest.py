"""A run and a store with a graph, both small."""

from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import main_status
from helpers.serving_graphs import write_people

from nfgnn.serving import StorePredictor


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``people``, ``store`` and ``run``."""
    folder = tmp_path_factory.mktemp("served")
    write_people(folder / "people", np.arange(120))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        terms = ("--K", "4", "--serve", "--features", "standard", "--device", "cpu")
        assert main_status("precompute", "people", "--out", "store", *terms) == 0
        quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=10")
        train = ("--model", "ScalableNFGNN", "--device", "cpu", "--out", "run")
        assert main_status("train", "store", *quick, *train) == 0
    return folder


@pytest.fixture(scope="session")
def predictor(served: Path) -> StorePredictor:
    return StorePredictor.open(served / "run", served / "store", device="cpu")
