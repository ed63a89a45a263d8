"""Imports follow the table in the docstring of the package, which CONTRIBUTING.md repeats."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "nfgnn"
OUTSIDE = {"spectral": {"torch", "torch_geometric"}, "kernels": {"torch", "triton"}}


def table_lines(text: str) -> list[str]:
    """Return the rows of the first Markdown table whose header starts with ``| package |``."""
    lines = [line.strip() for line in text.splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("| package |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append(line)
    return rows


def declared_imports() -> dict[str, set[str]]:
    """Return the packages that every package may import, in the order of the table."""
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    declared: dict[str, set[str]] = {}
    for row in table_lines(docstring)[2:]:
        name, _, allowed = (cell.strip().replace("`", "") for cell in row.strip("|").split("|"))
        words = {word.strip() for word in allowed.split(",")}
        declared[name] = set(declared) if allowed == "all of these" else words - {"nothing"}
    return declared


DECLARED = declared_imports()


def modules() -> dict[str, Path]:
    """Return every module of the library by its dotted name."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(REPOSITORY).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = file
    return found


MODULES = modules()


def statements(node: ast.AST, typing: bool) -> Iterator[ast.AST]:
    """Yield all nodes of a syntax tree, without ``if TYPE_CHECKING`` blocks if not ``typing``."""
    for child in ast.iter_child_nodes(node):
        is_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if typing or not is_typing:
            yield child
            yield from statements(child, typing)


def imported_names(file: Path, typing: bool) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import of a file, those inside functions included."""
    for node in statements(ast.parse(file.read_text(encoding="utf-8")), typing):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            for alias in node.names:
                yield node.module or "", alias.name


def imported_modules(file: Path, typing: bool = True) -> set[str]:
    """Return the modules that a file imports; ``from package import module`` counts as both."""
    found = set()
    for module, name in imported_names(file, typing):
        found.add(module)
        if f"{module}.{name}" in MODULES:
            found.add(f"{module}.{name}")
    return found


def package_of(module: str) -> str:
    """Return the package of a module of the library, or an empty string for a top-level module."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in DECLARED else ""


def test_every_package_is_declared() -> None:
    folders = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    assert folders == set(DECLARED)


def test_contributing_repeats_the_declaration() -> None:
    docstring = ast.get_docstring(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")))
    contributing = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert table_lines(contributing) == table_lines(docstring or "")


def test_the_declaration_has_no_cycle() -> None:
    """A row only names packages of the rows above it."""
    above: set[str] = set()
    for package, allowed in DECLARED.items():
        assert allowed <= above, package
        above.add(package)


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_declared(module: str) -> None:
    file = MODULES[module]
    package = package_of(module)
    for name in imported_modules(file):
        if name.split(".")[0] == "nfgnn":
            other = package_of(name)
            # `nfgnn` and `nfgnn.__main__` are the entry points of the library.
            if other and other != package and module not in ("nfgnn", "nfgnn.__main__"):
                allowed = DECLARED.get(package, set())
                assert other in allowed, f"{module} must not import {name}"
        elif package in OUTSIDE:
            allowed = OUTSIDE[package] | sys.stdlib_module_names
            assert name.split(".")[0] in allowed, f"{module} must not import {name}"


def test_no_module_imports_itself_through_others() -> None:
    graph = {}
    for module, file in MODULES.items():
        # A package's `__init__` collects its modules, and importing one of them runs it.
        own = {name for name in imported_modules(file, typing=False) if name in MODULES}
        graph[module] = {name for name in own if MODULES[name].name != "__init__.py"}
    TopologicalSorter(graph).prepare()


def private_imports(package: str) -> set[str]:
    """Return the undocumented modules of other packages that a package imports."""
    found = set()
    for file in (PACKAGE / package).rglob("*.py"):
        for name in imported_modules(file):
            other = package_of(name)
            if other and other != package and name in MODULES and name != f"nfgnn.{other}":
                source = (PACKAGE / other / "__init__.py").read_text(encoding="utf-8")
                if name not in (ast.get_docstring(ast.parse(source)) or ""):
                    found.add(name)
    return found


@pytest.mark.parametrize("package", DECLARED)
def test_packages_are_used_through_their_init(package: str) -> None:
    """Public modules are those that the docstring of the package names, such as nfgnn.nn.models."""
    assert private_imports(package) == set()


def test_layers_do_not_import_models() -> None:
    for file in (PACKAGE / "nn" / "conv").glob("*.py"):
        assert not any(name.startswith("nfgnn.nn.models") for name in imported_modules(file)), file


def test_the_core_imports_without_optional_packages() -> None:
    allowed = {
        "torch", "torch_geometric", "numpy", "scipy", "sklearn", "typer", "rich", "pyarrow",
        "matplotlib", "safetensors", "cycler",
    }  # fmt: skip
    for file in PACKAGE.rglob("*.py"):
        # Only the top of a module counts: optional packages are imported where they are used.
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                if top == "triton" and file.parent.name == "kernels":
                    continue  # these modules are only imported where a GPU is used
                assert top in allowed | {"nfgnn"} | sys.stdlib_module_names, f"{file}: {name}"
