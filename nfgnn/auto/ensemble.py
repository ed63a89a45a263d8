"""Greedy ensemble selection on validation predictions.

A selection starts with the mean of the best models, as many as are best together. It then adds, one
at a time and with replacement, the model that improves the ensemble most (Caruana et al., `Ensemble
Selection from Libraries of Models <https://doi.org/10.1145/1015330.1015432>`_, ICML 2004). How
often a model was added is its weight.
The probabilities of every model are first calibrated by a temperature, so that an overconfident
model does not outvote the others.

Few validation nodes would let the selection overfit. It is therefore repeated with random weights
of the nodes, and the mean of the weights is taken. The score of the ensemble comes from
cross-fitting: the nodes of each fold are predicted by an ensemble that was selected on the other
folds. If the best model alone is better in the same comparison, the ensemble has one member.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.training import Metric

START = 5
"""A selection starts with at most as many of the best models, equally weighted."""
STEPS = 20
"""Most additions of a selection. Few would not leave the best model for a small gain."""
BAGS = 10
"""Most selections with random weights of the nodes."""
FOLDS = 5
LARGEST_POOL = 25
"""Number of the best models that a selection chooses from."""
SMALL_POOL = 12
"""The same where an evaluation takes long."""
ENOUGH_NODES = 2000
"""With as many validation nodes, one selection without weights and folds does not overfit."""
SMALLEST_WEIGHT = 0.03
"""Members of less weight are left out."""
LARGEST_TEMPERATURE = 20.0
_TEMPERATURE_NODES = 2000
"""Most nodes that a temperature is fitted on."""
_SMALLEST_PROBABILITY = 1e-30
_MOST_WORK = 60_000_000
"""Most probabilities that all selections of an ensemble read, which takes about a second."""
_RANKING_COST = 10
"""A metric that sorts the nodes takes as much longer than one that does not."""
_LARGEST_STEP = 4_000_000
"""Most probabilities that one step of the selections holds."""
_EQUAL = 1e-12
"""Scores that differ by less are equal."""


@dataclass(frozen=True)
class SelectedMember:
    """A model of an ensemble, by its position in the pool."""

    position: int
    weight: float
    temperature: float


@dataclass(frozen=True, eq=False)
class Selection:
    """An ensemble: ``calibrate(Σ weight · calibrate(p, temperature), temperature)``."""

    members: tuple[SelectedMember, ...]
    temperature: float
    held_out: tuple[Tensor, ...]
    """Probabilities of the nodes of every split, ``[n, C]``, by ensembles that were selected
    without these nodes."""


def calibrate(probabilities: Tensor, temperature: float) -> Tensor:
    r"""Return :math:`p^{1/T}`, normalised over the classes."""
    logits = probabilities.double().clamp_min(_SMALLEST_PROBABILITY).log()
    return (logits / temperature).softmax(-1)


def fit_temperature(probabilities: Sequence[Tensor], scored: ScoredNodes) -> float:
    """Return the temperature of least log loss on the validation nodes.

    A standard normal prior on its logarithm keeps it finite where all predictions are right.
    """

    from scipy.optimize import minimize_scalar

    logits = []
    labels = []
    for shares, y in zip(probabilities, scored.labels):
        every = math.ceil(len(y) / _TEMPERATURE_NODES)
        logits.append(shares[::every].double().clamp_min(_SMALLEST_PROBABILITY).log())
        labels.append(y[::every])
    rows = torch.cat(logits)
    own = rows.gather(1, torch.cat(labels)[:, None])
    # The nodes of several splits are the same ones, so they count once.
    share = len(scored.labels)

    def cost(log_temperature: float) -> float:
        scale = math.exp(-log_temperature)
        losses = (scale * rows).logsumexp(1) - scale * own[:, 0]
        return float(losses.sum()) / share + log_temperature**2 / 2

    limit = math.log(LARGEST_TEMPERATURE)
    options = {"xatol": 1e-3}
    found = minimize_scalar(cost, bounds=(-limit, limit), method="bounded", options=options)
    return math.exp(float(found.x))


def mix(members: Sequence[tuple[Tensor, float, float]], temperature: float) -> Tensor:
    """Return the probabilities of an ensemble.

    Args:
        members: probabilities ``[n, C]``, weight and temperature of every member.
        temperature: of the weighted mean.
    """
    mean = sum(weight * calibrate(shares, own) for shares, weight, own in members)
    return calibrate(torch.as_tensor(mean), temperature)


def select_ensemble(
    pool: Sequence[Sequence[Tensor]],
    scored: ScoredNodes,
    metric: Metric,
    seed: int = 0,
) -> Selection:
    """Select an ensemble.

    Args:
        pool: the predictions of every model, the best first, on every split, ``[n, C]`` each.
        scored: the validation nodes of every split.
        metric: what the ensemble is selected by.
        seed: of the random weights and of the folds.
    """
    plan = _Plan.of(len(pool), scored, metric)
    pool = pool[: plan.models]
    if plan.bags == 0:
        return _select_once(pool, scored, metric, plan, seed)
    temperatures = [fit_temperature(model, scored) for model in pool]
    stacks = _calibrated(pool, temperatures)
    weights = _bagged(stacks, scored, metric, plan.bags, seed)
    held_out, single = _cross_fit(stacks, scored, metric, plan.fold_bags, seed)
    gain = scored.score(metric, held_out) - scored.score(metric, single)
    if gain * (1 if metric.greater_is_better else -1) < 0:
        weights = torch.zeros(len(pool), dtype=torch.float64)
        weights[0] = 1.0
        held_out = single
    members, temperature = _finish(stacks, weights, temperatures, scored)
    calibrated = [calibrate(shares, temperature) for shares in held_out]
    return Selection(members, temperature, tuple(calibrated))


@dataclass(frozen=True)
class _Plan:
    """How much work the selection of an ensemble does. It depends on sizes only."""

    models: int
    """Number of models to choose from."""
    bags: int
    """Number of selections with random weights of the nodes; 0 for one selection without."""
    fold_bags: int
    """The same for every fold of the cross-fitting."""
    nodes: int
    """Most nodes of one selection without random weights."""

    @classmethod
    def of(cls, models: int, scored: ScoredNodes, metric: Metric) -> "_Plan":
        cost = STEPS * scored.num_classes
        if metric.uses == "ranking":
            cost *= _RANKING_COST
        nodes = sum(map(len, scored.nodes))
        for most in (LARGEST_POOL, SMALL_POOL):
            chosen = min(models, most)
            selections = _MOST_WORK // (cost * nodes * chosen)
            if selections > FOLDS and scored.count < ENOUGH_NODES:
                bags = min(BAGS, selections - FOLDS)
                return cls(chosen, bags, min(BAGS, (selections - bags) // FOLDS), nodes)
        return cls(chosen, 0, 0, max(1, _MOST_WORK // (cost * chosen)))


def _select_once(
    pool: Sequence[Sequence[Tensor]], scored: ScoredNodes, metric: Metric, plan: _Plan, seed: int
) -> Selection:
    """Select an ensemble on many nodes, or on a random part of very many."""
    part = scored
    rows = pool
    if scored.count > plan.nodes:
        generator = torch.Generator().manual_seed(seed)
        kept = [torch.randperm(len(n), generator=generator)[: plan.nodes] for n in scored.nodes]
        part = _part(scored, kept)
        rows = [[shares[index] for shares, index in zip(model, kept)] for model in pool]
    temperatures = [fit_temperature(model, part) for model in rows]
    stacks = _calibrated(rows, temperatures)
    weights = _greedy(stacks, part, _equal_weights(part), metric)[0]
    members, temperature = _finish(stacks, weights, temperatures, part)
    all_nodes = []
    for number in range(len(scored.nodes)):
        chosen = [(pool[m.position][number], m.weight, m.temperature) for m in members]
        all_nodes.append(mix(chosen, temperature))
    return Selection(members, temperature, tuple(all_nodes))


def _finish(
    stacks: Sequence[Tensor], weights: Tensor, temperatures: Sequence[float], scored: ScoredNodes
) -> tuple[tuple[SelectedMember, ...], float]:
    """Return the members of sufficient weight, the heaviest first, and the last temperature."""
    weights = torch.where(weights >= SMALLEST_WEIGHT, weights, 0.0)
    weights = weights / weights.sum()
    members = [
        SelectedMember(position, float(weights[position]), temperatures[position])
        for position in weights.argsort(descending=True, stable=True).tolist()
        if weights[position] > 0
    ]
    return tuple(members), fit_temperature(_mixtures(stacks, weights), scored)


def _calibrated(pool: Sequence[Sequence[Tensor]], temperatures: Sequence[float]) -> list[Tensor]:
    """Return the calibrated predictions of all models on every split, ``[M, n, C]`` each."""
    stacks = []
    for split in zip(*pool):
        # Half the precision suffices to compare ensembles, and takes half the time.
        calibrated = [calibrate(p, t).float() for p, t in zip(split, temperatures)]
        stacks.append(torch.stack(calibrated))
    return stacks


def _part(scored: ScoredNodes, kept: Sequence[Tensor]) -> ScoredNodes:
    """Return some of the nodes of every split, by a mask or by positions."""
    nodes = [split[index] for split, index in zip(scored.nodes, kept)]
    labels = [split[index] for split, index in zip(scored.labels, kept)]
    return ScoredNodes(tuple(nodes), tuple(labels), scored.num_classes)


def _mixtures(stacks: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
    """Return the weighted means of calibrated predictions ``[M, n, C]`` on every split."""
    return [torch.einsum("m,mnc->nc", weights.float(), stack) for stack in stacks]


def _equal_weights(scored: ScoredNodes) -> list[Tensor]:
    return [torch.ones(1, len(nodes), dtype=torch.float64) for nodes in scored.nodes]


def _random_weights(scored: ScoredNodes, bags: int, seed: int) -> list[Tensor]:
    """Return exponentially distributed weights of the nodes of every split, ``[bags, n]`` each.

    A node has the same weight in all splits. No weight is 0, so that metrics that need nodes of
    every class stay defined.
    """
    distinct, position = torch.cat(scored.nodes).unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.empty(bags, len(distinct), dtype=torch.float64)
    weights.exponential_(generator=generator)
    sizes = [len(nodes) for nodes in scored.nodes]
    return [weights[:, columns] for columns in position.split(sizes)]


def _bagged(
    stacks: Sequence[Tensor], scored: ScoredNodes, metric: Metric, bags: int, seed: int
) -> Tensor:
    """Return the mean of the weights of several selections with random weights of the nodes."""
    weights = _random_weights(scored, bags, seed)
    at_once = max(1, _LARGEST_STEP // max(stack.numel() for stack in stacks))
    chosen = [
        _greedy(stacks, scored, parts, metric)
        for parts in zip(*(weight.split(at_once) for weight in weights))
    ]
    return torch.cat(chosen).mean(0)


def _greedy(
    stacks: Sequence[Tensor],
    scored: ScoredNodes,
    node_weights: Sequence[Tensor],
    metric: Metric,
) -> Tensor:
    """Return the weights of greedy selections with replacement, ``[B, M]``.

    The additions up to the best ensemble count. Equal scores are compared by the log loss.

    Args:
        stacks: the calibrated predictions of all models, the best first, on every split,
            ``[M, n, C]`` each.
        scored: the validation nodes.
        node_weights: the weights of the nodes in every selection, ``[B, n]`` each.
        metric: what the models are selected by.
    """
    bags = torch.arange(len(node_weights[0]))
    models = len(stacks[0])
    firsts = torch.arange(1, min(START, models) + 1)
    starts = [stack[: len(firsts)].cumsum(0) for stack in stacks]
    # The means of the first models are the same for all selections, but not their scores.
    means = [(total / firsts[:, None, None])[None] for total in starts]
    start, best_score, best_loss = _best(means, scored, node_weights, metric)
    counts = (torch.arange(models) <= start[:, None]).double()
    sums = [total[start] for total in starts]
    best_counts = counts.clone()
    for _ in range(STEPS):
        sizes = counts.sum(1)[:, None, None, None].float() + 1
        mixtures = [(total[:, None] + stack) / sizes for total, stack in zip(sums, stacks)]
        chosen, score, loss = _best(mixtures, scored, node_weights, metric)
        counts[bags, chosen] += 1
        sums = [total + stack[chosen] for total, stack in zip(sums, stacks)]
        better = score > best_score + _EQUAL
        better |= (score >= best_score - _EQUAL) & (loss > best_loss)
        best_score = torch.where(better, score, best_score)
        best_loss = torch.where(better, loss, best_loss)
        best_counts = torch.where(better[:, None], counts, best_counts)
    return best_counts / best_counts.sum(1, keepdim=True)


def _best(
    mixtures: Sequence[Tensor],
    scored: ScoredNodes,
    node_weights: Sequence[Tensor],
    metric: Metric,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best mixture of every selection, its score and its log likelihood, ``[B]`` each.

    Args:
        mixtures: ``[B, M, n, C]`` for every split; B may be 1.
        scored: the validation nodes.
        node_weights: the weights of the nodes in every selection, ``[B, n]`` each.
        metric: greater values are better, equal ones are compared by the log likelihood.
    """
    bags = torch.arange(len(node_weights[0]))
    shape = (len(bags), -1, -1, -1)
    expanded = [mixture.expand(shape) for mixture in mixtures]
    scores = _weighted_scores(expanded, scored, node_weights, metric)
    losses = _weighted_losses(expanded, scored, node_weights)
    is_best = scores >= scores.amax(1, keepdim=True) - _EQUAL
    chosen = torch.where(is_best, losses, -math.inf).argmax(1)
    return chosen, scores[bags, chosen], losses[bags, chosen]


def _weighted_losses(
    mixtures: Sequence[Tensor], scored: ScoredNodes, node_weights: Sequence[Tensor]
) -> Tensor:
    """Return the mean log likelihood of every mixture over the splits, ``[B, M]``."""
    total = torch.zeros(mixtures[0].shape[:2], dtype=torch.float64)
    for mixture, labels, weight in zip(mixtures, scored.labels, node_weights):
        # Only the probabilities of the labels count, so that no more is copied.
        own = mixture[..., torch.arange(len(labels)), labels]
        logarithms = own.clamp_min(_SMALLEST_PROBABILITY).log()
        sums = torch.einsum("bmn,bn->bm", logarithms.double(), weight)
        total += sums / weight.sum(1, keepdim=True)
    return total / len(mixtures)


def _weighted_scores(
    mixtures: Sequence[Tensor],
    scored: ScoredNodes,
    node_weights: Sequence[Tensor],
    metric: Metric,
) -> Tensor:
    """Return the mean score of every mixture over the splits, ``[B, M]``; greater is better."""
    total = torch.zeros(mixtures[0].shape[:2], dtype=torch.float64)
    for mixture, labels, weight in zip(mixtures, scored.labels, node_weights):
        shape = mixture.shape[:-1]
        total += metric.value(mixture, labels.expand(shape), weight[:, None].expand(shape))
    # Without a node of some class a metric may be undefined. The log loss then decides alone.
    total = total.nan_to_num(0.0) / len(mixtures)
    return total if metric.greater_is_better else -total


def _cross_fit(
    stacks: Sequence[Tensor], scored: ScoredNodes, metric: Metric, bags: int, seed: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the predictions of every fold by the ensemble and by the best model of the others.

    A node is in the same fold in all splits.
    """
    ensemble = [torch.empty_like(stack[0]) for stack in stacks]
    single = [torch.empty_like(stack[0]) for stack in stacks]
    fold_of = _folds(scored, seed)
    for fold in range(FOLDS):
        others = [part != fold for part in fold_of]
        part = _part(scored, others)
        models = [stack[None, :, kept] for stack, kept in zip(stacks, others)]
        scores = _weighted_scores(models, part, _equal_weights(part), metric)[0]
        # The nodes of the fold have no influence on the order of the models either.
        order = scores.argsort(descending=True, stable=True)
        inside = [stack[0, order] for stack in models]
        weights = _bagged(inside, part, metric, bags, seed)
        for number, kept in enumerate(others):
            outside = stacks[number][order][:, ~kept]
            ensemble[number][~kept] = torch.einsum("m,mnc->nc", weights.float(), outside)
            single[number][~kept] = outside[0]
    return ensemble, single


def _folds(scored: ScoredNodes, seed: int) -> list[Tensor]:
    """Return the fold of every validation node, balanced over the classes."""
    distinct, position = torch.cat(scored.nodes).unique(return_inverse=True)
    label_of = torch.empty_like(distinct)
    label_of[position] = torch.cat(scored.labels)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(distinct), generator=generator)
    order = order[label_of[order].argsort(stable=True)]
    fold_of = torch.empty_like(distinct)
    fold_of[order] = torch.arange(len(distinct)) % FOLDS
    sizes = [len(nodes) for nodes in scored.nodes]
    return list(fold_of[position].split(sizes))
