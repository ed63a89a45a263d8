"""Pickled work without its graphs, which workers receive once and not with every run."""

import io
import pickle
from collections.abc import Mapping
from typing import Any

from nfgnn.training.run import Graph


def dumps_without_graphs(value: Any, names: Mapping[Graph, str]) -> bytes:
    """Pickle a value in which names stand for graphs.

    Args:
        value: what to pickle.
        names: the graphs that are left out. Graphs that are not listed are pickled.
    """
    file = io.BytesIO()
    _Pickler(file, names).dump(value)
    return file.getvalue()


def loads_with_graphs(packed: bytes, graphs: Mapping[str, Any]) -> Any:
    """Return the value of :func:`dumps_without_graphs`.

    Args:
        packed: the pickled value.
        graphs: the graphs that were left out, by their names.
    """
    return _Unpickler(io.BytesIO(packed), graphs).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, names: Mapping[Graph, str]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = names

    def persistent_id(self, obj: Any) -> str | None:
        return self._names.get(obj) if isinstance(obj, Graph) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, graphs: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._graphs = graphs

    def persistent_load(self, pid: str) -> Any:
        return self._graphs[pid]
