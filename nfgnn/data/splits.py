"""Split protocols: which nodes train, validate and test."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from nfgnn.errors import UserError

Masks = tuple[Tensor, ...]
"""Training, validation and test nodes; the inductive protocol adds the unobserved nodes."""
_SEEDS = 2**63
_NAMES = ("train_mask", "val_mask", "test_mask", "unobserved_mask")


def split(data: Data, protocol: str | None = None, seed: int = 0) -> Data:
    """Return a copy of ``data`` with the masks of one protocol.

    Args:
        data: a graph with labels ``y``; unlabelled nodes (-1) are in no mask.
        protocol: one of :data:`PROTOCOLS`, by default that of :func:`default_protocol`.

            - ``"full"``: the paper's full-supervised split, 60 / 20 % by :func:`per_class`.
            - ``"semi"``: the paper's semi-supervised split, 2.5 / 2.5 % by :func:`per_class`.
            - ``"stratified"``: 60 / 20 / 20 % of every class.
            - ``"random"``: 50 / 25 / 25 % of the labelled nodes.
            - ``"geom-gcn"``: fixed split ``seed`` modulo 10 of the ten that are part of the data.
            - ``"public"``: the split that is part of the data.
            - ``"inductive"``: ``"semi"`` with a fifth of the test nodes in ``unobserved_mask``,
              which training does not see (:func:`observed_part`).
            - ``"homophily-high-to-low"``: 50 / 25 / 25 % of every class, from nodes of high local
              homophily to nodes of low local homophily (:func:`homophily_shift`).
            - ``"homophily-low-to-high"``: the same in reverse.
        seed: seed of the random numbers. The same seed gives the same masks on every machine.
    """
    protocol = protocol or default_protocol(data)
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise UserError(f"unknown protocol '{protocol}': choose one of {', '.join(PROTOCOLS)}")
    if data.y is None or not bool((data.y >= 0).any()):
        raise UserError("the graph has no labels, so it cannot be split: add labels for some nodes")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < _SEEDS:
        raise UserError(f"seed = {seed!r} is not valid: use a whole number from 0 to 2**63 - 1")
    masks = PROTOCOLS[protocol](data, seed)
    out = copy.copy(data)
    if "unobserved_mask" in out:  # of an earlier split
        del out.unobserved_mask
    for name, mask in zip(_NAMES, masks):
        out[name] = mask
    out.protocol = protocol
    out.split_seed = seed
    return out


def default_protocol(data: Data) -> str:
    """Return the protocol of a graph for which none is chosen.

    Registered data sets that are scored by accuracy use ``"full"``, as the paper does. Any other
    graph uses the split that it comes with (``"public"``), else ``"stratified"``: ``"full"`` takes
    equally many training nodes of every class. This can leave none of a rare class for validation
    and test, on which other metrics are not defined.
    """
    if data.get("registered") and data.get("metric") in (None, "auto", "accuracy"):
        return "full"
    return representative_protocol(data)


def representative_protocol(data: Data) -> str:
    """Return ``"public"`` for a graph that comes with a split, else ``"stratified"``."""
    masks = [data.get(name) for name in _NAMES[:3]]
    if any(mask is not None and bool(mask.any()) for mask in masks):
        return "public"
    return "stratified"


def per_class(data: Data, seed: int, train: float, val: float) -> Masks:
    r"""Draw the same number of training nodes from every class.

    Training takes :math:`\mathrm{round}(r_{train}\, n / C)` nodes of every class, or the whole
    class if it is smaller. Validation takes :math:`\mathrm{round}(r_{val}\, n)` of the remaining
    nodes, and test takes the rest. :math:`n` counts labelled nodes.

    GPRGNN, BernNet and NFGNN use this generator. With classes of different size it is not a plain
    60/20/20 split: on Texas training has 46 % of the nodes, and two classes are never tested.
    """
    y = data.y
    generator = torch.Generator().manual_seed(seed)
    n = int((y >= 0).sum())
    num_classes = int(y.max()) + 1
    quota = round(train * n / num_classes)
    num_val = round(val * n)
    chosen = []
    remaining = []
    for c in range(num_classes):
        nodes = _shuffle((y == c).nonzero().flatten(), generator)
        chosen.append(nodes[:quota])
        remaining.append(nodes[quota:])
    rest = _shuffle(torch.cat(remaining), generator)
    return _masks(y, torch.cat(chosen), rest[:num_val], rest[num_val:])


def stratified(data: Data, seed: int, train: float = 0.6, val: float = 0.2) -> Masks:
    """Divide every class in the same proportions.

    Each part gets at least one node of every class of three nodes or more. Smaller classes only
    train.
    """
    generator = torch.Generator().manual_seed(seed)
    classes = [_shuffle(nodes, generator) for nodes in _nodes_by_class(data.y)]
    return _divide_classes(data.y, classes, train, val)


def homophily_shift(
    data: Data,
    seed: int,
    high_first: bool,
    train: float = 0.5,
    val: float = 0.25,
    noise: float = 0.1,
) -> Masks:
    """Split so that training and test nodes differ in local homophily.

    The nodes of every class are ordered by the share of their labelled neighbours that have the
    same class. The first ones train, the next ones validate and the last ones are tested. All
    classes are divided in the same proportions, so only homophily shifts and not the labels.

    Args:
        data: a graph with labels and edges.
        seed: seed of the noise, and of the order of nodes with equal homophily. Nodes without
            labelled neighbours get a random place.
        high_first: whether nodes of high homophily train, or nodes of low homophily.
        train, val: shares of the training and validation nodes.
        noise: standard deviation of the noise on a node's rank, where the ranks go from 0 to 1.
    """
    if data.edge_index is None:
        raise UserError(
            f"{data.get('name') or 'this graph'} has no edges here, so its nodes have no local "
            "homophily: use another protocol, such as 'stratified'"
        )
    generator = torch.Generator().manual_seed(seed)
    homophily = _local_homophily(data)
    classes = []
    for members in _nodes_by_class(data.y):
        nodes = _shuffle(members, generator)
        place = _ranks(homophily[nodes], generator)
        place += noise * torch.randn(len(nodes), generator=generator)
        classes.append(nodes[place.argsort(descending=high_first)])
    return _divide_classes(data.y, classes, train, val)


def random(data: Data, seed: int, train: float = 0.5, val: float = 0.25) -> Masks:
    """Draw labelled nodes regardless of class, as LINKX does for large graphs."""
    generator = torch.Generator().manual_seed(seed)
    nodes = _shuffle((data.y >= 0).nonzero().flatten(), generator)
    end_train = round(train * nodes.numel())
    end_val = round((train + val) * nodes.numel())
    return _masks(data.y, nodes[:end_train], nodes[end_train:end_val], nodes[end_val:])


def inductive(data: Data, seed: int, unobserved: float = 0.2) -> Masks:
    """Split as ``semi`` and hide a fifth of the test nodes.

    Training sees neither the unobserved nodes nor their edges. Predictions use the whole graph, and
    observed and unobserved test nodes are scored separately.
    """
    train, val, test = per_class(data, seed, 0.025, 0.025)
    generator = torch.Generator().manual_seed(seed)
    # A generator of its own: the other masks stay those of ``semi`` with the same seed.
    nodes = _shuffle(test.nonzero().flatten(), generator)
    num_observed = round((1 - unobserved) * nodes.numel())
    hidden = torch.zeros_like(test).index_fill_(0, nodes[num_observed:], True)
    return train, val, test & ~hidden, hidden


def observed_part(data: Data) -> Data:
    """Return the graph without its unobserved nodes and their edges.

    A graph without ``unobserved_mask`` is returned unchanged.
    """
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
    out.edge_index = edge_index
    out.edge_weight = edge_weight
    out.num_nodes = nodes.numel()
    # Sparse CSR tensors cannot be indexed by rows.
    if data.x.layout == torch.strided:
        out.x = data.x[nodes]
    else:
        out.x = data.x.to_sparse_coo().index_select(0, nodes).to_sparse_csr()
    for key in ("y", "train_mask", "val_mask", "test_mask"):
        out[key] = data[key][nodes]
    if data.get("node_ids") is not None:
        out.node_ids = _selected(data.node_ids, nodes)
    return out


def _selected(ids: Any, nodes: Tensor) -> Any:
    """Return the ids of some nodes: a list of a list, otherwise an array."""
    if isinstance(ids, list | tuple):
        # Nodes of NetworkX may be any objects, and an array would change them.
        return [ids[node] for node in nodes.tolist()]
    return np.asarray(ids)[nodes.numpy(force=True)]


def geom_gcn(data: Data, seed: int) -> Masks:
    """Return one of the ten fixed splits of Geom-GCN that are part of the data."""
    mask = data.get("train_mask")
    if mask is None or mask.dim() != 2 or mask.shape[1] != 10:
        raise UserError(
            f"{data.get('name') or 'this graph'} does not come with ten fixed splits: "
            "use another protocol, such as 'stratified'"
        )
    return _fixed(data, seed % 10)


def public(data: Data, seed: int) -> Masks:
    """Return the split that is part of the data; of several, ``seed`` modulo their number."""
    missing = [name for name in _NAMES[:3] if data.get(name) is None]
    if missing:
        found = "a split" if len(missing) == 3 else " and ".join(missing)
        raise UserError(
            f"{data.get('name') or 'this graph'} does not come with {found}: use another protocol, "
            "such as 'stratified', or add a column 'split' with train, val and test to the nodes"
        )
    mask = data.train_mask
    return _fixed(data, seed % mask.shape[1] if mask.dim() == 2 else 0)


PROTOCOLS: dict[str, Callable[[Data, int], Masks]] = {
    "full": partial(per_class, train=0.6, val=0.2),
    "semi": partial(per_class, train=0.025, val=0.025),
    "stratified": stratified,
    "random": random,
    "geom-gcn": geom_gcn,
    "public": public,
    "inductive": inductive,
    "homophily-high-to-low": partial(homophily_shift, high_first=True),
    "homophily-low-to-high": partial(homophily_shift, high_first=False),
}


def _fixed(data: Data, column: int) -> Masks:
    masks = []
    for mask in (data.train_mask, data.val_mask, data.test_mask):
        chosen = mask if mask.dim() == 1 else mask[:, column]
        masks.append(chosen.clone())
    return tuple(masks)


def _nodes_by_class(y: Tensor) -> list[Tensor]:
    return [(y == c).nonzero().flatten() for c in range(int(y.max()) + 1)]


def _divide_classes(y: Tensor, classes: Sequence[Tensor], train: float, val: float) -> Masks:
    """Divide the nodes of every class in their order; classes of one or two nodes only train."""
    parts: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for nodes in classes:
        n = nodes.numel()
        num_train = n
        num_val = 0
        if n >= 3:
            num_val = max(1, round(val * n))
            num_train = min(max(1, round(train * n)), n - num_val - 1)
        pieces = nodes.tensor_split([num_train, num_train + num_val])
        for part, piece in zip(parts, pieces):
            part.append(piece)
    return _masks(y, *(torch.cat(part) for part in parts))


def _local_homophily(data: Data) -> Tensor:
    """Return the share of labelled neighbours in each node's class; NaN where there are none."""
    row, col = data.edge_index
    labelled = data.y[col] >= 0
    agrees = labelled & (data.y[row] == data.y[col])
    same = torch.bincount(row[agrees], minlength=len(data.y))
    degree = torch.bincount(row[labelled], minlength=len(data.y))
    return same.double() / degree


def _ranks(values: Tensor, generator: torch.Generator) -> Tensor:
    """Return ranks from 0 to 1 in ascending order, random ones where a value is NaN."""
    ranks = torch.rand(len(values), generator=generator)
    defined = (~values.isnan()).nonzero().flatten()
    order = defined[values[defined].argsort(stable=True)]
    ranks[order] = torch.linspace(0, 1, len(order))
    return ranks


def _shuffle(nodes: Tensor, generator: torch.Generator) -> Tensor:
    return nodes[torch.randperm(nodes.numel(), generator=generator)]


def _masks(y: Tensor, *parts: Tensor) -> Masks:
    empty = torch.zeros_like(y, dtype=torch.bool)
    return tuple(empty.index_fill(0, part, True) for part in parts)
