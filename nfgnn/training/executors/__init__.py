"""Where runs execute: in this process, in a pool of processes, in a ``torchrun`` group, on Ray.

Runs that a GPU can train as one computation come to all of them as one batch
(:func:`nfgnn.training.execution.make_batches`).
"""

from nfgnn.training.executors.in_process import InProcess
from nfgnn.training.executors.process_pool import ProcessPool
from nfgnn.training.executors.ray_tasks import RayTasks
from nfgnn.training.executors.torchrun import Torchrun, follow

__all__ = ["InProcess", "ProcessPool", "RayTasks", "Torchrun", "follow"]
