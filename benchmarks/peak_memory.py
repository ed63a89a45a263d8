"""Memory of training at the size of pokec on a GPU, compared with plain message passing.

    python benchmarks/peak_memory.py    needs a GPU; writes benchmarks/results/peak_memory.md

GiB that tensors hold, including the graph and its features: at the end of every stage, and at most
during it.
"""

import argparse
import gc
from pathlib import Path

import torch
from epochs import PLAIN, config, epoch_ms, random_graph

from nfgnn.kernels import degree_order
from nfgnn.spectral import scaled_laplacian
from nfgnn.training.batched import BatchedTrainer, Member, capture_cuda_graph


class Stages:
    """A line of the table for every stage."""

    def __init__(self) -> None:
        self.lines = ["| stage | held at its end | at most |", "|---|---:|---:|"]

    def note(self, stage: str) -> None:
        held = torch.cuda.memory_allocated() / 2**30
        most = torch.cuda.max_memory_allocated() / 2**30
        self.lines.append(f"| {stage} | {held:.2f} | {most:.2f} |")
        print(self.lines[-1], flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    stages = Stages()
    data = random_graph(1_632_803, 61_200_000, 65, 2, "cuda")
    stages.note("the graph is generated")
    epoch_ms(PLAIN[0], data, "cuda", 10)
    stages.note("plain message passing is trained")
    order, edge_index = degree_order(data.edge_index, data.num_nodes)
    stages.note("nodes are put in order")
    scaled_laplacian(edge_index, num_nodes=data.num_nodes)
    stages.note("the operator is made")
    setup = config("NFGNN", 100)
    model = setup.build(data.num_features, data.num_classes, data.num_nodes).cuda()
    with torch.no_grad():
        state = BatchedTrainer(
            [Member(model, data.train_mask, data.val_mask, setup.training)], data
        )
        stages.note("NFGNN: what training keeps, and a first pass")
        state.epoch()
        state.epoch()
        stages.note("NFGNN: two epochs")
        replay = capture_cuda_graph(state.epoch)
        stages.note("NFGNN: an epoch is captured")
        replay()
        stages.note("NFGNN: and replayed")
        state.evaluate()
        stages.note("NFGNN: evaluation")
    del state, replay, model, order, edge_index
    gc.collect()
    stages.note("all of it is let go")
    epoch_ms("NFGNN", data, "cuda", 10)
    stages.note("NFGNN is trained")
    text = [
        f"# Memory of training at the size of pokec, {torch.cuda.get_device_name()}, "
        f"torch {torch.__version__}",
        "",
        "`python benchmarks/peak_memory.py`. GiB, the graph and its features included.",
        "",
        *stages.lines,
        "",
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "peak_memory.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
