"""A Ray cluster to work on: the one that is named, or one of its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nfgnn.errors import UserError

Say = Callable[[str], None]


@contextmanager
def ray_cluster(address: str | None, say: Say, cpus: int | None = None) -> Iterator[Any]:
    """The module ``ray``, connected to the cluster at ``address``, else to that of ``RAY_ADDRESS``, else to one that is
    started here with ``cpus`` processors (by default all)."""
    try:
        import ray
    except ImportError:
        raise UserError(
            "--engine ray needs Ray: install it with `pip install 'nfgnn[cluster]'`"
        ) from None
    address = address or os.environ.get("RAY_ADDRESS")
    started = not ray.is_initialized()
    if started:
        own = {} if address else {"num_cpus": cpus}
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **own)
    nodes = len([node for node in ray.nodes() if node["Alive"]])
    which = f"the cluster at {address}" if address else "a cluster of its own"
    many = f"{nodes} node{'s' if nodes > 1 else ''}"
    say(f"Ray: {which}, {many}, {ray.cluster_resources().get('CPU', 0):g} CPUs")
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
