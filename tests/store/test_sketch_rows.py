"""Stored sketches equal those of the graph in memory, with every cut, and are verified."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.store_graphs import files_of, make_store, small_graph
from torch import Tensor
from torch_geometric.data import Data

import nfgnn.store.sketch_rows as module
from nfgnn import NodeClassifier, split
from nfgnn.cli import main
from nfgnn.errors import UserError
from nfgnn.spectral import RowParts, adjacency_sketch, scaled_laplacian
from nfgnn.store import (
    NewNodes,
    Settings,
    Speed,
    Store,
    make_plan,
    parts_of_new_nodes,
    verify_store,
)
from nfgnn.training import predict_new_nodes

COLUMNS = 12
SETTINGS = {"K": 4, "epochs": 3, "hidden_channels": 8, "batch_size": 16, "device": "cpu"}


def sketch_in_memory(data: Data) -> Tensor:
    graph = scaled_laplacian(data.edge_index, None, data.num_nodes)
    return adjacency_sketch(graph.indptr, graph.indices, COLUMNS, torch.arange(data.num_nodes))


@pytest.mark.parametrize("cut", ["resident", "streamed"])
@pytest.mark.parametrize(
    "options",
    [{}, {"rows": "all", "self_loops": True}, {"dtype": "bfloat16"}],
)
def test_sketches_equal_those_in_memory(
    cut: str, options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE_VALUES", 5 * COLUMNS)
    data = small_graph(weighted=True)
    store = make_store(data, tmp_path / "s", cut, sketch=COLUMNS, **options)
    kind = getattr(torch, store.manifest.dtype)
    expected = sketch_in_memory(data)[store.nodes].to(kind).float()
    rows = store.with_parts(store.manifest.parts).rows(torch.arange(len(store.nodes)))
    assert torch.equal(rows[:, -COLUMNS:], expected)
    assert torch.equal(rows[:, :-COLUMNS], store.rows(slice(None)).flatten(1))
    assert (store.manifest.format, store.manifest.sketch) == (2, COLUMNS)


def test_a_sketch_adds_a_file_and_changes_no_other(tmp_path: Path) -> None:
    data = small_graph()
    plain = files_of(make_store(data, tmp_path / "plain").path)
    sketched = files_of(make_store(data, tmp_path / "sketched", sketch=COLUMNS).path)
    assert sketched.keys() - plain.keys() == {"sketch.npy"}
    assert all(plain[name] == sketched[name] for name in plain.keys() - {"manifest.json"})
    manifest = json.loads((tmp_path / "plain" / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert not [key for key in manifest if "sketch" in key]


def test_labels_do_not_change_a_row(tmp_path: Path) -> None:
    data = small_graph()
    before = make_store(data, tmp_path / "a", sketch=COLUMNS)
    data.y = torch.where(data.y < 0, -1, (data.y + 1) % 3)
    after = make_store(data, tmp_path / "b", sketch=COLUMNS)
    assert np.array_equal(before.parts["sketch"], after.parts["sketch"])
    assert np.array_equal(before.terms, after.terms)


def test_damage_is_found(tmp_path: Path) -> None:
    store = make_store(small_graph(), tmp_path / "s", sketch=COLUMNS)
    path = store.path / "sketch.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"sketch\.npy: block 0 of 1 is damaged"):
        Store.open(store.path)
    assert set(verify_store(store.path)[1]) == {"sketch.npy"}
    path.unlink()
    with pytest.raises(UserError, match="is missing"):
        Store.open(store.path)


def test_the_plan_has_the_bytes_of_every_part(tmp_path: Path) -> None:
    speed = Speed(1e-9, 1e-9, 1e-8, 1e-7, 1e-9)

    def plan(sketch: int, dtype: str):
        settings = Settings(K=3, sketch=sketch, dtype=dtype)
        return make_plan(100, 400, 7, 50, settings, base=0, speed=speed, out=tmp_path)

    assert plan(0, "float32").part_bytes == {"terms": 50 * 4 * 7 * 4}
    with_sketch = plan(16, "bfloat16")
    assert with_sketch.part_bytes == {"terms": 50 * 4 * 7 * 2, "sketch": 50 * 16 * 2}
    assert with_sketch.store_bytes == 50 * (4 * 7 + 16) * 2
    assert with_sketch.read_bytes - plan(0, "bfloat16").read_bytes == 4 * 400 + 16 * 100


def test_training_on_a_store_equals_training_on_the_graph(tmp_path: Path) -> None:
    data = small_graph()
    data.y = data.y.clamp(min=0)
    store = make_store(data, tmp_path / "s", sketch=COLUMNS)
    data.x = store.scaling.apply(data.x)
    graph = split(data, "full", 0)
    rows = split(store.labels(), "full", 0)
    on_graph = NodeClassifier("ScalableNFNet", features="raw", sketch=COLUMNS, **SETTINGS)
    on_store = NodeClassifier("ScalableNFNet", **SETTINGS)
    expected = on_graph.fit(graph).predict_proba(graph)
    torch.testing.assert_close(on_store.fit(rows).predict_proba(rows), expected)
    assert on_store.config_.hyper["sketch"] == COLUMNS
    # The other models read the terms alone.
    assert NodeClassifier("ScalableNFGNN", **SETTINGS).fit(rows).predict(rows).shape == (60,)


def test_another_sketch_than_that_of_the_store_is_rejected(tmp_path: Path) -> None:
    rows = make_store(small_graph(), tmp_path / "s", sketch=COLUMNS).labels()
    with pytest.raises(UserError, match="computed with sketch = 12, not 13"):
        NodeClassifier("ScalableNFNet", sketch=13, **SETTINGS).fit(rows)


def test_new_nodes_have_the_sketch_of_the_extended_graph() -> None:
    data = small_graph()
    data.y = data.y.clamp(min=0)
    graph = split(data, "full", 0)
    classifier = NodeClassifier("ScalableNFNet", features="raw", sketch=COLUMNS, **SETTINGS)
    classifier.fit(graph)
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    new = NewNodes(x, torch.tensor([[60, 60, 61, 5], [4, 9, 60, 61]]))  # node 62 has no edges
    source, target, _ = new.directed_edges(60)
    extended = Data(
        x=torch.cat([data.x, x]),
        edge_index=torch.cat([data.edge_index, torch.stack([source, target])], 1),
        num_nodes=63,
    )
    expected = sketch_in_memory(extended)[60:]
    existing = scaled_laplacian(data.edge_index, None, 60)
    sketch = parts_of_new_nodes(existing, data.x.__getitem__, new, RowParts(sketch=COLUMNS))
    assert torch.equal(sketch, expected)
    model = classifier.model_
    found = predict_new_nodes(classifier, data, Data(x=x, edge_index=new.edge_index))
    with pytest.raises(UserError, match="it has 60 nodes, this graph has 63"):
        model.rows(extended.x, extended.edge_index)
    model.num_nodes = 63
    with torch.no_grad():
        logits = model.eval()(extended.x, extended.edge_index)
    torch.testing.assert_close(found, logits[60:].softmax(-1))


def test_the_command_stores_a_sketch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "s"
    line = ["nfgnn", "precompute", "karate", "--out", str(out), "--K", "2", "--sketch", "8"]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert Store.open(out).parts["sketch"].shape == (34, 8)
