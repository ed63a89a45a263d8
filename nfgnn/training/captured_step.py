"""A training step on a batch of rows as one CUDA graph.

A step on some thousand rows takes a GPU less time than it takes Python to launch its kernels. A
captured step is launched as a whole. Random numbers follow the seed that is set before the launch,
as they do without a graph.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from nfgnn.store import Batch

_WARM_UP = 3  # steps in which libraries allocate what they must not allocate during the capture


class CapturedStep:
    """Replay a step for batches of full size; compute others, and the first ones, directly.

    Args:
        step: updates the weights with a batch and returns its loss. It must not wait for the
            device, and all tensors that it updates must keep their memory.
        batch_size: number of rows of a full batch.
    """

    def __init__(self, step: Callable[[Batch], Tensor], batch_size: int) -> None:
        self._step = step
        self._batch_size = batch_size
        self._seen = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch | None = None
        self._loss: Tensor | None = None

    def __call__(self, batch: Batch) -> Tensor:
        """Update the weights, and return the loss, which is valid until the next call."""
        if batch.total != self._batch_size:
            return self._step(batch)
        if self._seen < _WARM_UP:
            self._seen += 1
            return self._step(batch)
        if self._graph is None:
            self._capture(batch)
        assert self._graph is not None
        assert self._batch is not None
        assert self._loss is not None
        self._batch.rows.copy_(batch.rows)
        self._batch.y.copy_(batch.y)
        self._graph.replay()
        return self._loss

    def _capture(self, batch: Batch) -> None:
        """Record the kernels of a step, without running them."""
        self._batch = Batch(batch.rows.clone(), batch.y.clone(), batch.total)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # The threads of the loader use the device meanwhile, which is their own affair.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._loss = self._step(self._batch)
        self._graph = graph
