"""Models, bases and gates of other packages: found, loaded late, and blamed when they fail."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nfgnn import plugins
from nfgnn.errors import UserError
from nfgnn.nn import GATES, HEAD_GATES, MODELS, NFConv, SpectralConv, find_model
from nfgnn.paper import make_plan
from nfgnn.spectral import BASES, bases, resolve_basis
from nfgnn.training import RunConfig

PACKAGE = '''
import torch
from torch import Tensor

from nfgnn.nn import GATES, HEAD_GATES, Gate, HeadGate
from nfgnn.nn.models import MLP, register_model
from nfgnn.spectral import BASES, Chebyshev


@register_model("A paper", 2031, "O(nfh)")
class OtherMLP(MLP):
    """An MLP of another package."""


class Doubled(Chebyshev):
    """Another name for the Chebyshev basis."""


class Constant(Gate):
    """The same coefficients for all nodes."""

    def forward(self, terms: Tensor, x: Tensor, operator: object = None) -> Tensor:
        return self.gamma.sum(1, keepdim=True).expand(-1, x.size(0))

    def _reset_weight(self) -> None:
        pass


class Half(HeadGate):
    """Coefficients of one half, which have no weights."""

    def reset_parameters(self) -> None:
        pass

    def forward(self, terms: list[Tensor], operator: object, batch: object = None) -> Tensor:
        return torch.full((terms[0].shape[0], self.K + 1, self.heads), 0.5)


GATES["constant"] = Constant
HEAD_GATES["half"] = Half
BASES["doubled"] = Doubled
'''
ENTRY_POINTS = """
[nfgnn.models]
OtherMLP = other_package:OtherMLP
NoModel = other_package:Doubled
Broken = broken_module:Thing

[nfgnn.bases]
doubled = other_package:Doubled
notabasis = other_package:OtherMLP

[nfgnn.gates]
constant = other_package:Constant

[nfgnn.head_gates]
half = other_package:Half
nogate = other_package:Constant
"""
METADATA = "Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n"


REGISTRIES = (MODELS, BASES, GATES, HEAD_GATES)
BUILT_IN = [dict(registry) for registry in REGISTRIES]


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test registers and imports."""
    monkeypatch.setenv("NFGNN_IMPORT", "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    forget_imports(monkeypatch)


def forget_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return to the state of a process that has not imported the other package."""
    monkeypatch.setenv("NFGNN_IMPORT", "")
    for registry, content in zip(REGISTRIES, BUILT_IN):
        registry.clear()
        registry.update(content)
    bases._basis_named.cache_clear()
    sys.modules.pop("other_package", None)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with the module of a package that is not installed."""
    (tmp_path / "other_package.py").write_text(PACKAGE)
    (tmp_path / "broken_module.py").write_text("import no_such_thing\n")
    return tmp_path


@pytest.fixture
def installed(code: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same package with the metadata of an installation."""
    information = code / "other_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(code))
    return code


def test_an_entry_point_is_loaded_when_its_name_is_asked_for(installed: Path) -> None:
    assert plugins.plugin_names(plugins.MODELS) == ["Broken", "NoModel", "OtherMLP"]
    find_model("MLP")
    resolve_basis("chebyshev")
    assert "other_package" not in sys.modules
    assert find_model("othermlp").year == 2031
    config = RunConfig.resolve("OtherMLP", {"hidden_channels": 8}, None, None)
    assert config.build(4, 2)(torch.rand(3, 4), torch.empty(2, 0).long()).shape == (3, 2)


def test_bases_and_gates(installed: Path) -> None:
    t = torch.linspace(-1, 1, 5, dtype=torch.float64)
    chebyshev = resolve_basis("chebyshev").evaluate(t, 4)
    assert resolve_basis("Doubled").evaluate(t, 4).equal(chebyshev)
    conv = NFConv(3, K=2, gate="constant")
    x = torch.rand(4, 3)
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    _, psi = conv(x, edges, return_coefficients=True)
    assert psi.equal(conv.gate.gamma.sum(1).expand(4, -1))


def test_gates_of_deep_networks(installed: Path) -> None:
    x = torch.rand(4, 2)
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    _, psi = SpectralConv(2, 3, K=2, gate="half", heads=2)(x, edges, return_coefficients=True)
    assert psi.equal(torch.full((4, 3), 0.5))
    with pytest.raises(UserError, match=r"other-package.*nogate.*a subclass of nfgnn.nn.HeadGate"):
        SpectralConv(2, 3, gate="nogate", heads=2)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Broken", "cannot be loaded.*no_such_thing"),
        ("NoModel", "does not register a model of that name"),
    ],
)
def test_a_broken_entry_point_names_its_package(installed: Path, name: str, problem: str) -> None:
    with pytest.raises(UserError, match=f"the package other-package: .*{name} = .*{problem}"):
        find_model(name)


def test_a_basis_that_is_none(installed: Path) -> None:
    with pytest.raises(UserError, match=r"other-package.*does not name a subclass of"):
        resolve_basis("notabasis")
    with pytest.raises(ValueError, match=r"choose one of .*doubled"):
        resolve_basis("no such basis")


def test_a_model_of_another_package_joins_a_table(installed: Path) -> None:
    plan = make_plan("full", ["karate"], ["MLP", "OtherMLP"])
    assert [row.label for row in plan.rows] == ["MLP", "OtherMLP"]


def test_worker_processes_import_what_the_command_imported(
    code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They inherit the environment and the search path, but not the registries."""
    monkeypatch.setenv("NFGNN_IMPORT", "other_package")
    monkeypatch.syspath_prepend(str(code))
    assert find_model("OtherMLP").year == 2031


def test_the_command_line_knows_installed_models(call, installed: Path) -> None:
    status, out, err = call("models", "--json")
    assert status == 0
    assert "OtherMLP" in [row["name"] for row in json.loads(out)["models"]]
    assert "the package other-package: the entry point 'Broken = " in err
    quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=3", "--json")
    status, out, _ = call("train", "karate", "--model", "othermlp", *quick)
    assert status == 0
    assert json.loads(out)["model"] == "OtherMLP"
    status, _, err = call("train", "karate", "--model", "OtherMLB", *quick)
    assert status == 2
    assert "did you mean OtherMLP?" in err


def test_import_registers_what_a_module_defines(call, code: Path) -> None:
    """The module is in the working directory and is not installed."""
    quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=3")
    command = ("train", "karate", *quick, "--out", "run", "--model", "OtherMLP")
    status, _, err = call(*command)
    assert status == 2
    assert "unknown model 'OtherMLP'" in err
    assert call(*command, "--import", "other_package")[0] == 0
    assert call("models", "OtherMLP", "--import", "other_package")[0] == 0
    status, _, err = call(*command, "--import", "broken_module")
    assert status == 2
    assert "--import broken_module: the module cannot be imported" in err
    assert "no_such_thing" in err


def test_workers_import_the_gate_of_a_deep_network(code: Path) -> None:
    """The processes of ``train`` know it from ``--import``, those of others from the variable."""
    settings = ("num_layers=1", "hidden_channels=8", "epochs=2", "gate=half")
    command = [sys.executable, "-m", "nfgnn", "train", "karate", "--model", "NFNet"]
    command += ["--protocol", "stratified", "--runs", "2", "--workers", "2", "--json"]
    command += [word for setting in settings for word in ("--set", setting)]
    for option, variable in ((["--import", "other_package"], ""), ([], "other_package")):
        result = subprocess.run(
            command + option,
            cwd=code,
            env={**os.environ, "NFGNN_IMPORT": variable},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["model"] == "NFNet"


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        ("model 'OtherMLP'", ("--model", "OtherMLP")),
        ("basis 'doubled'", ("--model", "NFGNN", "--set", "basis=doubled")),
        ("gate 'constant'", ("--model", "NFGNN", "--set", "gate=constant")),
        ("gate 'half'", ("--model", "NFNet", "--set", "gate=half", "--set", "num_layers=1")),
    ],
)
def test_a_saved_model_names_what_was_not_imported(
    call, code: Path, monkeypatch: pytest.MonkeyPatch, part: str, settings: tuple[str, ...]
) -> None:
    quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=2", "--out", "run")
    option = ("--import", "other_package")
    assert call("train", "karate", *settings, *quick, *option)[0] == 0
    forget_imports(monkeypatch)
    predict = ("predict", "run", "karate", "-o", "predictions.csv")
    status, _, err = call(*predict)
    assert status == 2
    missing = f"this model uses the {part}, which is not part of nfgnn: pass --import with the"
    assert missing in " ".join(err.split())
    assert call(*predict, *option)[0] == 0
    forget_imports(monkeypatch)
    assert call("verify", "run")[0] == 2
    assert call("verify", "run", *option)[0] == 0


def test_an_unknown_name_survives_the_way_from_a_worker() -> None:
    error = plugins.unknown_plugin("gate", "terms", ["term"], " (a hint)")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "unknown gate 'terms': choose one of term; did you mean term? (a hint)"
    assert (again.kind, again.name) == ("gate", "terms")
