"""The recurrence of a graph that does not fit: its terms on disk, within a budget of memory, on one machine or many.

:class:`Store` is what `nfgnn precompute` leaves behind and what Algorithm 2 trains on; :func:`write_store` makes
one from terms in memory. :mod:`nfgnn.store.loader` gives a trainer its batches of rows, :mod:`nfgnn.store.new_nodes` the
rows of nodes that came later.
"""

from nfgnn.store.manifest import Manifest
from nfgnn.store.store import Store, is_store, write_store

__all__ = ["Manifest", "Store", "is_store", "write_store"]
