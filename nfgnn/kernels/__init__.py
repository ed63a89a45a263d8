"""Triton kernels for the GPU. Each module has a twin in torch, and the tests compare the two.

Without Triton, or on a CPU, the twin is used: see :func:`nfgnn.spectral.triton_supports`. Modules
with kernels import Triton, so they are imported where they are used.

======================================= ==================================================
:mod:`nfgnn.kernels.recurrence`         sparse products and recurrences; twin
                                        :mod:`nfgnn.spectral.torch_backend`
:mod:`nfgnn.kernels.term_filter`        coefficients and weighted sum of ``TermGate``; twin
                                        :mod:`nfgnn.nn.gates.term_filter`
:mod:`nfgnn.kernels.fused_mlp`          an MLP of two layers with dropout; twin
                                        :class:`nfgnn.nn.MLP`
:mod:`nfgnn.kernels.residual_block`     row-wise operations of a residual block; twin
                                        :mod:`nfgnn.nn.residual_block`
:mod:`nfgnn.kernels.attention`          attention over neighbours; twin :mod:`nfgnn.nn.attention`
:mod:`nfgnn.kernels.edge_operations`    softmax and sums over the edges of a node; twin
                                        :mod:`nfgnn.nn.sparse_edge_operations`
:mod:`nfgnn.kernels.dropout_mask`       which values dropout keeps
:mod:`nfgnn.kernels.training_step`      loss, stopping rule and Adam; twins in :mod:`nfgnn.training`
======================================= ==================================================
"""

from nfgnn.kernels.node_order import LARGE, degree_order

__all__ = ["LARGE", "degree_order"]
