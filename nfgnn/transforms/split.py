"""Split protocols: which nodes train, validate and test."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError

Masks = tuple[Tensor, Tensor, Tensor]


def split(data: Data, protocol: str = "full", seed: int = 0) -> Data:
    """A copy of ``data`` with ``train_mask``, ``val_mask`` and ``test_mask`` of one protocol.

    Args:
        data: a graph with labels ``y``; nodes of label -1 are in no mask.
        protocol: ``"full"`` and ``"semi"`` are the paper's (:func:`per_class`, 60/20 % and 2.5/2.5 %);
            ``"stratified"`` keeps every class' share, 60/20/20 %; ``"random"`` is 50/25/25 %; ``"geom-gcn"`` takes
            one of the ten fixed splits that came with the data, number ``seed`` modulo 10; ``"public"`` the split
            that came with the data.
        seed: decides all that is random. The same seed gives the same masks on every machine.
    """
    if protocol not in PROTOCOLS:
        raise UserError(f"there is no protocol '{protocol}': choose one of {', '.join(PROTOCOLS)}")
    if data.y is None or not bool((data.y >= 0).any()):
        raise UserError("the graph has no labels, so there is nothing to split: give some nodes a label")
    out = copy.copy(data)
    out.train_mask, out.val_mask, out.test_mask = PROTOCOLS[protocol](data, seed)
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
    train, val, test = (torch.zeros_like(y, dtype=torch.bool).index_fill_(0, part, True) for part in parts)
    return train, val, test
