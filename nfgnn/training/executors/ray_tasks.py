"""Runs as tasks of a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from nfgnn.errors import UserError
from nfgnn.ray_cluster import ray_cluster
from nfgnn.training.execution import Batch, Executor, OnBatchEpoch, Work
from nfgnn.training.run import Failure


class RayTasks(Executor):
    """Train every batch as a task, which is restarted if its worker or node dies.

    Raw files must lie at the same place on all nodes. Only the calling process stores results.

    Args:
        address: of a cluster; by default ``$RAY_ADDRESS``, else a cluster is started and stopped.
        say: receives a line that describes the cluster.
    """

    def __init__(self, address: str | None, say: Callable[[str], None]) -> None:
        self.address = address
        self.say = say

    def run(
        self, batches: Sequence[Batch], work: Work, on_epoch: OnBatchEpoch
    ) -> Iterator[tuple[Batch, list[Any | Failure]]]:
        if any(batch[0].timed for batch in batches):
            raise UserError("times are measured on this machine: leave out --engine ray")
        if not batches:
            return
        with ray_cluster(self.address, self.say) as ray:
            gpu = work.device != "cpu" and ray.cluster_resources().get("GPU", 0)
            options = {"max_retries": -1, "num_cpus": 1, "num_gpus": 1 if gpu else 0}
            task = ray.remote(**options)(_run_batch)
            waiting = {task.remote(batch, work): batch for batch in batches}
            while waiting:
                ready, _ = ray.wait(list(waiting))
                for reference in ready:
                    yield waiting.pop(reference), ray.get(reference)


def _run_batch(batch: Batch, work: Work) -> list[Any | Failure]:
    torch.set_num_threads(1)
    return work(batch)
