"""Graphs without edges and without features, and what a search reports with them."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from nfgnn.auto import FEATURES, LINKS, run_auto
from nfgnn.auto.ablation import ablated_splits, has_computed_features
from nfgnn.auto.validation import validation_splits
from nfgnn.data import degree_features, mixed_graph
from nfgnn.progress import Progress
from nfgnn.training import METRICS, Graph

NODES = 1200  # so that one split has more than 200 validation nodes


def graph(useless: str) -> Data:
    """Return a homophilic graph with good features, one of which is shuffled."""
    data = mixed_graph(NODES, 2, degree=6, num_features=8, homophily=(0.9, 0.9), seed=0)
    noise = torch.Generator().manual_seed(0)
    data.x = torch.randn(NODES, 8, generator=noise)
    if useless == "edges":
        data.x[:, 0] += 4.0 * data.y
        order = torch.randperm(NODES, generator=noise)
        data.edge_index = order[data.edge_index]
        key = data.edge_index[0] * NODES + data.edge_index[1]
        data.edge_index = data.edge_index[:, key.argsort()]
    return data


def test_versions_of_a_graph_keep_labels_and_splits() -> None:
    data = graph("features")
    splits = validation_splits(Graph.of(data), "stratified", 0, METRICS["accuracy"])
    versions = ablated_splits(splits)
    without_edges = versions[FEATURES].graph.data
    without_features = versions[LINKS].graph.data
    assert without_edges.num_edges == 0
    assert torch.equal(without_edges.x, data.x)
    assert torch.equal(without_features.edge_index, data.edge_index)
    assert not torch.equal(without_features.x, data.x)
    order = data.x[:, 0].argsort()
    shuffled = without_features.x[:, 0].argsort()
    assert torch.equal(without_features.x[shuffled], data.x[order])  # whole rows
    assert data.num_edges > 0  # the graph itself is as it was
    for version in versions.values():
        assert torch.equal(version.graph.data.train_mask, splits.graph.data.train_mask)
        assert version.seeds == splits.seeds
    names = {splits.graph.name, *(version.graph.name for version in versions.values())}
    assert len(names) == 3


def test_sparse_features_are_shuffled_alike() -> None:
    data = graph("features")
    shuffled = []
    for x in (data.x, data.x.to_sparse_csr()):
        data.x = x
        splits = validation_splits(Graph.of(data), "stratified", 0, METRICS["accuracy"])
        shuffled.append(ablated_splits(splits)[LINKS].graph.data.x)
    assert shuffled[1].layout == torch.sparse_csr
    assert torch.equal(shuffled[1].to_dense(), shuffled[0])


def test_what_a_graph_lacks_is_not_left_out() -> None:
    plain = mixed_graph(40, 2, degree=4, num_features=3, seed=0)
    plain.x = degree_features(plain.edge_index, plain.num_nodes)
    splits = validation_splits(Graph.of(plain), "stratified", 0, METRICS["accuracy"])
    assert has_computed_features(plain)
    assert set(ablated_splits(splits)) == {FEATURES}
    plain.edge_index = plain.edge_index[:, :0]
    splits = validation_splits(Graph.of(plain), "stratified", 0, METRICS["accuracy"])
    assert ablated_splits(splits) == {}


@pytest.mark.parametrize("useless", ["edges", "features"])
def test_report_on_useless_edges_and_features(useless: str, tmp_path: Path) -> None:
    # LINK is weak on this graph, so that only the ablation shows that features are useless.
    models = ("GCN", "MLP", "LINK")
    tables = [f'[[configuration]]\nmodel = "{model}"\nepochs = 60\n' for model in models]
    portfolio = tmp_path / "portfolio.toml"
    portfolio.write_text("\n".join(tables))
    result = run_auto(
        Graph.of(graph(useless)),
        "stratified",
        0,
        time=None,
        max_runs=8,
        metric=None,
        device="cpu",
        workers=1,
        folder=None,
        source=None,
        portfolio=portfolio,
        single=True,
        resume=False,
        overwrite=False,
        progress=Progress(quiet=True),
    )
    text = " ".join(result.value.sentences)
    useful = {"edges": "features", "features": "edges"}[useless]
    assert f"The {useful} help:" in text
    assert f"the {useless} do not help:" in text.lower()
