"""The recurrence of a graph that does not fit: its terms on disk, within a budget of memory, on one machine or many.

:class:`Store` is what `nfgnn precompute` leaves behind and what Algorithm 2 trains on; :func:`write_store` makes
one from terms in memory. :mod:`nfgnn.scale.loader` gives a trainer its batches of rows, :mod:`nfgnn.scale.serving` the
rows of nodes that came later.
"""

from nfgnn.scale.manifest import Manifest
from nfgnn.scale.store import Store, is_store, write_store

__all__ = ["Manifest", "Store", "is_store", "write_store"]
