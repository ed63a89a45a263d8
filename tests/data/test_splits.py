"""Split protocols."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from nfgnn.analysis import local_homophily
from nfgnn.data import default_protocol, load_dataset, observed_part, split
from nfgnn.data.splits import homophily_shift
from nfgnn.errors import UserError

SIZES = [50, 3, 120, 27]


@pytest.fixture
def data() -> Data:
    y = torch.cat([torch.full((size,), c) for c, size in enumerate([*SIZES, 7])])
    y[y == 4] = -1  # seven unlabelled nodes
    return Data(
        y=y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))], num_nodes=len(y)
    )


def counts(data: Data, mask: str) -> list[int]:
    return torch.bincount(data.y[data[mask]], minlength=4).tolist()


@pytest.mark.parametrize(("protocol", "train", "val"), [("full", 0.6, 0.2), ("semi", 0.025, 0.025)])
def test_per_class_sizes_follow_the_formula(
    data: Data, protocol: str, train: float, val: float
) -> None:
    n = sum(SIZES)
    out = split(data, protocol, 0)
    quota = round(train * n / 4)
    assert counts(out, "train_mask") == [min(quota, size) for size in SIZES]
    assert int(out.val_mask.sum()) == round(val * n)
    assert int(out.test_mask.sum()) == n - int(out.train_mask.sum()) - int(out.val_mask.sum())


def test_stratified_keeps_every_class_share(data: Data) -> None:
    out = split(data, "stratified", 0)
    assert counts(out, "train_mask") == [30, 1, 72, 16]
    assert counts(out, "val_mask") == [10, 1, 24, 5]
    assert counts(out, "test_mask") == [10, 1, 24, 6]


@pytest.mark.parametrize("size", range(1, 60))
def test_stratified_gives_each_part_a_node_of_every_class_of_three(size: int) -> None:
    data = Data(y=torch.tensor([0] * size + [1] * 40), num_nodes=size + 40)
    for seed in range(3):
        out = split(data, "stratified", seed)
        found = [counts(out, mask)[0] for mask in ("train_mask", "val_mask", "test_mask")]
        assert sum(found) == size
        assert min(found) >= 1 if size >= 3 else found == [size, 0, 0]


def test_the_default_protocol_depends_on_where_the_graph_comes_from(data: Data) -> None:
    assert default_protocol(load_dataset("karate")) == "full"
    assert default_protocol(load_dataset("mixed", num_nodes=50)) == "full"
    assert default_protocol(data) == "stratified"
    assert split(data).protocol == "stratified"
    own = data.clone()
    masks = ("train_mask", "val_mask", "test_mask")
    for mask in masks:
        own[mask] = torch.zeros(data.num_nodes, dtype=torch.bool)
    assert default_protocol(own) == "stratified"  # a column without any part
    own = split(data, "random", 3)
    assert default_protocol(own) == "public"
    assert all(torch.equal(split(own)[mask], own[mask]) for mask in masks)


def test_an_incomplete_split_is_refused(data: Data) -> None:
    own = split(data, "random", 3)
    del own.val_mask
    with pytest.raises(UserError, match="does not come with val_mask: use another protocol"):
        split(own)


@pytest.mark.parametrize("high_first", [True, False])
def test_homophily_shift_divides_every_class_and_follows_the_direction(high_first: bool) -> None:
    protocol = "homophily-high-to-low" if high_first else "homophily-low-to-high"
    data = load_dataset("mixed", num_nodes=2000, crossing=0.3)
    h = local_homophily(data.edge_index, data.y)
    out = split(data, protocol, 0)
    sizes = torch.bincount(data.y)
    for mask, share in (("train_mask", 0.5), ("val_mask", 0.25), ("test_mask", 0.25)):
        assert (torch.tensor(counts(out, mask)) - share * sizes).abs().max() <= 1
    means = [float(h[out[mask]].nanmean()) for mask in ("train_mask", "val_mask", "test_mask")]
    assert means == sorted(means, reverse=high_first)
    assert abs(means[0] - means[2]) > 0.3
    for c in range(4):  # within every class, too
        train, test = h[out.train_mask & (data.y == c)], h[out.test_mask & (data.y == c)]
        assert (train.nanmean() > test.nanmean()) == high_first


def test_homophily_shift_without_noise_is_the_order_by_local_homophily() -> None:
    data = load_dataset("mixed", num_nodes=400, seed=1)
    h = local_homophily(data.edge_index, data.y)
    masks = homophily_shift(data, 0, high_first=False, noise=0.0)
    for c in range(4):
        of_class = (data.y == c) & ~h.isnan()
        train, val, test = (h[mask & of_class] for mask in masks)
        assert train.max() <= val.min()
        assert val.max() <= test.min()


def test_homophily_shift_places_nodes_without_neighbours_at_random() -> None:
    # A star with 30 leaves, and 30 nodes without neighbours.
    leaves = torch.arange(1, 31)
    edges = torch.stack([torch.zeros(30, dtype=torch.long), leaves])
    y = torch.zeros(61, dtype=torch.long)
    data = Data(y=y, edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=61)
    isolated = torch.zeros(61, dtype=torch.bool)
    isolated[31:] = True
    for seed in range(5):
        masks = homophily_shift(data, seed, high_first=True)
        assert all(bool((mask & isolated).any()) for mask in masks)


def test_homophily_shift_needs_edges(data: Data) -> None:
    with pytest.raises(UserError, match="has no edges here"):
        split(data, "homophily-high-to-low")


def test_random_ignores_classes(data: Data) -> None:
    out = split(data, "random", 0)
    assert [int(out[m].sum()) for m in ("train_mask", "val_mask", "test_mask")] == [100, 50, 50]


@pytest.mark.parametrize(
    "protocol", ["full", "semi", "stratified", "random", "homophily-high-to-low"]
)
def test_parts_are_disjoint_cover_the_labelled_nodes_and_follow_the_seed(
    data: Data, protocol: str
) -> None:
    data.edge_index = torch.arange(400).reshape(2, 200) % data.num_nodes
    out, again, other = split(data, protocol, 5), split(data, protocol, 5), split(data, protocol, 6)
    masks = [out.train_mask, out.val_mask, out.test_mask]
    assert torch.equal(sum(mask.int() for mask in masks), (data.y >= 0).int())
    assert all(torch.equal(out[m], again[m]) for m in ("train_mask", "val_mask", "test_mask"))
    assert not torch.equal(out.train_mask, other.train_mask)
    assert "train_mask" not in data


def test_the_published_masks_are_those_of_a_second_implementation() -> None:
    """The generator written out: a permutation per class, then one of all remaining nodes."""
    y = torch.tensor([0, 1, 0, 1, 2, 0, 1, 2, 0, 1] * 4)
    out = split(Data(y=y, num_nodes=40), "full", 3)
    g = torch.Generator().manual_seed(3)
    train, rest = [], []
    for c in range(3):
        nodes = [i for i in range(40) if y[i] == c]
        order = torch.randperm(len(nodes), generator=g).tolist()
        train += [nodes[i] for i in order[:8]]
        rest += [nodes[i] for i in order[8:]]
    order = torch.randperm(len(rest), generator=g).tolist()
    assert sorted(train) == out.train_mask.nonzero().flatten().tolist()
    assert sorted(rest[i] for i in order[:8]) == out.val_mask.nonzero().flatten().tolist()


def test_shipped_splits_are_taken_by_number(data: Data) -> None:
    masks = torch.rand(data.num_nodes, 10) < 0.5
    data.train_mask, data.val_mask, data.test_mask = masks, ~masks, masks.flip(1)
    assert torch.equal(split(data, "geom-gcn", 13).train_mask, masks[:, 3])
    assert torch.equal(split(data, "public", 4).val_mask, ~masks[:, 4])
    data.train_mask = data.train_mask[:, 0]
    with pytest.raises(UserError, match="does not come with ten fixed splits"):
        split(data, "geom-gcn", 0)


def test_mistakes_have_one_message(data: Data) -> None:
    with pytest.raises(UserError, match="unknown protocol 'fulll': choose one of full, semi"):
        split(data, "fulll")
    with pytest.raises(UserError, match="does not come with a split: use another protocol"):
        split(data, "public")
    with pytest.raises(UserError, match="seed = True is not valid: use a whole number"):
        split(data, "full", True)
    with pytest.raises(UserError, match="has no labels"):
        split(Data(y=torch.full((3,), -1), num_nodes=3))


@pytest.mark.parametrize(
    ("name", "train_share"), [("texas", 0.46), ("cora", 0.60), ("squirrel", 0.60)]
)
def test_on_real_graphs(data_root, name: str, train_share: float) -> None:
    data = split(load_dataset(name, root=data_root), "full", 0)
    classes = int(data.y.max()) + 1
    quota = round(0.6 * data.num_nodes / classes)
    sizes = torch.bincount(data.y)
    assert torch.bincount(data.y[data.train_mask]).tolist() == sizes.clamp(max=quota).tolist()
    assert int(data.val_mask.sum()) == round(0.2 * data.num_nodes)
    if name == "texas":
        assert float(data.train_mask.float().mean()) == pytest.approx(train_share, abs=0.01)
        tested = torch.bincount(data.y[data.val_mask | data.test_mask], minlength=5)
        assert int((tested == 0).sum()) == 2
        assert float(tested.max() / tested.sum()) == pytest.approx(0.81, abs=0.01)


def test_geom_gcn_splits_of_texas(data_root) -> None:
    data = load_dataset("texas", root=data_root)
    sizes = [
        [int(split(data, "geom-gcn", s)[m].sum()) for m in ("train_mask", "val_mask", "test_mask")]
        for s in range(10)
    ]
    assert sizes == [[87, 59, 37]] * 10


@pytest.fixture(scope="module")
def hidden() -> Data:
    """A graph with the inductive split."""
    return split(load_dataset("mixed", num_nodes=400), "inductive", 3)


def test_it_is_semi_with_a_fifth_of_the_test_nodes_hidden(hidden: Data) -> None:
    semi = split(hidden, "semi", 3)
    assert torch.equal(hidden.train_mask, semi.train_mask)
    assert torch.equal(hidden.val_mask, semi.val_mask)
    assert torch.equal(hidden.test_mask | hidden.unobserved_mask, semi.test_mask)
    assert not bool((hidden.test_mask & hidden.unobserved_mask).any())
    assert int(hidden.unobserved_mask.sum()) == int(semi.test_mask.sum()) - round(
        0.8 * int(semi.test_mask.sum())
    )
    assert torch.equal(hidden.unobserved_mask, split(hidden, "inductive", 3).unobserved_mask)
    assert not torch.equal(hidden.unobserved_mask, split(hidden, "inductive", 4).unobserved_mask)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_observed_part_is_the_graph_between_observed_nodes(hidden: Data, sparse: bool) -> None:
    data = hidden.clone()
    dense = data.x
    data.x = data.x.to_sparse_csr() if sparse else data.x
    part = observed_part(data)
    nodes = [i for i in range(data.num_nodes) if not data.unobserved_mask[i]]
    place = {node: i for i, node in enumerate(nodes)}
    edges = {
        (place[a], place[b]) for a, b in data.edge_index.T.tolist() if a in place and b in place
    }
    assert {tuple(pair) for pair in part.edge_index.T.tolist()} == edges
    assert part.num_nodes == len(nodes)
    assert torch.equal(part.x.to_dense(), dense[nodes])
    assert torch.equal(part.y, data.y[nodes])
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(part[mask], data[mask][nodes])
    assert observed_part(split(data, "semi", 0)).num_nodes == data.num_nodes


@pytest.mark.parametrize(
    "names",
    [
        [(i, i) for i in range(40)],
        [(i, i) if i % 2 else (i,) for i in range(40)],
        [i // 2 if i % 2 else str(i // 2) for i in range(40)],
    ],
)
def test_the_observed_part_keeps_ids_of_any_kind(names: list[object]) -> None:
    graph = nx.Graph()
    for number, name in enumerate(names):
        graph.add_node(name, label="xy"[number % 2], value=number)
    nx.add_path(graph, names)
    data = split(load_dataset(graph), "inductive", 0)
    part = observed_part(data)
    numbers = [int(value) for value in part.x[:, 0]]
    assert part.node_ids == [names[number] for number in numbers]
    data.node_ids = np.arange(len(names))
    assert observed_part(data).node_ids.tolist() == numbers
