"""Compute the polynomial terms of a graph that does not fit into memory, and read them back.

A **store** is a folder with the terms of every node. :func:`nfgnn.store.precompute` creates one;
data flows through these modules:

1. ``source.py``: the graph, in memory or read in blocks (:class:`Source`);
2. ``plan.py``: how the work is divided and what it costs (``memory_budget.py``,
   ``machine_speed.py``); ``precompute.py`` runs it and keeps its state in ``workspace.py``;
3. ``feature_blocks.py``: scaled features in blocks of columns; ``disk_laplacian.py``: the
   operator; ``device_csr.py``: the same for edges in the memory of a GPU;
   ``sketch_rows.py``, ``two_hop_rows.py``, ``degree_rows.py`` and ``agreement_rows.py``: the other
   parts of rows, written by ``part_files.py``;
4. ``column_block.py``: the terms of one block, with the operator in memory or, by
   ``disk_backend.py``, on disk; ``executors.py``: blocks in this process or on Ray;
5. ``assemble_rows.py``: rows from blocks; ``store.py``: the files of a store (``manifest.py``,
   ``file_format.py``, ``array_values.py``); ``remote.py``: stores on object storage;
6. ``row_loader.py``: row batches for training;
7. ``new_node_terms.py``: rows of nodes that are added to a graph in memory, and
   ``new_node_parts.py`` their other parts; ``attached_terms.py``: rows of nodes that are attached
   to a store (``stored_graph.py``, ``stored_ids.py``, ``opened_files.py``,
   ``extended_graph.py``, ``indicator_walks.py``, ``graph_ball.py``, ``ball_operator.py``).

:class:`StoreWriter` and :func:`write_store` write rows, :meth:`Store.rows` reads them.
"""

from nfgnn.store.attached_terms import attached_terms
from nfgnn.store.device_csr import csr_on_device
from nfgnn.store.machine_speed import Speed
from nfgnn.store.manifest import Manifest
from nfgnn.store.memory_budget import parse_memory, resident_bytes, return_freed_memory
from nfgnn.store.new_node_parts import parts_of_new_nodes
from nfgnn.store.new_node_terms import NewNodes, terms_of_new_nodes
from nfgnn.store.opened_files import UnusableStoreError
from nfgnn.store.plan import Plan, Settings, make_plan
from nfgnn.store.precompute import plan_precompute, precompute
from nfgnn.store.remote import local_folder
from nfgnn.store.row_loader import Batch, MemoryRows, RowLoader, RowSource, stream_seed
from nfgnn.store.source import MemorySource, Report, Source
from nfgnn.store.store import Store, is_store, verify_store
from nfgnn.store.store_writer import StoreWriter, write_store
from nfgnn.store.stored_graph import StoredGraph

__all__ = [
    "Batch",
    "Manifest",
    "MemoryRows",
    "MemorySource",
    "NewNodes",
    "Plan",
    "Report",
    "RowLoader",
    "RowSource",
    "Settings",
    "Source",
    "Speed",
    "Store",
    "StoreWriter",
    "StoredGraph",
    "UnusableStoreError",
    "attached_terms",
    "csr_on_device",
    "is_store",
    "local_folder",
    "make_plan",
    "parse_memory",
    "parts_of_new_nodes",
    "plan_precompute",
    "precompute",
    "resident_bytes",
    "return_freed_memory",
    "stream_seed",
    "terms_of_new_nodes",
    "verify_store",
    "write_store",
]
