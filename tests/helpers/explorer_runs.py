"""An awkward small graph and runs on it, for the tests of the explorer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from helpers.experiments import experiment, run_quietly
from torch_geometric.data import Data

from nfgnn.data import load_dataset
from nfgnn.explain.explorer.node_table import FilterColumns, Layout, NodeTable, RunColumns
from nfgnn.training import RunConfig

NASTY = "</script><b>art & \"craft\" 'x' <!-- {{SCRIPT}}"


def awkward_graph() -> Data:
    """Return 160 nodes with ids, some without a label, and one class with markup in its name."""
    data = load_dataset("mixed", num_nodes=160, num_classes=3)
    data.name = "awkward"
    data.class_names = [NASTY, "music", "science"]
    data.node_ids = np.array([f"person-{i:03d}" for i in range(160)])
    data.y[::16] = -1
    return data


def train_run(
    folder: Path, model: str, data: Data, seeds: tuple[int, ...] = (0,), protocol: str = "full"
) -> Path:
    config = RunConfig.resolve(model, {"epochs": 12}, "mixed", protocol, "none")
    run_quietly(experiment(data, protocol, seeds, config), folder)
    return folder


def synthetic_table(n: int, seed: int = 0) -> NodeTable:
    """Return a table without any training: a ring with chords, random filters."""
    rng = np.random.default_rng(seed)
    ring = np.arange(n)
    one_way = np.concatenate(
        [np.stack([ring, (ring + 1) % n]), np.stack([ring, (ring + 7) % n])], axis=1
    )
    psi = rng.standard_normal((n, 4)).astype(np.float32)
    label = rng.integers(0, 3, n)
    t = np.linspace(-1, 1, 5)
    terms = np.stack([t**k for k in range(4)], 1)
    means = np.stack([psi[label == c].mean(0) for c in range(3)])
    filters = FilterColumns(psi, "monomial", t + 1, terms, psi.mean(0, dtype=np.float64), means)
    run = RunColumns("NFGNN", rng.integers(0, 3, n), rng.random(n), filters)
    return NodeTable(
        dataset="ring",
        protocol="full",
        seed=0,
        class_names=["a", "b", "c"],
        ids=None,
        edge_index=np.concatenate([one_way, one_way[::-1]], axis=1),
        label=label,
        part=rng.integers(1, 4, n),
        degree=np.full(n, 4),
        homophily=rng.integers(0, 5, n) / 4,
        entropy=rng.random(n),
        layouts=[
            Layout("force-directed", "at random", rng.standard_normal((n, 2)), equal_axes=True)
        ],
        runs=[run],
    )


def twelve_class_table() -> NodeTable:
    """Return a grid of 200 nodes with nearly equal filters.

    Node 17, which has no label, has another filter. Node 199 is far away from the grid.
    """
    table = synthetic_table(200)
    label = np.arange(200) % 12
    psi = np.ones((200, 4), np.float32)
    psi[:, 0] += 0.003 * (label - 5.5)
    psi[17] = 3
    label[17] = -1
    means = np.stack([psi[label == c].mean(0, dtype=np.float64) for c in range(12)])
    filters = table.runs[0].filters
    assert filters is not None
    filters = replace(filters, psi=psi, mean=psi.mean(0, dtype=np.float64), class_means=means)
    place = np.stack([np.arange(200) % 20, np.arange(200) // 20], 1).astype(float)
    place[199] = [500, 4.5]
    layouts = [
        Layout("force-directed", "a grid", place, equal_axes=False),
        Layout("filters (PCA)", "a line", place, equal_axes=False, first_share=0.99),
    ]
    return replace(
        table,
        class_names=[f"group {c}" for c in range(12)],
        label=label,
        layouts=layouts,
        runs=[replace(table.runs[0], filters=filters)],
    )
