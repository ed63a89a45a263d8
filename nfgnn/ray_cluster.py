"""Connect to a Ray cluster, or start one on this machine."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

from nfgnn.errors import UserError

Say = Callable[[str], None]
"""Prints one line, such as :meth:`nfgnn.progress.Progress.say`."""


@contextmanager
def ray_cluster(address: str | None, say: Say, cpus: int | None = None) -> Iterator[ModuleType]:
    """Yield the module ``ray``, connected to a cluster.

    Args:
        address: the cluster's address. By default ``$RAY_ADDRESS``; if that is not set, a local
            cluster is started and stopped again.
        say: receives a line that describes the cluster.
        cpus: number of CPUs of a local cluster; all by default.
    """
    try:
        import ray
    except ImportError:
        raise UserError(
            "--engine ray requires Ray: install it with `pip install 'nfgnn[cluster]'`"
        ) from None
    address = address or os.environ.get("RAY_ADDRESS")
    started = not ray.is_initialized()
    if started:
        # A local cluster ends with this command, and its dashboard takes seconds to start.
        local = {} if address else {"num_cpus": cpus, "include_dashboard": False}
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            ray.init(address=address or "local", **quiet, **local)
        except Exception as error:  # Ray raises errors of many types, also `Exception` itself
            raise _no_connection(address, error) from None
    nodes = sum(node["Alive"] for node in ray.nodes())
    name = f"the cluster at {address}" if address else "a local cluster"
    cpu_count = ray.cluster_resources().get("CPU", 0)
    say(f"Ray: {name}, {nodes} node{'s' if nodes > 1 else ''}, {cpu_count:g} CPUs")
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def _no_connection(address: str | None, error: Exception) -> UserError:
    reason = " ".join(str(error).split())
    if address:
        return UserError(
            f"cannot connect to the Ray cluster at {address} ({reason}): check the address, the "
            "authentication token of Ray, and that all nodes have the same versions of Ray and "
            "Python"
        )
    return UserError(
        f"a local Ray cluster could not be started ({reason}): try again when the machine is less "
        "busy, or omit --engine ray"
    )
