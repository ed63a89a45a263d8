"""Who computes the blocks of columns: this process, or the workers of a Ray cluster."""

import os
from collections.abc import Callable
from pathlib import Path

from nfgnn.store.block import compute_block
from nfgnn.store.cluster import Say, ray_cluster
from nfgnn.store.job import Job, block_folder
from nfgnn.store.memory import return_freed_memory
from nfgnn.store.source import Report

WHAT = "computing terms"


def run_local(job: Job, report: Report, say: Say, address: str | None = None) -> None:
    """One block after the other, in this process."""
    terms, total = 0, job.plan.blocks * (job.settings.K + 1)

    def tick() -> None:
        nonlocal terms
        terms += 1
        report(WHAT, terms, total)

    for block in range(job.plan.blocks):
        terms = block * (job.settings.K + 1)
        compute_block(job, block, tick=tick)


def run_ray(job: Job, report: Report, say: Say, address: str | None = None) -> None:
    """Every block is a Ray task; the store's folder must be on a file system that all nodes share.

    Files are the truth: a task that dies with its worker or node is run again by Ray, and whatever it has left behind
    is never taken for a block.
    """
    with ray_cluster(address, say) as ray:
        task = ray.remote(max_retries=-1, num_cpus=1, memory=job.settings.memory)(_task)
        todo = [
            block for block in range(job.plan.blocks) if not block_folder(job.work, block).is_dir()
        ]
        waiting = [task.remote(str(job.work.resolve()), block) for block in todo]
        done = job.plan.blocks - len(todo)
        try:
            while waiting:
                ready, waiting = ray.wait(waiting)
                ray.get(ready)
                done += len(ready)
                report(WHAT, done, job.plan.blocks)
        except ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None


def _task(work: str, block: int) -> None:
    import ray

    return_freed_memory()
    compute_block(
        Job.load(Path(work)),
        block,
        attempt=f"{ray.get_runtime_context().get_task_id()}-{os.getpid()}",
    )


ENGINES: dict[str, Callable[[Job, Report, Say, str | None], None]] = {
    "local": run_local,
    "ray": run_ray,
}
