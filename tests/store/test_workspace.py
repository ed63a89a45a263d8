"""A workspace is restored from its folder."""

from pathlib import Path

import numpy as np
import torch
from helpers.store_graphs import planned, small_graph

from nfgnn.store import MemorySource, Settings
from nfgnn.store.workspace import Workspace


def test_a_saved_workspace_is_restored(tmp_path: Path) -> None:
    settings = Settings(K=4, basis="bernstein", dtype="bfloat16")
    plan = planned(MemorySource(small_graph()), tmp_path, settings, width=3)
    workspace = Workspace(tmp_path, settings, plan, "0123")
    workspace.save()
    np.save(workspace.nodes_file, np.arange(5))
    restored = Workspace.load(tmp_path)
    assert restored == workspace
    assert torch.equal(restored.nodes, torch.arange(5))


def test_terms_that_are_mixed_later_are_not_rounded(tmp_path: Path) -> None:
    for basis, dtype in (("bernstein", "float32"), ("chebyshev", "float16")):
        settings = Settings(K=4, basis=basis, dtype="float16")
        plan = planned(MemorySource(small_graph()), tmp_path, settings, width=3)
        workspace = Workspace(tmp_path, settings, plan, "")
        assert workspace.block_dtype == dtype
        assert workspace.needs_mixing == (basis == "bernstein")


def test_only_complete_blocks_count_as_finished(tmp_path: Path) -> None:
    plan = planned(MemorySource(small_graph()), tmp_path, Settings(), width=3)
    workspace = Workspace(tmp_path, Settings(), plan, "")
    assert workspace.missing_blocks() == [0, 1, 2]
    workspace.block_folder(1).mkdir()
    (tmp_path / "block-0002.partial").mkdir()
    assert workspace.missing_blocks() == [0, 2]
