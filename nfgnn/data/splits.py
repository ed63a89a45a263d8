"""Split protocols: which nodes train, validate and test."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from nfgnn.errors import UserError, unknown_name

Masks = tuple[Tensor, ...]
"""Training, validation, test; the inductive protocol adds the nodes that training does not see."""
_NAMES = ("train_mask", "val_mask", "test_mask", "unobserved_mask")


def split(data: Data, protocol: str = "full", seed: int = 0) -> Data:
    """A copy of ``data`` with ``train_mask``, ``val_mask`` and ``test_mask`` of one protocol.

    Args:
        data: a graph with labels ``y``; nodes of label -1 are in no mask.
        protocol: ``"full"`` and ``"semi"`` are the paper's (:func:`per_class`, 60/20 % and 2.5/2.5 %);
            ``"stratified"`` keeps every class' share, 60/20/20 %; ``"random"`` is 50/25/25 %; ``"geom-gcn"`` takes
            one of the ten fixed splits that came with the data, number ``seed`` modulo 10; ``"public"`` the split
            that came with the data; ``"inductive"`` is ``"semi"`` with a fifth of the test nodes in
            ``unobserved_mask``, which training does not see (:func:`observed_part`).
        seed: decides all that is random. The same seed gives the same masks on every machine.
    """
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if data.y is None or not bool((data.y >= 0).any()):
        raise UserError(
            "the graph has no labels, so there is nothing to split: give some nodes a label"
        )
    out = copy.copy(data)
    masks = PROTOCOLS[protocol](data, seed)
    if "unobserved_mask" in out:  # of an earlier split
        del out.unobserved_mask
    for name, mask in zip(_NAMES, masks):
        out[name] = mask
    out.protocol, out.split_seed = protocol, seed
    return out


def per_class(data: Data, seed: int, train: float, val: float) -> Masks:
    r"""The generator that this family of papers uses.

    Training takes :math:`\mathrm{round}(r_{train}\, n / C)` nodes *of every class*, or the whole class where it is
    smaller; validation takes :math:`\mathrm{round}(r_{val}\, n)` of the rest, test all that is left. Where classes
    differ in size this is not a plain 60/20/20 split: on Texas the training set is 46 % of the nodes and two classes
    are never tested.
    """
    y, generator = data.y, torch.Generator().manual_seed(seed)
    n, classes = int((y >= 0).sum()), int(y.max()) + 1
    quota = round(train * n / classes)
    shuffled = [_shuffle((y == c).nonzero().flatten(), generator) for c in range(classes)]
    rest = _shuffle(torch.cat([nodes[quota:] for nodes in shuffled]), generator)
    size = round(val * n)
    return _masks(y, torch.cat([nodes[:quota] for nodes in shuffled]), rest[:size], rest[size:])


def stratified(data: Data, seed: int, train: float = 0.6, val: float = 0.2) -> Masks:
    """Every class divided in the same shares, each part at least one node of every class of three nodes or more."""
    y, generator = data.y, torch.Generator().manual_seed(seed)
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for c in range(int(y.max()) + 1):
        nodes = _shuffle((y == c).nonzero().flatten(), generator)
        n = nodes.numel()
        size = max(1, round(val * n)) if n >= 3 else 0
        end = min(max(1, round(train * n)), n - size - 1) if n >= 3 else n
        for part, chosen in zip(parts, nodes.tensor_split([end, end + size])):
            part.append(chosen)
    return _masks(y, *(torch.cat(part) for part in parts))


def random(data: Data, seed: int, train: float = 0.5, val: float = 0.25) -> Masks:
    """Labelled nodes at random, regardless of class: the rule for the large graphs of LINKX."""
    nodes = _shuffle((data.y >= 0).nonzero().flatten(), torch.Generator().manual_seed(seed))
    a, b = round(train * nodes.numel()), round((train + val) * nodes.numel())
    return _masks(data.y, nodes[:a], nodes[a:b], nodes[b:])


def inductive(data: Data, seed: int, unobserved: float = 0.2) -> Masks:
    """From ``semi``: the test nodes are cut 8 : 2 into observed ones, which stay in ``test_mask``, and unobserved ones.

    Training has neither the unobserved nodes nor their edges. At test time the whole graph is there, and both parts
    are scored, each by itself.
    """
    train, val, test = per_class(data, seed, 0.025, 0.025)
    nodes = _shuffle(test.nonzero().flatten(), torch.Generator().manual_seed(seed))
    hidden = nodes[round((1 - unobserved) * nodes.numel()) :]
    mask = torch.zeros_like(test).index_fill_(0, hidden, True)
    return train, val, test & ~mask, mask


def observed_part(data: Data) -> Data:
    """The graph without the nodes of ``unobserved_mask`` and without their edges; ``data`` itself where it has none."""
    hidden = data.get("unobserved_mask")
    if hidden is None:
        return data
    nodes = (~hidden).nonzero().flatten()
    edge_index, edge_weight = subgraph(
        nodes,
        data.edge_index,
        data.get("edge_weight"),
        relabel_nodes=True,
        num_nodes=data.num_nodes,
    )
    out = copy.copy(data)
    del out.unobserved_mask
    out.edge_index, out.edge_weight, out.num_nodes = edge_index, edge_weight, nodes.numel()
    dense = data.x.layout == torch.strided
    out.x = (
        data.x[nodes] if dense else data.x.to_sparse_coo().index_select(0, nodes).to_sparse_csr()
    )
    out.y, out.train_mask, out.val_mask, out.test_mask = (
        value[nodes] for value in (data.y, data.train_mask, data.val_mask, data.test_mask)
    )
    return out


def geom_gcn(data: Data, seed: int) -> Masks:
    """One of the ten fixed splits of Geom-GCN that are part of the dataset."""
    mask = data.get("train_mask")
    if mask is None or mask.dim() != 2 or mask.shape[1] != 10:
        raise UserError(
            f"{data.get('name') or 'this graph'} does not come with ten fixed splits: "
            "use another protocol, such as 'full'"
        )
    return _shipped(data, seed % 10)


def public(data: Data, seed: int) -> Masks:
    """The split that came with the data; where there are several, number ``seed`` modulo their count."""
    mask = data.get("train_mask")
    if mask is None or data.get("val_mask") is None or data.get("test_mask") is None:
        raise UserError(
            f"{data.get('name') or 'this graph'} does not come with a split: use another protocol, such as 'full', "
            "or give the nodes a column 'split' with train, val and test"
        )
    return _shipped(data, seed % mask.shape[1] if mask.dim() == 2 else None)


PROTOCOLS: dict[str, Callable[[Data, int], Masks]] = {
    "full": lambda data, seed: per_class(data, seed, 0.6, 0.2),
    "semi": lambda data, seed: per_class(data, seed, 0.025, 0.025),
    "stratified": stratified,
    "random": random,
    "geom-gcn": geom_gcn,
    "public": public,
    "inductive": inductive,
}


def _shipped(data: Data, column: int | None) -> Masks:
    train, val, test = (
        mask if column is None or mask.dim() == 1 else mask[:, column]
        for mask in (data.train_mask, data.val_mask, data.test_mask)
    )
    return train.clone(), val.clone(), test.clone()


def _shuffle(nodes: Tensor, generator: torch.Generator) -> Tensor:
    return nodes[torch.randperm(nodes.numel(), generator=generator)]


def _masks(y: Tensor, *parts: Tensor) -> Masks:
    train, val, test = (
        torch.zeros_like(y, dtype=torch.bool).index_fill_(0, part, True) for part in parts
    )
    return train, val, test
