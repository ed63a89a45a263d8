"""The oracle of the study of node gates."""

import torch

from nfgnn.nn import SpectralConv
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE, OracleSpec
from nfgnn.training import Graph, RecordResults, RunSpec
from nfgnn.training.batched import bytes_per_run
from nfgnn.training.inputs import sizes

SETTINGS = {
    "num_layers": 2,
    "hidden_channels": 8,
    "heads": 2,
    "K": 2,
    "lr": 0.01,
    "weight_decay": 0.0,
    "dropout": 0.0,
}


def run(seed: int = 0) -> RunSpec:
    graph = Graph.named("mixed", num_nodes=60, shares=(0.4, 0.3, 0.3))
    return RunSpec(graph, "full", seed, plan.config(plan.NONE, SETTINGS))


def test_the_oracle_starts_as_the_network_without_a_gate() -> None:
    data = run().split()
    plain = run().classifier("cpu")
    oracle = OracleSpec.of(run()).classifier("cpu")
    for classifier in (plain, oracle):
        classifier.prepare_fit(data)
    weights = plain.model_.state_dict()
    oracle.model_.load_state_dict(weights, strict=False)
    inputs = (plain.scaled(data).x, data.edge_index)
    expected = plain.model_.eval()(*inputs)
    assert torch.allclose(oracle.model_.eval()(*inputs), expected, atol=1e-6)


def test_nodes_of_one_pattern_share_their_coefficients() -> None:
    data = run().split()
    oracle = OracleSpec.of(run()).classifier("cpu")
    oracle.prepare_fit(data)
    convs = [part for part in oracle.model_.modules() if isinstance(part, SpectralConv)]
    assert len(convs) == 2
    for conv in convs:
        torch.nn.init.normal_(conv.gate.weight)
        _, means = conv(torch.randn(60, 8), data.edge_index, return_coefficients=True)
        # The layer returns the means over the heads.
        assert torch.allclose(means, conv.gate.weight.mean(-1)[data.pattern])


def test_the_memory_of_a_run_can_be_estimated() -> None:
    """On a GPU a model that was only built passes the graph once."""
    data = run().split()
    model = OracleSpec.of(run()).config.build(*sizes(data))
    assert bytes_per_run(model, data) > 0


def test_runs_of_the_oracle_are_records_of_their_own() -> None:
    specs = [run(), OracleSpec.of(run())]
    keys = {RecordResults(None)._key(spec) for spec in specs}
    assert len(keys) == 2
    assert specs[1].config.to_dict() == {**specs[0].config.to_dict(), "gate": ORACLE}
