"""Imports only point up the table of rooms: nothing knows what stands below it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "nfgnn"
# A room may import the rooms named here (and itself, nfgnn.errors and nfgnn.npyfile).
ROOMS = {
    "data": set(),
    "kernels": set(),
    "spectral": {"kernels"},
    "nn": {"kernels", "spectral"},
    "store": {"data", "kernels", "spectral"},
    "training": {"data", "kernels", "spectral", "nn", "store"},
    "analysis": {"spectral"},
    "explain": {"data", "spectral", "nn", "training", "analysis"},
    "paper": {"data", "spectral", "nn", "store", "training", "analysis", "explain"},
    "cli": {"data", "nn", "store", "training", "analysis", "explain", "paper"},
}
SHARED = (
    "errors",
    "files",
    "npyfile",
    "progress",
    "ray_cluster",
    "tensor_cache",
    "run_progress",
    "work_progress",
)
OUTSIDE = {"spectral": {"torch", "torch_geometric"}, "kernels": {"torch", "triton"}}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names.add(node.module or "")
    return names


def files() -> list[Path]:
    return [file for room in ROOMS for file in sorted((PACKAGE / room).rglob("*.py"))]


def test_every_room_is_listed() -> None:
    rooms = {
        folder.name
        for folder in PACKAGE.iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    }
    assert rooms == set(ROOMS)


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_up(file: Path) -> None:
    room = file.relative_to(PACKAGE).parts[0]
    for name in imported(file):
        parts = name.split(".")
        if parts[0] == "nfgnn" and len(parts) > 1 and parts[1] not in (room, *SHARED):
            assert parts[1] in ROOMS[room], f"{room} must not import {name}"
        if room in OUTSIDE and parts[0] != "nfgnn":
            import sys

            assert parts[0] in OUTSIDE[room] | sys.stdlib_module_names, (
                f"{room} knows torch and PyG only, not {name}"
            )


def test_layers_do_not_know_models() -> None:
    for file in (PACKAGE / "nn" / "conv").glob("*.py"):
        assert not any(name.startswith("nfgnn.nn.models") for name in imported(file)), file


def test_the_core_imports_without_optional_packages() -> None:
    allowed = {
        "torch", "torch_geometric", "numpy", "scipy", "sklearn", "typer", "rich", "pyarrow", "matplotlib",
        "safetensors", "cycler",
    }  # fmt: skip
    import sys

    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for (
            node
        ) in tree.body:  # at the top of a module; optional things are imported where they are used
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                if top == "triton" and file.parent.name == "kernels":
                    continue  # these modules are imported where a GPU is used
                assert top in allowed | {"nfgnn"} | sys.stdlib_module_names, f"{file}: {name}"
