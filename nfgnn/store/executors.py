"""Where column blocks are computed: in this process, or on a Ray cluster."""

import os
from pathlib import Path
from typing import ClassVar, Protocol

from nfgnn.errors import UserError
from nfgnn.ray_cluster import Say, ray_cluster
from nfgnn.store.column_block import compute_block
from nfgnn.store.memory_budget import return_freed_memory
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace

_STAGE = "computing terms"


class BlockExecutor(Protocol):
    """Computes the missing blocks of a workspace."""

    target_blocks: ClassVar[int]
    """Number of blocks to aim at, where there are enough features."""

    def run(self, workspace: Workspace, report: Report) -> None:
        """Compute all blocks that are not finished."""


class InProcess:
    """Compute one block after the other in this process."""

    target_blocks: ClassVar[int] = 1

    def run(self, workspace: Workspace, report: Report) -> None:
        terms_per_block = workspace.settings.K + 1
        total = workspace.plan.blocks * terms_per_block
        done = 0

        def on_term() -> None:
            nonlocal done
            done += 1
            report(_STAGE, done, total)

        for block in range(workspace.plan.blocks):
            done = block * terms_per_block  # a finished or resumed block has fewer calls
            compute_block(workspace, block, on_term=on_term)


class OnRay:
    """Compute every block as a Ray task. All nodes must share the file system of the store.

    Ray restarts a task that dies with its worker or node. Only complete blocks get their final
    name, so what a dead task leaves behind is never used.

    Args:
        address: address of the cluster, see :func:`nfgnn.ray_cluster.ray_cluster`.
        say: receives a line that describes the cluster.
    """

    target_blocks: ClassVar[int] = 16

    def __init__(self, address: str | None, say: Say) -> None:
        self.address = address
        self.say = say

    def run(self, workspace: Workspace, report: Report) -> None:
        with ray_cluster(self.address, self.say) as ray:
            remote = ray.remote(max_retries=-1, num_cpus=1, memory=workspace.settings.memory)
            task = remote(_compute_on_worker)
            folder = str(workspace.folder.resolve())
            pending = [task.remote(folder, block) for block in workspace.missing_blocks()]
            total = workspace.plan.blocks
            try:
                while pending:
                    ready, pending = ray.wait(pending)
                    ray.get(ready)
                    report(_STAGE, total - len(pending), total)
            except ray.exceptions.RayTaskError as error:
                raise error.as_instanceof_cause() from None


def _compute_on_worker(folder: str, block: int) -> None:
    import ray

    return_freed_memory()
    # Two attempts may run at a time when Ray loses contact with a node.
    attempt = f"{ray.get_runtime_context().get_task_id()}-{os.getpid()}"
    compute_block(Workspace.load(Path(folder)), block, attempt)


def make_executor(engine: str, address: str | None, say: Say) -> BlockExecutor:
    """Return the executor for the option ``--engine``."""
    if engine == "local":
        return InProcess()
    if engine == "ray":
        return OnRay(address, say)
    raise UserError(f"unknown --engine {engine}: choose local or ray")
