"""The versions in the constraint files and the lock agree with those of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import nfgnn

ROOT = Path(__file__).resolve().parents[1]


def requirements(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return [Requirement(line) for line in lines]


def pins(file: str) -> dict[str, Version]:
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


@pytest.mark.parametrize("requirement", requirements("tune"), ids=lambda r: r.name)
def test_the_lowest_versions_are_the_lower_bounds(requirement: Requirement) -> None:
    bounds = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
    assert bounds == [pins("constraints-lowest.txt")[canonicalize_name(requirement.name)]]


@pytest.mark.parametrize(
    "requirement", requirements("tune", "cluster", "docs", "dist", "dev"), ids=lambda r: r.name
)
def test_the_constraints_pin_every_requirement_within_its_bounds(requirement: Requirement) -> None:
    if requirement.name != "nfgnn":
        version = pins("constraints.txt")[canonicalize_name(requirement.name)]
        assert version in requirement.specifier


def test_the_lock_has_a_hash_for_every_package_and_the_versions_of_the_constraints() -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^\S+==\S+(?: ;[^\\]*)? \\\n    --hash=sha256:", text, re.MULTILINE)
    locked = pins("requirements.lock")
    assert len(entries) == len(locked)
    wanted = {canonicalize_name(requirement.name) for requirement in requirements("tune")}
    assert wanted <= set(locked)
    constrained = pins("constraints.txt")
    for name in locked.keys() & constrained.keys():
        assert locked[name] == constrained[name]


def test_all_files_state_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert nfgnn.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{project['version']}]" in changelog
