"""Graphs: a name, files or an object in, one checked :class:`torch_geometric.data.Data` out.

:func:`load_dataset` is the door. A **name** is looked up in the table (``registry.py``, an ``Entry`` per
dataset), its raw files in the roots (``places.py``), else fetched (``download.py``), read by the reader of
its layout (``readers/``) and kept (``finished.py``). **Files** of the user's own and **objects** (PyG,
NetworkX, SciPy, pandas) have readers too. Whatever the way, the graph passes the gate (``check.py`` with
``edges.py``, ``features.py``, ``labels.py``, ``masks.py``), which mends what it can and says so.
``health.py`` looks for what is legal but suspicious, ``mixed.py`` generates the built-in graph, ``export.py``
writes a graph back to files.
"""

from nfgnn.data.load import load_dataset
from nfgnn.data.mixed import mixed_graph
from nfgnn.data.registry import names as dataset_names
from nfgnn.data.scaling import SCALINGS, FeatureScaling
from nfgnn.data.splits import PROTOCOLS, observed_part, split
from nfgnn.data.validate import check_graph

__all__ = [
    "PROTOCOLS",
    "SCALINGS",
    "FeatureScaling",
    "check_graph",
    "dataset_names",
    "load_dataset",
    "mixed_graph",
    "observed_part",
    "split",
]
