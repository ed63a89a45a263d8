"""Training on rows: a plain second implementation, stores as graphs, interrupted runs."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from helpers.command_line import main_status
from helpers.forked_python import start_python
from helpers.small_stores import K, graph, small_store
from torch import nn

from nfgnn import NodeClassifier, ScalableNFGNN, split
from nfgnn.errors import UserError
from nfgnn.nn.models.bernnet import ScalableBernNet
from nfgnn.store import Batch, MemoryRows, RowLoader, Store
from nfgnn.training import TrainingConfig
from nfgnn.training import minibatch as rows_module
from nfgnn.training.captured_step import CapturedStep
from nfgnn.training.inputs import row_source
from nfgnn.training.minibatch import RowTask, fit_rows
from nfgnn.training.stopping import should_stop

CONFIG = TrainingConfig(
    lr=0.02, filter_lr=0.05, weight_decay=1e-3, epochs=6, patience=50, batch_size=40
)


def task(n: int = 150) -> RowTask:
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(n, K + 1, 5, generator=generator)
    y = (terms[:, 1, 0] > 0).long() + (terms[:, 2, 1] > 1).long()
    order = torch.randperm(n, generator=generator)
    return RowTask(MemoryRows(terms), y, order[:100].sort().values, order[100:].sort().values)


def fresh(**settings: object) -> ScalableNFGNN:
    torch.manual_seed(3)
    return ScalableNFGNN(5, 3, 8, K=K, **{"dropout": 0.0, **settings})


def same_state(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))


def test_equals_a_plain_loop() -> None:
    problem, model = task(), fresh()
    history = fit_rows(model, problem, CONFIG, seed=7)
    plain, losses = fresh(), []
    filters = [p for name, p in plain.named_parameters() if name.startswith("prop")]
    others = [p for name, p in plain.named_parameters() if not name.startswith("prop")]
    groups = [{"params": others, "lr": 0.02, "weight_decay": 1e-3}, {"params": filters, "lr": 0.05}]
    optimizer, best = torch.optim.Adam(groups), (float("inf"), None)
    loader = RowLoader(problem.source, problem.y, problem.train, 40, 7, torch.device("cpu"))
    for epoch in range(6):
        for batch in loader.batches(epoch):
            optimizer.zero_grad()
            F.cross_entropy(plain.forward_rows(batch.rows), batch.y).backward()
            optimizer.step()
        with torch.no_grad():
            logits = plain.forward_rows(problem.source.rows(problem.val))
            losses.append(F.cross_entropy(logits, problem.y[problem.val]).item())
        if losses[-1] < best[0]:
            best = (losses[-1], {k: v.clone() for k, v in plain.state_dict().items()})
    loader.close()
    torch.testing.assert_close(torch.tensor(history.val_loss), torch.tensor(losses))
    torch.testing.assert_close(model.state_dict(), best[1])


def test_the_size_of_validation_batches_does_not_matter_and_training_stops_by_the_rule() -> None:
    config = TrainingConfig(lr=0.2, epochs=200, patience=5, batch_size=100)
    history = fit_rows(fresh(), task(), config, seed=0)
    assert history.epochs < 200
    assert should_stop(history.val_loss, 5)
    assert history.val_loss[-1] > sum(history.val_loss[-6:-1]) / 5
    again = fit_rows(fresh(), task(), config, seed=0)
    assert (again.val_loss, again.train_loss) == (history.val_loss, history.train_loss)


def test_a_last_batch_of_one_row_can_be_normalised() -> None:
    history = fit_rows(
        fresh(batch_norm=True), task(), replace(CONFIG, batch_size=33), seed=0
    )  # 100 = 3 · 33 + 1
    assert torch.isfinite(torch.tensor(history.train_loss)).all()


class Killed(Exception):
    pass


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 9, 17, 18])
def test_taken_up_again_after_any_step_it_ends_with_the_same_bits(
    stop_at: int, batch_norm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIG
    if batch_norm:
        config = replace(CONFIG, metric="roc_auc", class_weight="balanced")
    whole = fresh(dropout=0.5, batch_norm=batch_norm)
    expected = fit_rows(whole, task(), config, seed=1)
    monkeypatch.setattr(rows_module, "_CHECKPOINT_SHARE", float("inf"))  # after every step
    save, saved = rows_module.save_checkpoint, []

    def save_and_die(*arguments: object) -> None:
        save(*arguments)
        saved.append(1)
        if len(saved) == stop_at:
            raise Killed

    monkeypatch.setattr(rows_module, "save_checkpoint", save_and_die)
    file = tmp_path / "seed.checkpoint"
    with pytest.raises(Killed):
        fit_rows(fresh(dropout=0.5, batch_norm=batch_norm), task(), config, seed=1, checkpoint=file)
    monkeypatch.setattr(rows_module, "save_checkpoint", save)
    torch.manual_seed(99)  # what the second process' generator happens to be at
    model = ScalableNFGNN(5, 3, 8, K=K, dropout=0.5, batch_norm=batch_norm)
    history = fit_rows(model, task(), config, seed=1, checkpoint=file)
    assert (history.train_loss, history.val_loss) == (expected.train_loss, expected.val_loss)
    assert history.val_metric == expected.val_metric
    assert history.best_epoch == expected.best_epoch
    assert same_state(model, whole)
    assert [p.name for p in tmp_path.iterdir()] == ["seed.checkpoint"]


def test_a_store_is_trained_on_as_its_graph_is(tmp_path: Path) -> None:
    data = graph()
    store = small_store(tmp_path / "store", data)
    settings = {"K": K, "epochs": 8, "batch_size": 64, "preset": "none", "device": "cpu"}
    ours = NodeClassifier("ScalableNFGNN", **settings).fit(split(store.labels(), "full", 0))
    # A store knows no split, so its statistics are those of all nodes.
    settings["features"] = "standard"
    theirs = NodeClassifier("ScalableNFGNN", **settings).fit(split(data, "full", 0))
    assert ours.history_.val_loss == theirs.history_.val_loss
    assert same_state(ours.model_, theirs.model_)
    stored = split(store.labels(), "full", 0)
    assert torch.equal(ours.predict_proba(stored), theirs.predict_proba(data))
    assert torch.equal(ours.predict_proba(data), theirs.predict_proba(data))
    assert torch.equal(ours.coefficients(stored), theirs.coefficients(data))
    assert ours.score(stored) == theirs.score(split(data, "full", 0))
    assert ours.lambda_max(stored) == 2.0


def test_terms_are_computed_once_for_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, rows = [], ScalableNFGNN.rows
    monkeypatch.setattr(ScalableNFGNN, "rows", lambda *inputs: calls.append(1) or rows(*inputs))
    data = graph()
    for seed in range(2):
        part = split(data, "full", seed)
        settings = {"K": 2, "epochs": 1, "features": "standard", "device": "cpu"}
        clf = NodeClassifier("ScalableNFGNN", seed=seed, **settings).fit(part)
        clf.score(part)
    assert len(calls) == 1
    changed = data.clone()
    changed.x = data.x + 1
    before, after = (row_source(clf.model_, graph, clf.scaling_) for graph in (data, changed))
    assert len(calls) == 2
    assert not torch.equal(before.terms, after.terms)
    NodeClassifier("ScalableNFGNN", K=3, epochs=1, device="cpu").fit(split(data, "full", 0))
    assert len(calls) == 3


def test_what_does_not_fit_a_store_is_one_sentence(tmp_path: Path) -> None:
    rows = split(small_store(tmp_path / "store", graph()).labels(), "full", 0)
    assert main_status("train", str(tmp_path / "store"), "--protocol", "inductive") == 2
    with pytest.raises(
        UserError, match="so none of its nodes is unobserved: train on the graph itself"
    ):
        NodeClassifier("ScalableNFGNN", device="cpu").fit(split(rows, "inductive", 0))
    for settings, message in (
        (
            {"K": 5},
            "was computed with K = 3, not 5: leave the setting out, or compute another store",
        ),
        ({"basis": "monomial"}, "was computed with basis = chebyshev, not monomial"),
        ({"features": "raw"}, "was computed with features = "),
        ({"model": "NFGNN"}, "NFGNN cannot be trained on a store"),
        (
            {"model": "ScalableGPRGNN"},
            "needs terms with basis = monomial, but .* was computed with basis = chebyshev",
        ),
    ):
        with pytest.raises(UserError, match=message):
            NodeClassifier(settings.pop("model", "ScalableNFGNN"), device="cpu", **settings).fit(
                rows
            )
    assert isinstance(
        NodeClassifier("ScalableNFGNN", K=3, epochs=1).fit(rows).model_, ScalableNFGNN
    )


def test_other_models_take_the_stores_made_for_them(tmp_path: Path) -> None:
    rows = small_store(tmp_path / "store", graph(), basis="bernstein").labels()
    clf = NodeClassifier("ScalableBernNet", epochs=1, device="cpu").fit(split(rows, "full", 0))
    assert isinstance(clf.model_, ScalableBernNet)
    assert clf.model_.prop.K == K


def test_a_damaged_store_or_checkpoint_is_named(tmp_path: Path) -> None:
    small_store(tmp_path / "store", graph())
    terms = tmp_path / "store" / "terms.npy"
    terms.write_bytes(terms.read_bytes()[:-1000])
    with pytest.raises(UserError, match=r"terms\.npy: is truncated; precompute the store again"):
        Store.open(tmp_path / "store")
    file = tmp_path / "seed.checkpoint"
    fit_rows(fresh(), task(), CONFIG, seed=1, checkpoint=file)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(
        UserError, match=r"seed\.checkpoint is damaged .*: start again without --resume"
    ):
        fit_rows(fresh(), task(), CONFIG, seed=1, checkpoint=file)


def test_losses_that_are_no_numbers_are_said() -> None:
    problem = task()
    problem.source.terms[problem.val] = float("nan")
    with pytest.raises(UserError, match="the validation loss is not finite"):
        fit_rows(fresh(), problem, CONFIG, seed=1)


def test_kill_minus_nine_at_any_moment_and_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One moment here; benchmarks/kill_training.py tries ten."""
    small_store(tmp_path / "store", graph())
    monkeypatch.chdir(tmp_path)
    command = [
        "train",
        "store",
        "--runs",
        "2",
        "--set",
        "epochs=90",
        "--set",
        "batch_size=32",
        "--resume",
        "--out",
    ]
    process = start_python("-m", "nfgnn", *command, "run")
    while not list(tmp_path.glob(".run.partial/*.checkpoint")) and process.is_alive():
        time.sleep(0.005)
    time.sleep(0.1)
    process.kill()
    process.join()
    assert not (tmp_path / "run").exists()
    assert [main_status(*command, out) for out in ("run", "whole")] == [0, 0]
    for seed in ("seed-0", "seed-1"):
        for name in ("weights.safetensors", "history.csv", "coefficients.npy"):
            assert (tmp_path / "run" / seed / name).read_bytes() == (
                tmp_path / "whole" / seed / name
            ).read_bytes()
    assert not list(tmp_path.glob("**/*.checkpoint")) + list(tmp_path.glob(".*.partial"))


def test_half_precision_trains_almost_as_float32() -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        model = fresh()
        history = fit_rows(model, task(), replace(CONFIG, precision=precision), seed=7)
        losses[precision] = torch.tensor(history.train_loss)
        assert all(p.dtype == torch.float32 for p in model.parameters())
    assert not torch.equal(losses["float32"], losses["bfloat16"])
    assert torch.allclose(losses["float32"], losses["bfloat16"], atol=0.02)


def test_a_cpu_ignores_the_capture_of_steps() -> None:
    models = [fresh(), fresh()]
    for model, capture in zip(models, (False, True)):
        fit_rows(model, task(), CONFIG, seed=7, capture=capture)
    assert same_state(*models)


def test_a_captured_step_replays_full_batches_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a graph that repeats the recorded call, as a CUDA graph repeats its kernels."""

    class Recorded:
        def replay(self) -> None:
            loss.copy_(total(step._batch))

    def total(batch: Batch) -> torch.Tensor:
        return batch.rows.sum() + batch.y.sum()

    def capture(batch: Batch) -> None:
        step._batch = Batch(batch.rows.clone(), batch.y.clone(), batch.total)
        step._loss = loss
        step._graph = Recorded()

    loss = torch.zeros(())
    step = CapturedStep(total, 4)
    monkeypatch.setattr(step, "_capture", capture)
    for number, rows in enumerate((4, 4, 3, 4, 4, 4, 2, 4)):
        batch = Batch(torch.randn(rows, 2, 2), torch.full((rows,), number), rows)
        assert torch.equal(step(batch), total(batch))
    assert step._graph is not None
