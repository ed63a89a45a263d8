"""Graphs: a name, files or an object in, one checked :class:`torch_geometric.data.Data` out.

:func:`load_dataset` is the door. A **name** is looked up in the table (``registry.py``, an ``Entry`` per
dataset), its raw files in the roots (``places.py``), else fetched (``download.py``), read by the reader of
its layout (``readers/``) and kept (``finished.py``). **Files** of the user's own and **objects** (PyG,
NetworkX, SciPy, pandas) have readers too. Whatever the way, the graph passes the gate (``check.py`` with
``edges.py``, ``features.py``, ``labels.py``, ``masks.py``), which mends what it can and says so.
``health.py`` looks for what is legal but suspicious, ``mixed.py`` generates the built-in graph, ``export.py``
writes a graph back to files.
"""

from nfgnn.datasets.check import check_graph
from nfgnn.datasets.load import load_dataset
from nfgnn.datasets.mixed import mixed_graph
from nfgnn.datasets.registry import names as dataset_names

__all__ = ["check_graph", "dataset_names", "load_dataset", "mixed_graph"]
