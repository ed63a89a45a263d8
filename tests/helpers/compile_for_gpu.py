"""Compile every kernel for a Hopper GPU instead of launching it; run by test_kernels_compile.

The interpreter accepts kernels that the compiler refuses, and CI has no GPU.
"""

import inspect
import sys
from typing import Any

import torch
import triton
from conftest import random_graph
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

TYPES = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.bfloat16: "*bf16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.bool: "*i1",
}
OPTIONS = ("num_warps", "maxnreg")
compiled: dict[Any, str] = {}


def compile_only(self: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    options = {key: kwargs.pop(key) for key in OPTIONS if key in kwargs}
    bound = inspect.signature(self.fn).bind(*args, **kwargs).arguments
    signature, constants, attributes = {}, {}, {}
    for place, parameter in enumerate(self.params):
        value = bound[parameter.name]
        if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1):
            signature[parameter.name], constants[(place,)] = "constexpr", value
            continue
        number = parameter.annotation_type or ("fp32" if isinstance(value, float) else "i32")
        kind = TYPES[value.dtype] if isinstance(value, torch.Tensor) else number
        signature[parameter.name] = kind
        if isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0):
            attributes[(place,)] = [["tt.divisibility", 16]]
    name = f"{self.fn.__module__}.{self.fn.__name__}"
    key = (name, *signature.items(), *constants.items(), *map(str, attributes), *options.items())
    if key not in compiled:
        source = ASTSource(self, signature, constants, attributes)
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        compiled[key] = name


def all_kernels() -> None:
    from nfgnn.kernels import attention, edge_operations, residual_block, training_step
    from nfgnn.kernels import fused_mlp as mlp_kernel
    from nfgnn.kernels import recurrence as triton_backend
    from nfgnn.kernels import term_filter as term_filter_kernel
    from nfgnn.kernels.dropout_mask import kept_values
    from nfgnn.spectral import CSR, scaled_laplacian
    from nfgnn.training import TrainingConfig
    from nfgnn.training.optimizer import StackedAdam

    edge_index = random_graph(40, 0.2, 0)
    table = [(1.0, 0.0, 0.0), (2.0, 0.5, -1.0)]
    weighted = (edge_index.sum(0) % 3 + 1).double()
    for large, weight, width, dtype in (
        (10**9, None, 14, torch.float32),
        (4, None, 4, torch.float32),
        (4, None, 2, torch.float64),
        (4, weighted, 2, torch.float32),
    ):
        triton_backend.LARGE = large
        triton_backend._LONG = 9
        operator = scaled_laplacian(edge_index.clone(), weight, 40)
        triton_backend.terms(torch.randn(40, width, dtype=dtype), operator, table)
        triton_backend.adjoint(torch.randn(3, 40, width, dtype=dtype), operator, table)
    matrix = CSR.from_tensor((torch.rand(30, 20) < 0.3).float().to_sparse_csr())
    triton_backend.matmul(matrix, torch.randn(20, 64))
    triton_backend.batched_matmul(
        matrix, torch.rand(3, matrix.values.numel()), torch.randn(20, 3, 5)
    )
    for runs, rank in ((3, 3),):
        terms, weight, gamma = (
            torch.randn(4, 37, runs, 5),
            torch.randn(runs, 5, rank),
            torch.randn(runs, 4, rank),
        )
        term_filter_kernel.forward(terms, weight, gamma)
        term_filter_kernel.backward(torch.randn(37, runs, 5), terms, weight, gamma)
    for features, width, classes in ((65, 64, 2),):
        layers = [
            torch.randn(shape)
            for shape in ((2, width, features), (2, width), (2, classes, width), (2, classes))
        ]
        x, rates, seeds = (
            torch.randn(100, features),
            torch.rand(2),
            torch.ones(2, 2, dtype=torch.long),
        )
        *_, hidden = mlp_kernel.forward(x, *layers, rates, seeds)
        mlp_kernel.backward(torch.randn(100, 2, classes), x, hidden, layers[2], rates, seeds)
    kept_values(0, 100, 65, 0.5)
    for dtype in (torch.float32, torch.bfloat16):
        nodes = torch.randn(50, 3, 40).to(dtype)
        h = torch.randn(50, 3, 40)
        own = torch.randn(3, 40).to(dtype)
        triton_backend.LARGE = 10**9
        for columns in (64, triton_backend._WIDE):
            triton_backend.matmul(matrix, torch.randn(20, columns).to(dtype))
        # Without dropout in one precision only: every variant takes a second to compile.
        without_dropout = [(None, None)] if dtype == torch.bfloat16 else []
        for drawn in (*without_dropout, (torch.rand(3), torch.ones(3, dtype=torch.long))):
            residual_block.activate(nodes, own, *drawn, 2)
            residual_block.activate_gradient(nodes, nodes, own, *drawn, 2)
            residual_block.residual_norm(h, nodes, own, *drawn, 2, own, own, 1e-5)
            residual_block.residual_norm_gradient(h, nodes, h, *drawn, 2, own, True, 1e-5)
        scores = torch.randn(40, 6).to(dtype)
        values = torch.randn(40, 6, 16).to(dtype)
        pattern = scaled_laplacian(edge_index.clone(), None, 40).adjacency(torch.float32)
        graph = (pattern.indptr, pattern.indices)
        triton_backend.matrix_step(pattern, values.flatten(1), 2.0, 0.5, values.flatten(1), -1.0)
        means, norm = attention.attend(*graph, scores, scores, values, 0.2)
        attention.attend_gradient(values, *graph, scores, scores, values, means, norm, 0.2)
        edges = torch.arange(graph[1].numel(), dtype=torch.int32)
        weights = torch.rand(edges.numel(), 6)
        edge_operations.weighted_sums(*graph, edges, weights, values, dtype)
        edge_operations.edge_products(*graph, edges, values, values, torch.float32)
        of_edges = (graph[0], edges, weights.to(dtype))
        edge_operations.edge_sums(*of_edges)
        edge_operations.softmax(*of_edges)
        edge_operations.softmax_gradient(*of_edges, weights.to(dtype))
        residual_block.weight_gradient(nodes, [nodes, nodes], dtype)
        residual_block.residual_norm(h, None, None, None, None, 2, own, own, 1e-5)
        residual_block.residual_norm_gradient(None, nodes, h, None, None, 2, own, False, 1e-5)
    y, long = torch.randint(5, (37,)), torch.zeros(3, dtype=torch.long)
    for share in (None, torch.rand(3)):
        training_step.loss_and_gradient(torch.randn(37, 3, 5), torch.rand(3, 37), y, share)
    flags, told, books = (
        torch.ones(3, dtype=torch.bool),
        torch.rand(3),
        torch.zeros(200, 3, dtype=torch.double),
    )
    seen = torch.zeros(10, 3, 3, dtype=torch.double)
    training_step.record(
        told, told, told, torch.zeros(1, dtype=torch.long), seen, books, flags, long, told, flags
    )
    theta = torch.randn(3, 1500)
    adam = StackedAdam(theta, 1100, [TrainingConfig()] * 3)
    rates = (adam.powers, adam.lr, adam.weight_decay)
    training_step.adam(theta, theta, adam.m, adam.v, *rates, flags, 1100)


if __name__ == "__main__":
    JITFunction.run = compile_only
    all_kernels()
    print("\n".join(sorted(set(compiled.values()))))
    print(len(compiled), "variants", file=sys.stderr)
