"""Ensemble selection, against brute force and closed forms."""

import math
from itertools import combinations_with_replacement

import pytest
import torch
from helpers.model_predictions import noisy_predictions, predictions
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from nfgnn.auto import ensemble
from nfgnn.auto.bootstrap import ScoredNodes
from nfgnn.auto.ensemble import calibrate, fit_temperature, mix, select_ensemble
from nfgnn.training import METRICS

ACCURACY = METRICS["accuracy"]
LOG_LOSS = METRICS["log_loss"]


def random_labels(n: int, num_classes: int, seed: int = 0) -> torch.Tensor:
    labels = torch.randint(num_classes, (n,), generator=torch.Generator().manual_seed(seed))
    labels[:num_classes] = torch.arange(num_classes)
    return labels


def nodes_of(labels: torch.Tensor) -> ScoredNodes:
    return ScoredNodes((torch.arange(len(labels)),), (labels,), int(labels.max()) + 1)


def test_a_temperature_divides_the_logits() -> None:
    logits = torch.randn(5, 3, dtype=torch.float64)
    expected = (logits / 2.5).softmax(-1)
    torch.testing.assert_close(calibrate(logits.softmax(-1), 2.5), expected)


@pytest.mark.parametrize("signal", [0.5, 2.0, 30.0])
def test_the_temperature_minimises_the_penalised_log_loss(signal: float) -> None:
    labels = random_labels(60, 3)
    shares = noisy_predictions(labels, 3, signal, seed=1)
    logits = shares.double().clamp_min(1e-30).log().numpy()

    def cost(x) -> float:
        scaled = logits / math.exp(x[0])
        own = scaled[range(60), labels.numpy()]
        return float((logsumexp(scaled, axis=1) - own).sum() + x[0] ** 2 / 2)

    expected = minimize(cost, [0.0], method="Nelder-Mead", options={"xatol": 1e-8}).x[0]
    found = math.log(fit_temperature([shares], nodes_of(labels)))
    assert found == pytest.approx(expected, abs=2e-3)
    assert abs(found) < math.log(20)


def test_complementary_models_are_combined() -> None:
    """Three models are wrong on different thirds of the nodes, with less confidence than usual."""
    labels = [0, 1] * 15
    scored = nodes_of(torch.tensor(labels))
    pool = []
    for third in range(3):
        wrong = [1 - y if i % 3 == third else y for i, y in enumerate(labels)]
        shares = predictions(wrong)
        shares[third::3] = predictions(wrong, confidence=0.6)[third::3]
        pool.append([shares])
    found = select_ensemble(pool, scored, ACCURACY)
    assert {member.position for member in found.members} == {0, 1, 2}
    assert sum(member.weight for member in found.members) == pytest.approx(1)
    members = [(pool[m.position][0], m.weight, m.temperature) for m in found.members]
    assert scored.score(ACCURACY, [mix(members, found.temperature)]) == 1
    assert scored.score(ACCURACY, found.held_out) == 1


def test_one_selection_is_as_good_as_the_best_of_all_ensembles() -> None:
    """The log loss is convex in the weights, so additions find the best ensemble of few models."""
    labels = random_labels(80, 3)
    scored = nodes_of(labels)
    stack = torch.stack(
        [
            noisy_predictions(labels, 3, signal, seed).double()
            for seed, signal in enumerate((1, 2, 1.5))
        ]
    )
    uniform = [torch.ones(1, 80, dtype=torch.float64)]
    weights = ensemble._greedy([stack], scored, uniform, LOG_LOSS)[0]
    found = scored.score(LOG_LOSS, [torch.einsum("m,mnc->nc", weights, stack.double())])
    losses = []
    for size in range(1, ensemble.STEPS + 1):
        for members in combinations_with_replacement(range(3), size):
            losses.append(scored.score(LOG_LOSS, [stack[list(members)].mean(0)]))
    assert found == pytest.approx(min(losses), abs=2e-3)
    assert found < min(losses[:3])


def test_the_first_addition_is_the_best_model_and_more_never_hurt() -> None:
    labels = random_labels(40, 2)
    scored = nodes_of(labels)
    stack = torch.stack([noisy_predictions(labels, 2, 0.5, seed) for seed in range(6)])
    uniform = [torch.ones(1, 40, dtype=torch.float64)]
    weights = ensemble._greedy([stack], scored, uniform, ACCURACY)[0]
    score = scored.score(ACCURACY, [torch.einsum("m,mnc->nc", weights, stack.double())])
    assert score >= max(scored.score(ACCURACY, [shares]) for shares in stack)


def test_noise_is_not_reported_as_skill() -> None:
    """Of 20 models that guess, the best seems good by luck; held-out nodes show the truth."""
    luck = []
    held_out = []
    for seed in range(10):
        labels = random_labels(60, 2, seed)
        scored = nodes_of(labels)
        pool = [[noisy_predictions(labels, 2, 0.0, 20 * seed + i)] for i in range(20)]
        pool.sort(key=lambda model: -scored.score(ACCURACY, model))
        luck.append(scored.score(ACCURACY, pool[0]))
        found = select_ensemble(pool, scored, ACCURACY)
        held_out.append(scored.score(ACCURACY, found.held_out))
    assert sum(luck) / 10 > 0.6
    assert sum(held_out) / 10 < 0.5 + (sum(luck) / 10 - 0.5) / 2


def test_one_model_is_an_ensemble_of_one() -> None:
    labels = random_labels(30, 2)
    model = [noisy_predictions(labels, 2, 1.0, seed=3)]
    found = select_ensemble([model], nodes_of(labels), ACCURACY)
    assert [(m.position, m.weight) for m in found.members] == [(0, 1.0)]
    assert torch.equal(found.held_out[0].argmax(-1), model[0].argmax(-1))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_and_several_splits(metric) -> None:
    """A rare class with two nodes leaves folds in which some metrics are undefined."""
    labels = random_labels(50, 3)
    labels[labels == 2] = 0
    labels[:2] = 2
    everyone = torch.arange(50)
    scored = ScoredNodes((everyone, everyone.flip(0)), (labels, labels.flip(0)), 3)
    pool = []
    for seed in range(4):
        shares = noisy_predictions(labels, 3, 1.0, seed)
        pool.append([shares, shares.flip(0)])
    found = select_ensemble(pool, scored, metric)
    again = select_ensemble(pool, scored, metric)
    assert found.members == again.members
    assert sum(member.weight for member in found.members) == pytest.approx(1)
    # The second split is the first one in another order, so it must be predicted alike.
    torch.testing.assert_close(found.held_out[0], found.held_out[1].flip(0))


def test_many_nodes_are_selected_on_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random part of the nodes selects nearly the weights of all nodes."""
    labels = random_labels(4000, 3)
    scored = nodes_of(labels)
    pool = [[noisy_predictions(labels, 3, signal, seed)] for seed, signal in enumerate((2, 1.8, 0))]
    found = select_ensemble(pool, scored, LOG_LOSS)
    assert scored.score(LOG_LOSS, found.held_out) < scored.score(LOG_LOSS, pool[0])
    assert [member.position for member in found.members] == [0, 1]
    members = [(pool[m.position][0], m.weight, m.temperature) for m in found.members]
    torch.testing.assert_close(mix(members, found.temperature), found.held_out[0])
    monkeypatch.setattr(ensemble, "_LARGEST_STEP", 3 * 3 * 2000)
    sampled = select_ensemble(pool, scored, LOG_LOSS)
    assert len(sampled.held_out[0]) == 4000
    for one, other in zip(found.members, sampled.members):
        assert one.weight == pytest.approx(other.weight, abs=0.15)


def test_zero_probabilities_stay_finite() -> None:
    shares = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert bool(calibrate(shares, 0.05).isfinite().all())
    assert log_softmax([0.0, -69.0 / 5])[0] == pytest.approx(
        float(calibrate(shares, 5.0)[0, 0].log()), abs=1e-4
    )
