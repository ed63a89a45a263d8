"""Stored parts of rows equal those of the graph in memory, with every cut and for new nodes."""

from pathlib import Path

import pytest
import torch
from helpers.store_graphs import files_of, make_store, planned, small_graph
from torch_geometric.data import Data

from nfgnn import NodeClassifier, split
from nfgnn.cli import main
from nfgnn.errors import UserError
from nfgnn.serving import StorePredictor
from nfgnn.spectral import RowParts, parts_of_graph, scaled_laplacian
from nfgnn.store import MemorySource, NewNodes, Settings, Store, parts_of_new_nodes
from nfgnn.training import predict_new_nodes

ALL = {"sketch": 6, "two_hop": 10, "degree": True, "agreement": True}
PARTS = RowParts(**ALL)
TRAINING = {"epochs": 3, "hidden_channels": 8, "batch_size": 16, "device": "cpu"}
NEW_EDGES = torch.tensor([[60, 60, 61, 5, 2], [4, 9, 60, 61, 61]])  # node 62 has no edges


def extended_graph(data: Data, x: torch.Tensor) -> Data:
    source, target, _ = NewNodes(x, NEW_EDGES).directed_edges(60)
    edge_index = torch.cat([data.edge_index, torch.stack([source, target])], 1)
    return Data(x=torch.cat([data.x, x]), edge_index=edge_index, num_nodes=63)


@pytest.mark.parametrize("cut", ["resident", "streamed"])
@pytest.mark.parametrize(
    "options",
    [{"part_width": 2}, {"rows": "all", "self_loops": True}, {"dtype": "bfloat16"}],
)
def test_parts_equal_those_in_memory(cut: str, options: dict, tmp_path: Path) -> None:
    data = small_graph(weighted=True)
    width = options.pop("part_width", 100)
    store = make_store(data, tmp_path / "s", cut, part_width=width, **ALL, **options)
    graph = scaled_laplacian(data.edge_index, data.edge_weight, 60)
    x = store.scaling.apply(data.x)
    kind = getattr(torch, store.manifest.dtype)
    expected = parts_of_graph(PARTS, x, graph)[store.nodes].to(kind).float()
    rows = store.with_parts(PARTS).rows(torch.arange(len(store.nodes)))
    torch.testing.assert_close(rows[:, -PARTS.width :], expected, atol=1e-6, rtol=0)
    some = store.with_parts(RowParts(degree=True)).rows(torch.arange(3))
    torch.testing.assert_close(some[:, -1], expected[:3, -2])
    assert (store.manifest.format, store.manifest.parts) == (3, PARTS)


def test_parts_add_files_and_change_no_other(tmp_path: Path) -> None:
    plain = files_of(make_store(small_graph(), tmp_path / "plain").path)
    found = files_of(make_store(small_graph(), tmp_path / "parts", **ALL).path)
    assert found.keys() - plain.keys() == {f"{name}.npy" for name in PARTS.columns}
    assert all(plain[name] == found[name] for name in plain.keys() - {"manifest.json"})
    assert "agreement" not in (tmp_path / "plain" / "manifest.json").read_text()


def test_damage_is_found(tmp_path: Path) -> None:
    store = make_store(small_graph(), tmp_path / "s", **ALL)
    path = store.path / "agreement.npy"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"agreement\.npy: block 0 of 1 is damaged"):
        Store.open(store.path)


def test_the_plan_has_the_bytes_and_the_passes_of_every_part(tmp_path: Path) -> None:
    source = MemorySource(small_graph())

    def plan(**options: object):
        return planned(source, tmp_path, Settings(K=2, rows="all", **options))

    bare = plan()
    full = plan(dtype="bfloat16", **ALL)
    assert full.part_bytes == {
        **{"terms": 60 * 3 * 7 * 2, "sketch": 60 * 6 * 2, "two_hop": 60 * 10 * 2},
        **{"degree": 60 * 2, "agreement": 60 * 2},
    }
    assert full.store_bytes == sum(full.part_bytes.values())
    graph = 4 * bare.num_entries + 16 * 60
    assert plan(degree=True).read_bytes - bare.read_bytes == graph
    unscaled = 4 * 60 * 10
    assert plan(two_hop=10).read_bytes - bare.read_bytes == 3 * graph + unscaled
    features = 4 * 60 * 7
    assert plan(agreement=True).read_bytes - bare.read_bytes == graph + 2 * features


def test_training_on_a_store_equals_training_on_the_graph(tmp_path: Path) -> None:
    data = small_graph()
    data.y = data.y.clamp(min=0)
    store = make_store(data, tmp_path / "s", **ALL)
    data.x = store.scaling.apply(data.x)
    graph = split(data, "full", 0)
    rows = split(store.labels(), "full", 0)
    settings = {**TRAINING, "attention": 2}
    on_graph = NodeClassifier("ScalableNFNet", K=4, features="raw", **ALL, **settings)
    on_store = NodeClassifier("ScalableNFNet", **settings).fit(rows)
    expected = on_graph.fit(graph).predict_proba(graph)
    torch.testing.assert_close(on_store.predict_proba(rows), expected, atol=1e-5, rtol=0)
    # A model may leave out parts, but it cannot have others than the store.
    fewer = NodeClassifier("ScalableNFNet", sketch=0, degree=False, **TRAINING).fit(rows)
    assert fewer.model_.parts == RowParts(two_hop=10, agreement=True)
    with pytest.raises(UserError, match="computed with two_hop = 10, not 11"):
        NodeClassifier("ScalableNFNet", two_hop=11, **TRAINING).fit(rows)
    with pytest.raises(UserError, match=r"does not hold the part two_hop .* with --two-hop"):
        make_store(data, tmp_path / "plain").with_parts(RowParts(two_hop=10))


@pytest.mark.parametrize("basis", ["chebyshev", "bernstein"])
def test_new_nodes_have_the_parts_of_the_extended_graph(basis: str, tmp_path: Path) -> None:
    data = small_graph()
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    whole = extended_graph(data, x)
    store = make_store(
        data, tmp_path / "s", rows="all", serve=True, self_loops=True, basis=basis, **ALL
    )
    scaled = store.scaling.apply(whole.x)
    graph = scaled_laplacian(whole.edge_index, None, 63)
    expected = parts_of_graph(PARTS, scaled, graph)[60:]
    new = NewNodes(scaled[60:], NEW_EDGES)
    existing = scaled_laplacian(data.edge_index, None, 60)
    in_memory = parts_of_new_nodes(existing, scaled[:60].__getitem__, new, PARTS)
    torch.testing.assert_close(in_memory, expected)
    torch.testing.assert_close(store.attach_parts(new, PARTS), expected, atol=1e-5, rtol=0)
    classifier = NodeClassifier("ScalableNFNet", **{**TRAINING, "epochs": 1}).fit(store.labels())
    added = Data(x=x, edge_index=NEW_EDGES)
    served = StorePredictor(classifier, store).predict_proba(added)
    found = predict_new_nodes(classifier, data, added)
    torch.testing.assert_close(served, found, atol=1e-5, rtol=0)


def test_the_command_stores_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    out = tmp_path / "s"
    line = ["nfgnn", "precompute", "karate", "--out", str(out), "--K", "2"]
    monkeypatch.setattr("sys.argv", [*line, "--two-hop", "8", "--degree", "--agreement"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert Store.open(out).manifest.parts == RowParts(two_hop=8, degree=True, agreement=True)
    assert "1.09 kB of hashed two-hop neighbours" in capsys.readouterr().err
