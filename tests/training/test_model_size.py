"""Sizes that settings and files declare are checked before anything is allocated."""

import json
from pathlib import Path

import pytest
import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.checksums import write_checksums
from nfgnn.errors import UserError
from nfgnn.training.config import RunConfig
from nfgnn.training.model_size import CheckedAllocation


def test_bytes_are_counted_before_they_are_allocated() -> None:
    counts: list[int] = []
    with CheckedAllocation(counts.append):
        torch.nn.Linear(3, 5)
        torch.zeros(2, dtype=torch.int64)
    assert counts == [60, 80, 96]  # 15 weights, 5 biases, 2 whole numbers


@pytest.mark.parametrize("model", ["MLP", "NFGNN", "GAT", "LINK"])
def test_a_model_that_exceeds_the_memory_is_refused(model: str) -> None:
    config = RunConfig.resolve(model, {}, None, None, "none")
    with pytest.raises(UserError, match=rf"{model} with these settings: needs about .* GiB"):
        config.build(10**12, 3, 10**12)


def test_sizes_in_a_description_are_compared_with_the_weights(tmp_path: Path) -> None:
    data = split(load_dataset("karate"), protocol="stratified", seed=0)
    model = tmp_path / "model"
    NodeClassifier("MLP", epochs=2, device="cpu").fit(data).save(model)
    path = model / "classifier.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "num_features": 10**6, "feature_names": None}))
    write_checksums(model, ["classifier.json", "weights.safetensors"])
    with pytest.raises(UserError, match=r"sizes in classifier\.json exceed"):
        NodeClassifier.load(model)
