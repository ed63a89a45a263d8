"""A graph that is written and read again is the same, and so are the predictions for it."""

from pathlib import Path
from uuid import UUID

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nfgnn.data import load_dataset, mixed_graph, split
from nfgnn.data.export import FORMATS, export_graph, write_template
from nfgnn.errors import UserError
from nfgnn.training import NodeClassifier, prediction_table, write_table


def there_and_back(data: Data, file_format: str, tmp_path: Path) -> Data:
    path = tmp_path / ("graph.npz" if file_format == "npz" else "graph")
    return load_dataset(export_graph(data, path, file_format), need_labels=False)


def same(one: Data, other: Data) -> None:
    assert one.x.layout == other.x.layout
    assert torch.equal(one.x.to_dense(), other.x.to_dense())
    for key in ("edge_index", "edge_weight", "y", "train_mask", "val_mask", "test_mask"):
        assert (one.get(key) is None) == (other.get(key) is None), key
        if one.get(key) is not None:
            assert torch.equal(one[key], other[key]), key
    assert one.class_names == other.class_names


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Data, Path]:
    data = mixed_graph(240, num_features=8)
    folder = tmp_path_factory.mktemp("run") / "model"
    NodeClassifier("NFGNN", K=3, epochs=20, device="cpu").fit(split(data, "stratified")).save(
        folder
    )
    return data, folder


@pytest.mark.parametrize("file_format", FORMATS)
def test_identical_predictions(file_format: str, saved: tuple[Data, Path], tmp_path: Path) -> None:
    data, folder = saved
    back = there_and_back(data, file_format, tmp_path)
    same(data, back)
    classifier = NodeClassifier.load(folder, device="cpu")
    assert torch.equal(classifier.predict_proba(data), classifier.predict_proba(back))
    columns = ("predicted", "probability", "margin")
    assert (
        prediction_table(classifier, data)
        .select(columns)
        .equals(prediction_table(classifier, back).select(columns))
    )


@pytest.mark.parametrize("file_format", FORMATS)
def test_weights_splits_ids_and_gaps_survive(file_format: str, tmp_path: Path) -> None:
    data = load_dataset(
        Data(
            x=torch.tensor([[0.1], [1 / 3], [1e-30], [3.4e38]]),
            edge_index=torch.tensor([[0, 1], [1, 2]]),
            edge_weight=torch.tensor([0.3, 7.0]),
            y=torch.tensor([10, 9, -1, 9]),
            train_mask=torch.tensor([True, False, False, False]),
            val_mask=torch.tensor([False, True, False, False]),
            test_mask=torch.tensor([False, False, False, True]),
            node_ids=np.array(["a b", "ż,ó", 'q"uote', "007"]),
        )
    )
    back = there_and_back(data, file_format, tmp_path)
    same(data, back)
    assert list(back.node_ids) == list(data.node_ids)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("name", ["texas", "citeseer"])
def test_real_graphs_with_sparse_features(
    name: str, file_format: str, tmp_path: Path, data_root: Path
) -> None:
    data = load_dataset(name, data_root)
    if file_format != "npz" and data.get("train_mask") is not None and data.train_mask.dim() == 2:
        for key in ("train_mask", "val_mask", "test_mask"):  # a table has room for one split
            del data[key]
    same(data, there_and_back(data, file_format, tmp_path))


def test_columns_in_another_order_are_matched_by_name(tmp_path: Path) -> None:
    data = load_dataset(write_template(tmp_path / "template"))
    classifier = NodeClassifier("NFGNN", K=2, epochs=10, device="cpu").fit(
        split(data, "stratified")
    )
    turned = data.clone()
    turned.x, turned.feature_names = data.x.flip(1), data.feature_names[::-1]
    assert prediction_table(classifier, turned).equals(prediction_table(classifier, data))
    turned.feature_names = ["other", *turned.feature_names[1:]]
    with pytest.raises(UserError, match=r"lacks 1 of the 6 features.*: answer_6"):
        prediction_table(classifier, turned)


def test_a_template_is_not_written_over_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="not an empty folder"):
        write_template(tmp_path)
    with pytest.raises(UserError, match="is not a new folder; choose"):
        write_template("")
    with pytest.raises(UserError, match="csv, parquet, npz"):
        export_graph(mixed_graph(20), tmp_path, "xlsx")


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    "names",
    [
        [(0, 0), (0, 1), (1, 1)],
        ["a", 1, 2],
        [1, "1", 2],
        [2**70, 2**70 + 1, 5],
        [UUID(int=0), UUID(int=1), UUID("12345678-1234-5678-1234-567812345678")],
    ],
)
def test_nodes_of_networkx_may_be_any_objects(
    names: list[object], file_format: str, tmp_path: Path
) -> None:
    graph = nx.Graph()
    for number, name in enumerate(names):
        graph.add_node(name, label="xyx"[number], value=float(number))
    nx.add_path(graph, names)
    data = load_dataset(graph)
    path = export_graph(data, tmp_path / f"graph.{file_format}", file_format)
    loaded = load_dataset(path)
    texts = list(map(str, names))
    expected = texts if len(set(texts)) == 3 else ["0", "1", "2"]
    assert list(map(str, loaded.node_ids)) == expected
    assert torch.equal(loaded.x, data.x)
    assert torch.equal(loaded.edge_index, data.edge_index)
    data.train_mask = data.val_mask = torch.ones(3, dtype=torch.bool)
    table = prediction_table(NodeClassifier("MLP", epochs=2, device="cpu").fit(data), data)
    write_table(table, tmp_path / "predictions.csv")
    assert list(map(str, table["id"].to_pylist())) == expected


def test_features_with_the_names_of_other_columns_survive(tmp_path: Path) -> None:
    data = load_dataset(mixed_graph(20, 2, num_features=3, seed=0))
    data.feature_names = ["label", "v", "v"]
    loaded = load_dataset(export_graph(data, tmp_path / "graph"))
    assert loaded.feature_names == ["label_2", "v", "v_2"]
    assert torch.equal(loaded.x, data.x)
    assert torch.equal(loaded.y, data.y)


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["split", "v", "w"], ["split_2", "v", "w"]),
        (["id", "label", "split"], ["id_2", "label_2", "split_2"]),
        ([" id", "a", "a "], ["id_2", "a", "a_2"]),
        (["source", "a\nb", '"q"'], ["source", "a\nb", '"q"']),
    ],
)
def test_any_name_of_a_feature_can_be_read_again(
    names: list[str], expected: list[str], file_format: str, masks: bool, tmp_path: Path
) -> None:
    data = load_dataset(mixed_graph(20, 2, num_features=3, seed=0))
    for key in ("train_mask", "val_mask", "test_mask"):
        if not masks:
            data.pop(key, None)
    if masks:
        data = split(data, "stratified")
    data.feature_names = names
    loaded = there_and_back(data, file_format, tmp_path)
    same(data, loaded)
    assert loaded.feature_names == expected
