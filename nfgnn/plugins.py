"""Models, bases and gates of other packages.

An installed package announces them by entry points of the groups ``nfgnn.models``,
``nfgnn.bases``, ``nfgnn.gates`` and ``nfgnn.head_gates``. An entry point is only loaded when its
name is asked for, so that a package costs nothing while it is not used. ``nfgnn … --import
MODULE`` imports a module instead, which registers what it defines. Either runs code that the user
has chosen to install or to name.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from nfgnn.errors import UserError, unknown_name

T = TypeVar("T")

MODELS = "nfgnn.models"
BASES = "nfgnn.bases"
GATES = "nfgnn.gates"
HEAD_GATES = "nfgnn.head_gates"
_IMPORTS = "NFGNN_IMPORT"
"""Environment variable with the modules of ``--import``, which worker processes inherit."""


class UnknownPluginError(UserError):
    """A name that is neither part of this package nor registered by another one.

    Args:
        message: see :class:`~nfgnn.errors.UserError`.
        kind: what the name stands for: ``"model"``, ``"basis"`` or ``"gate"``.
        name: the name that was not found.
    """

    def __init__(self, message: str, kind: str, name: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name

    # Workers send errors to their parent. The default would pickle the message only.
    def __reduce__(self) -> tuple[type["UnknownPluginError"], tuple[str, str, str]]:
        return type(self), (str(self), self.kind, self.name)


def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    return _scan(group, tuple(sys.path))


# A scan reads a file of every installed package, so it is made once for every search path.
@lru_cache(maxsize=8)
def _scan(group: str, search_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def plugin_names(group: str) -> list[str]:
    """Return the names that installed packages announce in a group, without importing them."""
    return sorted({point.name for point in _entry_points(group)})


def load_plugin(group: str, name: str) -> Any | None:
    """Import the modules of ``--import``, then the entry point of this name, ignoring case.

    Returns:
        What the entry point refers to; ``None`` if no package announces the name.
    """
    _import_each(requested_imports())
    for point in _entry_points(group):
        if point.name.lower() == name.lower():
            return _load(point)
    return None


def find_class(
    group: str, name: str, registry: dict[str, type[T]], base: type[Any], shown: str
) -> type[T] | None:
    """Return a class by its name, and register it if another package provides it.

    Args:
        group: the entry points of other packages.
        name: name of the class in the registry.
        registry: the known classes.
        base: the required base class.
        shown: the public name of ``base``, for the error message.

    Returns:
        The class; ``None`` if neither the registry nor a package has the name.
    """
    if name not in registry:
        loaded = load_plugin(group, name)
        if loaded is not None:
            if not (isinstance(loaded, type) and issubclass(loaded, base)):
                raise plugin_error(group, name, f"does not name a subclass of {shown}")
            registry[name] = loaded
    return registry.get(name)


def plugin_error(group: str, name: str, problem: str) -> UserError:
    """Return the error for an entry point that does not provide what its group promises."""
    points = [p for p in _entry_points(group) if p.name.lower() == name.lower()]
    return UserError(f"{_described(points[0])} {problem}")


def unknown_plugin(
    kind: str, name: str, choices: Iterable[str], hint: str = ""
) -> UnknownPluginError:
    """Return the error for a name that no package has registered.

    Args:
        kind: ``"model"``, ``"basis"`` or ``"gate"``.
        name: the name that was not found.
        choices: the registered names.
        hint: text at the end of the message.
    """
    return UnknownPluginError(f"{unknown_name(kind, name, choices)}{hint}", kind, name)


def requested_imports() -> list[str]:
    """Return the modules of ``--import``, of this process or of the one that started it."""
    return [name for name in os.environ.get(_IMPORTS, "").split(",") if name]


def import_modules(modules: Sequence[str]) -> None:
    """Import modules now, and in the worker processes that this process starts.

    Modules in the working directory are found, as with ``python -m``.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    _import_each(modules)
    names = dict.fromkeys([*requested_imports(), *modules])
    os.environ[_IMPORTS] = ",".join(names)


def _import_each(modules: Sequence[str]) -> None:
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # the code of the user may fail in any way
            raise UserError(
                f"--import {module}: the module cannot be imported ({_first_line(error)}); check "
                "its name, and that it is installed or in the working directory"
            ) from error


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # the code of another package may fail in any way
        raise UserError(
            f"{_described(point)} cannot be loaded ({_first_line(error)}); update or uninstall the "
            "package"
        ) from error


def _described(point: EntryPoint) -> str:
    package = "a package" if point.dist is None else f"the package {point.dist.name}"
    return f"{package}: the entry point '{point.name} = {point.value}' of {point.group}"


def _first_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
