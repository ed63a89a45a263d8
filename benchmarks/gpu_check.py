"""Check the kernels on a GPU: against float64, for repeatability, and for their time.

    python benchmarks/gpu_check.py                checks; writes benchmarks/results/gpu_check.md
    python benchmarks/gpu_check.py --products     times; writes benchmarks/results/gpu_products.md

Without a GPU the same kernels run in Triton's interpreter
(tests/kernels/test_recurrence_kernel.py, tests/kernels/test_training_step_kernel.py).
"""

import argparse
from pathlib import Path

import torch
import triton
from epochs import random_graph
from torch_geometric.data import Data

from nfgnn import load_dataset, split
from nfgnn.data import FeatureScaling
from nfgnn.kernels import fused_mlp as mlp_kernel
from nfgnn.kernels import recurrence as triton_backend
from nfgnn.kernels import term_filter as term_filter_kernel
from nfgnn.kernels import training_step
from nfgnn.kernels.dropout_mask import kept_values
from nfgnn.nn.edge_list import edges_with_self_loops
from nfgnn.nn.edge_operations import pair_sums, softmax, weighted_sums
from nfgnn.nn.gates import term_filter
from nfgnn.spectral import (
    BASES,
    CSR,
    polynomial_terms,
    resolve_basis,
    scaled_laplacian,
    torch_backend,
)
from nfgnn.training import RunConfig, TrainingConfig, fit, fused_loss
from nfgnn.training.batched import Member, fit_batched
from nfgnn.training.optimizer import StackedAdam


def error(ours: torch.Tensor, exact: torch.Tensor) -> float:
    return float((ours.double() - exact.double()).norm() / exact.double().norm())


def check_terms() -> list[str]:
    """Terms and their gradient for every basis on real graphs, relative to float64."""
    lines = []
    for graph in ("cora", "squirrel"):
        data = load_dataset(graph)
        operator = scaled_laplacian(data.edge_index.cuda(), num_nodes=data.num_nodes)
        for name in BASES:
            for width in (2, 7, 64, 350):
                x = torch.randn(data.num_nodes, width, device="cuda", requires_grad=True)
                exact = x.detach().double().requires_grad_()
                ours, theirs = (
                    polynomial_terms(v, operator, resolve_basis(name), 10) for v in (x, exact)
                )
                weights = torch.randn_like(ours)
                again = polynomial_terms(x.detach(), operator, resolve_basis(name), 10)
                assert torch.equal(again, ours), "the same input must give the same bits"
                ours.backward(weights)
                theirs.backward(weights.double())
                forward = error(ours, theirs)
                backward = error(x.grad, exact.grad)
                assert max(forward, backward) < 5e-6, (graph, name, width, forward, backward)
                lines.append(f"| {graph} | {name} | {width} | {forward:.1e} | {backward:.1e} |")
    return lines


def check_parts() -> list[str]:
    """Products with a batch of values, and the gated sum with its gradient."""
    dense = torch.rand(3000, 900, device="cuda") * (torch.rand(3000, 900, device="cuda") < 0.05)
    matrix = CSR.from_tensor(dense.to_sparse_csr())
    values, x = (
        torch.rand(5, matrix.values.numel(), device="cuda"),
        torch.randn(900, 5, 64, device="cuda"),
    )
    members = error(
        triton_backend.batched_matmul(matrix, values, x),
        torch_backend.batched_matmul(matrix, values.double(), x.double()),
    )
    terms, grad = torch.randn(11, 5000, 3, 7, device="cuda"), torch.randn(5000, 3, 7, device="cuda")
    weight, gamma = torch.randn(3, 7, 2, device="cuda"), torch.randn(3, 11, 2, device="cuda")
    exact = [t.double() for t in (grad, terms, weight, gamma)]
    forward = error(
        term_filter_kernel.forward(terms, weight, gamma), term_filter.forward(*exact[1:])
    )
    backward = [
        error(a, b)
        for a, b in zip(
            term_filter_kernel.backward(grad, terms, weight, gamma), term_filter.backward(*exact)
        )
    ]
    assert max(members, forward, *backward) < 1e-5
    return [
        f"- a batch of values: {members:.1e}; gated sum: {forward:.1e}; its gradients: "
        + ", ".join(f"{e:.1e}" for e in backward)
    ]


def check_edge_operations() -> list[str]:
    """Pair sums, softmax and weighted sums over edges with their gradients, on a real graph."""
    data = load_dataset("squirrel")
    edges = edges_with_self_loops(data.edge_index.cuda(), data.num_nodes)
    lines = []
    for heads, channels in ((1, 64), (8, 8), (12, 64), (5, 3)):
        nodes = torch.randn(data.num_nodes, heads, device="cuda")
        values = torch.randn(edges.source.numel(), heads, device="cuda")
        rows = torch.randn(data.num_nodes, heads, channels, device="cuda")
        for operation, inputs in (
            (pair_sums, [nodes, nodes.flip(0)]),
            (softmax, [values]),
            (weighted_sums, [values, rows]),
        ):
            results = []
            for dtype in (torch.float32, torch.float64):
                # float64 is computed without the kernels.
                parts = [part.to(dtype).requires_grad_() for part in inputs]
                out = operation(*parts, edges)
                torch.manual_seed(0)
                factor = torch.randn(out.shape, device="cuda").to(dtype)
                results.append((out, *torch.autograd.grad(out, parts, factor)))
            again = operation(*inputs, edges)
            assert torch.equal(again, results[0][0]), "the same input must give the same bits"
            errors = [error(ours, exact) for ours, exact in zip(*results)]
            name = operation.__name__
            assert max(errors) < 1e-5, (name, heads, channels, errors)
            shown = ", ".join(f"{part:.1e}" for part in errors)
            lines.append(f"- `{name}` of edges, {heads} heads of {channels}: {shown}")
    return lines


def check_step() -> list[str]:
    """Loss, gradient and accuracy; and twenty steps of Adam."""
    logits, y = 3 * torch.randn(5000, 3, 7, device="cuda"), torch.randint(7, (5000,), device="cuda")
    mask, share = (
        torch.rand(3, 5000, device="cuda") < 0.3,
        torch.tensor([0.0, 0.1, 0.3], device="cuda"),
    )
    weight = mask / mask.sum(1, keepdim=True)
    exact = fused_loss.loss_and_gradient(logits.double(), weight.double(), y, share.double())
    parts = [
        error(a, b)
        for a, b in zip(training_step.loss_and_gradient(logits, weight, y, share), exact)
    ]
    theta, configs = (
        torch.randn(3, 9000, device="cuda"),
        [TrainingConfig(lr=lr) for lr in (0.001, 0.01, 0.1)],
    )
    twin, active = theta.double(), torch.ones(3, dtype=torch.bool, device="cuda")
    ours, theirs = (StackedAdam(t, 8000, configs) for t in (theta, twin))
    for _ in range(20):
        gradient = torch.randn_like(theta)
        ours.step(theta, gradient, active)
        theirs.step(twin, gradient.double(), active)
    adam = error(theta, twin)
    assert max(*parts, adam) < 1e-5
    errors = ", ".join(f"{part:.1e}" for part in parts)
    return [f"- loss, accuracy, gradient: {errors}; twenty steps of Adam: {adam:.1e}"]


def check_layers() -> list[str]:
    """Check the two-layer MLP with dropout by its formula in float64 and the masks of the kernels.

    Which hidden values are positive is taken from the kernel, because rounding decides at zero.
    """
    lines = []
    for n, features, width, classes in (
        (400_000, 65, 64, 2),
        (20_000, 128, 128, 16),
        (7_001, 100, 48, 7),
    ):
        rates, seeds = (
            torch.tensor([0.2, 0.6], device="cuda"),
            torch.tensor([[3, 4], [5, 6]], device="cuda"),
        )
        shapes = (2, width, features), (2, width), (2, classes, width), (2, classes)
        layers = [0.1 * torch.randn(shape, device="cuda") for shape in shapes]
        x, grad = torch.randn(n, features, device="cuda"), torch.randn(n, 2, classes, device="cuda")
        out, held, hidden = mlp_kernel.forward(x, *layers, rates, seeds)
        ours = mlp_kernel.backward(grad, x, hidden, layers[2], rates, seeds)
        assert torch.equal(mlp_kernel.forward(x, *layers, rates, seeds)[0], out), (
            "the same seeds, the same bits"
        )
        worst = 0.0
        for run, rate in enumerate(rates.tolist()):
            first, second = (
                kept_values(int(seed), n, columns, rate, "cuda")
                for seed, columns in zip(seeds[run], (features, width))
            )
            w1, b1, w2, b2 = (part[run].double() for part in layers)
            dropped, g = x.double() * first / (1 - rate), grad[:, run].double()
            h = (dropped @ w1.T + b1).relu() * second / (1 - rate)
            d = (g @ w2) * (hidden[run] > 0) / (1 - rate)
            plain = (x.double() @ w1.T + b1).relu() @ w2.T + b2
            exact = h @ w2.T + b2, plain, d.T @ dropped, d.sum(0), g.T @ h, g.sum(0)
            parts = out[:, run], held[:, run], *(part[run] for part in ours)
            worst = max(worst, *(error(a, b) for a, b in zip(parts, exact)))
        assert worst < 1e-5
        lines.append(
            f"- two layers, {features} features, {width} hidden, {classes} classes, "
            f"{n:,} rows: {worst:.1e}"
        )
    return lines


def losses(device: str, dtype: torch.dtype, epochs: int, together: bool) -> list[list[float]]:
    """Validation losses of three Cora runs without dropout."""
    data = load_dataset("cora")
    x = FeatureScaling.fit(data.x, "row").apply(data.x).to(dtype)
    setup = RunConfig.resolve(
        "NFGNN", {"dropout": 0.0, "epochs": epochs, "patience": 1000}, None, None, "none"
    )
    members, graphs = [], []
    for seed in range(3):
        torch.manual_seed(seed)
        model = setup.build(data.num_features, data.num_classes, data.num_nodes).to(device, dtype)
        part = split(data, "full", seed)
        masks = {"train_mask": part.train_mask, "val_mask": part.val_mask}
        graphs.append(Data(x=x, edge_index=data.edge_index, y=data.y, **masks).to(device))
        members.append(Member(model, graphs[-1].train_mask, graphs[-1].val_mask, setup.training))
    if together:
        return [history.val_loss for history in fit_batched(members, graphs[0])]
    return [
        fit(member.model, graph, setup.training).val_loss for member, graph in zip(members, graphs)
    ]


def gap(ours: list[list[float]], theirs: list[list[float]], epochs: int) -> float:
    return max(
        abs(a - b) for one, other in zip(ours, theirs) for a, b in zip(one[:epochs], other[:epochs])
    )


def check_training() -> list[str]:
    """Compare captured epochs of several runs on the GPU with plain epochs on the CPU.

    In float64 both must agree. In float32 rounding errors grow from epoch to epoch on any machine,
    so the distance of the GPU from float64 is compared with that of the CPU. The same seeds must
    give the same bits.
    """
    exact, ours = (
        losses("cuda", dtype, 200, together=True) for dtype in (torch.float64, torch.float32)
    )
    single = losses("cuda", torch.float32, 200, together=False)
    cpu_exact, cpu = (
        losses("cpu", dtype, 200, together=False) for dtype in (torch.float64, torch.float32)
    )
    lines = [
        "| epochs | float64, GPU - CPU | float32 on the GPU, together | one by one "
        "| float32 on the CPU |",
        "|---:|---:|---:|---:|---:|",
    ]
    for epochs in (1, 10, 50, 100, 200):
        drifts = [gap(run, cpu_exact, epochs) for run in (exact, ours, single, cpu)]
        lines.append(f"| {epochs} | " + " | ".join(f"{drift:.1e}" for drift in drifts) + " |")
    print("\n".join(lines), flush=True)
    assert gap(exact, cpu_exact, 200) < 1e-8
    for run in (ours, single):
        assert gap(run, cpu_exact, 10) < 1e-5
        assert gap(run, cpu_exact, 200) < max(1e-3, 10 * gap(cpu, cpu_exact, 200))
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        for together in (True, False):
            same = losses("cuda", dtype, 50, together) == losses("cuda", dtype, 50, together)
            how = "at once" if together else "one by one"
            lines.append(
                f"- {name}, {how}: the same seeds give {'the same' if same else 'OTHER'} bits again"
            )
            print(lines[-1], flush=True)
    assert not any("OTHER" in line for line in lines), "the same seeds must give the same bits"
    return lines


def copy_bandwidth() -> float:
    """Terabytes a second that a copy reads and writes."""
    pair = torch.empty(2, 2**29, device="cuda")
    return float(pair.nbytes / triton.testing.do_bench(lambda: pair[0].copy_(pair[1])) / 1e9)


def products() -> list[str]:
    """A sparse product at pokec's size: ours, cuSPARSE, and the time that reading alone takes."""
    graph = random_graph(1_632_803, 61_200_000, 1, 2, "cuda")
    operator = scaled_laplacian(graph.edge_index, num_nodes=graph.num_nodes)
    inner, tensor = (
        triton_backend._Graph.of(operator, torch.float32),
        operator.adjacency(torch.float32).tensor,
    )
    bandwidth = copy_bandwidth()
    lines = []
    for width in (1, 2, 4, 8, 16, 64, 128):
        x = torch.randn(graph.num_nodes, width, device="cuda")
        previous, out, scaled = torch.randn_like(x), torch.empty_like(x), torch.empty_like(x)

        def step(x=x, previous=previous, out=out, scaled=scaled) -> None:
            inner.step(x, out, 2.0, 0.0, previous=previous, c=-1.0, scaled_out=scaled)

        ours = triton.testing.do_bench(step, return_mode="median")
        theirs = triton.testing.do_bench(lambda x=x: tensor @ x, return_mode="median")
        edges = graph.edge_index.shape[1]
        once = (edges * 4 + 4 * x.numel() * 4) / bandwidth / 1e9
        gathered = edges * max(32, width * 4) / bandwidth / 1e9
        lines.append(
            f"| {width} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.1f} | {once:.3f} "
            f"| {gathered:.3f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--products", action="store_true", help="only time the sparse product")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    name, lines = (
        ("gpu_products.md", timed()) if arguments.products else ("gpu_check.md", checked())
    )
    (arguments.out / name).write_text("\n".join(lines))
    print("\n".join(lines[-16:]))


def checked() -> list[str]:
    return [
        f"# Kernels on {torch.cuda.get_device_name()}, torch {torch.__version__}",
        "",
        "`python benchmarks/gpu_check.py`. Errors are norms relative to float64; the same input "
        "gave the same bits.",
        "",
        "| graph | basis | width | terms | gradient |",
        "|---|---|---:|---:|---:|",
        *check_terms(),
        "",
        *check_parts(),
        *check_edge_operations(),
        *check_step(),
        *check_layers(),
        "",
        "## Three runs on Cora without dropout: largest distance of a validation loss from "
        "float64 on the CPU",
        "",
        *check_training(),
        "",
    ]


def timed() -> list[str]:
    return [
        f"# A sparse product at the size of pokec, {torch.cuda.get_device_name()}, "
        f"torch {torch.__version__}",
        "",
        "Milliseconds. `python benchmarks/gpu_check.py --products`",
        "",
        "Ours is a whole step of the recurrence (product, scaling, minus the previous term, two",
        "outputs), that of cuSPARSE only the product. Lower bounds at the measured copy bandwidth:",
        "reading and writing everything once, and reading a 32-byte sector (or the row, if it is",
        "longer) for every edge.",
        "",
        "| width | ours | cuSPARSE | ratio | read once | a sector per edge |",
        "|---:|---:|---:|---:|---:|---:|",
        *products(),
        "",
    ]


if __name__ == "__main__":
    main()
