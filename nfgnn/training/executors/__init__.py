"""Where runs execute: in this process, in a pool of processes, in a ``torchrun`` group, on Ray.

Every executor receives batches: runs that a GPU trains as one computation, or single runs
(:func:`nfgnn.training.execution.make_batches`). :mod:`nfgnn.training.distributed` is about several
processes that train one run together.
"""

from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.executors.process_pool import ProcessPool
from nfgnn.training.executors.ray_tasks import RayTasks
from nfgnn.training.executors.time_limit import TimeLimit
from nfgnn.training.executors.torchrun import Torchrun, follow
from nfgnn.training.executors.until_deadline import UntilDeadline
from nfgnn.training.executors.worker_pool import WorkerPool

__all__ = [
    "InProcess",
    "ProcessPool",
    "RayTasks",
    "TimeLimit",
    "Torchrun",
    "UntilDeadline",
    "WorkerPool",
    "follow",
]
