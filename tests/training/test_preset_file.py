"""Preset files of the user: what they may contain, and what the messages name."""

from pathlib import Path

import pytest

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.presets import is_preset_file, preset_model, read_preset_file


def write(folder: Path, text: str) -> str:
    path = folder / "my.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        'model = "GCN"\nlr = 0.05\nhidden_channels = 16\n',
        'model = "GCN"\n[settings]\nlr = 0.05\nhidden_channels = 16\n',
        'model = "gcn"\n[full."my graph"]\nlr = 0.05\nhidden_channels = 16\n',
        'model = "GCN"\n[full]\ntexas = { lr = 0.05, hidden_channels = 16 }\n',
        "lr = 0.05\nhidden_channels = 16\n",
    ],
)
def test_settings_replace_the_preset(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    config = RunConfig.resolve("GCN", {}, "texas", "full", path)
    expected = {"lr": 0.05, "hidden_channels": 16}
    assert config == RunConfig.resolve("GCN", expected, None, None, "none")
    overridden = RunConfig.resolve("GCN", {"lr": 0.1}, "texas", "full", path)
    assert overridden == RunConfig.resolve("GCN", {**expected, "lr": 0.1}, None, None, "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# lr\nmodel = 'GCN'\n\nlearning_rate = 1\n",
            "line 4: GCN has no setting 'learning_rate'",
        ),
        ("model = 'GCN'\n[a]\ndropout = 1.5\n", "line 3: dropout = 1.5 is not valid"),
        ("model = 'GCN'\n[a]\nx = { lr = 'fast' }\n", "line 3: lr = 'fast' is not valid"),
        ("K = 1\nmodel = 'NFGNN'\n", "line 2: the preset is for NFGNN, not for GCN"),
        ("model = 3\n", "line 1: model is a name"),
        ("lr = 1\n[a]\nlr = 2\n", r"has 2 \(the top of the file, a\)"),
        ("lr = \n", r"my\.toml: is not valid TOML: .*line 1"),
        ("", "has neither a model nor settings"),
    ],
)
def test_messages_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        RunConfig.resolve("GCN", {}, None, None, write(tmp_path, text))


def test_files_and_kinds_are_told_apart(tmp_path: Path) -> None:
    assert not is_preset_file("best")
    assert is_preset_file("best.toml")
    assert preset_model("best") is None
    assert preset_model(write(tmp_path, 'model = "GCN"\n')) == "GCN"
    with pytest.raises(UserError, match=r"preset file no\.toml does not exist"):
        read_preset_file("no.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        read_preset_file(tmp_path / "folder.toml")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert read_preset_file(write(tmp_path, "lr = 0.5\n")).settings == {"lr": 0.5}
    assert read_preset_file(write(tmp_path, "lr = 0.25\n")).settings == {"lr": 0.25}


def test_classifier_from_a_preset_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'model = "SGC"\nK = 3\nepochs = 5\n')
    data = split(load_dataset("karate"), protocol="stratified", seed=0)
    one = NodeClassifier.from_preset(path, seed=1, lr=0.02).fit(data)
    same = NodeClassifier("SGC", preset="none", seed=1, K=3, epochs=5, lr=0.02).fit(data)
    assert one.config_ == same.config_
    assert one.predict_proba(data).equal(same.predict_proba(data))
    with pytest.raises(UserError, match="does not name its model"):
        NodeClassifier.from_preset(write(tmp_path, "lr = 0.5\n"))
