"""The oracle of the study of node gates."""

import torch

from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE, OracleHeadGate, OracleSpec
from nfgnn.training import Graph, RecordResults, RunSpec

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
    gates = [part for part in oracle.model_.modules() if isinstance(part, OracleHeadGate)]
    assert len(gates) == 2
    for gate in gates:
        torch.nn.init.normal_(gate.weight)
        found = gate([], None)  # type: ignore[arg-type]
        assert torch.equal(found, gate.weight[data.pattern])
        assert found.shape == (60, 3, 2)


def test_runs_of_the_oracle_are_records_of_their_own() -> None:
    specs = [run(), OracleSpec.of(run())]
    keys = {RecordResults(None)._key(spec) for spec in specs}
    assert len(keys) == 2
    assert specs[1].config.to_dict() == {**specs[0].config.to_dict(), "gate": ORACLE}
