"""Graphs: a name, files or an object in, one validated :class:`torch_geometric.data.Data` out.

:func:`load_dataset` (``load.py``) is the entry point. It looks a **name** up in ``registry.py``,
finds or downloads the raw files (``download.py``), reads them with the reader of their layout
(``readers/``) and caches the result (``processed_cache.py``). **Files** of the user and **objects**
(PyG, NetworkX, SciPy, pandas) have readers too; files at a URL are copied first
(``remote_graph.py``). Every graph passes ``validate.py`` (with
``edges.py``, ``features.py``, ``labels.py``), which fixes what it can and reports it.

``splits.py`` selects train, validation and test nodes, ``scaling.py`` scales features,
``diagnostics.py`` finds known data issues, ``synthetic.py`` generates the built-in graph and
``power_law_graph.py`` graphs of any size,
``export.py`` writes graphs to files, ``partition.py`` cuts a graph into parts, ``names.py`` reads
the names of features and classes, and
``large_graph.py`` is a graph that exceeds the memory, which is read in blocks and sorted on disk by
``external_sort.py``.
"""

from nfgnn.data.diagnostics import Finding, diagnose
from nfgnn.data.download import is_available
from nfgnn.data.export import export_graph, write_template
from nfgnn.data.external_sort import csr_on_disk
from nfgnn.data.features import check_features, degree_features, sparse_if_faster
from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.load import (
    graph_paths,
    held_bytes,
    load_dataset,
    loaded_bytes,
    open_large,
    registered_name,
)
from nfgnn.data.memory import available_memory, require_memory
from nfgnn.data.messages import few
from nfgnn.data.names import check_feature_names, class_names_of, names_of, repeated_names
from nfgnn.data.partition import kept_edges, partition_graph
from nfgnn.data.paths import cache_folder
from nfgnn.data.power_law_graph import PowerLawGraph
from nfgnn.data.readers.feature_columns import TableEncoding
from nfgnn.data.readers.new_nodes import ExistingNodes, features_of_objects, load_new_nodes
from nfgnn.data.readers.node_ids import ids_as_array
from nfgnn.data.readers.tables import node_columns
from nfgnn.data.registry import BUILT_IN, REGISTRY, Entry, canonical_name
from nfgnn.data.registry import names as dataset_names
from nfgnn.data.remote_graph import local_path
from nfgnn.data.scaling import SCALINGS, FeatureScaling
from nfgnn.data.splits import (
    PROTOCOLS,
    default_protocol,
    observed_part,
    representative_protocol,
    split,
)
from nfgnn.data.synthetic import mixed_graph
from nfgnn.data.validate import check_graph

__all__ = [
    "BUILT_IN",
    "PROTOCOLS",
    "REGISTRY",
    "SCALINGS",
    "Entry",
    "ExistingNodes",
    "FeatureScaling",
    "Finding",
    "LargeGraph",
    "PowerLawGraph",
    "TableEncoding",
    "available_memory",
    "cache_folder",
    "canonical_name",
    "check_feature_names",
    "check_features",
    "check_graph",
    "class_names_of",
    "csr_on_disk",
    "dataset_names",
    "default_protocol",
    "degree_features",
    "diagnose",
    "export_graph",
    "features_of_objects",
    "few",
    "graph_paths",
    "held_bytes",
    "ids_as_array",
    "is_available",
    "kept_edges",
    "load_dataset",
    "load_new_nodes",
    "loaded_bytes",
    "local_path",
    "mixed_graph",
    "names_of",
    "node_columns",
    "observed_part",
    "open_large",
    "partition_graph",
    "registered_name",
    "repeated_names",
    "representative_protocol",
    "require_memory",
    "sparse_if_faster",
    "split",
    "write_template",
]
