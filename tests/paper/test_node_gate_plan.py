"""The plan of the study of node gates."""

import itertools
from pathlib import Path

import pytest

from nfgnn.data import PROTOCOLS, REGISTRY
from nfgnn.errors import UserError
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_plan import GRAPHS

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "node-gates.md"


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_draws_of_all_networks_differ_in_the_gate_only(graph: plan.StudyGraph) -> None:
    drawn = [settings for structure in plan.draws(graph) for settings in structure]
    assert len({str(settings) for settings in drawn}) == 12
    assert drawn == [settings for structure in plan.draws(graph) for settings in structure]
    for settings in drawn:
        without = plan.config(plan.NONE, settings).to_dict()
        for gate in plan.gates():
            assert plan.config(gate, settings).to_dict() == {**without, "gate": gate}
        mlp = plan.config(plan.MLP, settings).to_dict()
        assert all(mlp[name] == settings[name] for name in plan.NUMBERS)


def test_every_structure_is_a_valid_network() -> None:
    choices = itertools.product(plan.STRUCTURES["hidden_channels"], plan.STRUCTURES["heads"])
    [settings], *_ = [drawn[:1] for drawn in plan.draws(GRAPHS["texas"])]
    for (width, heads), network in itertools.product(choices, plan.networks()):
        chosen = {**settings, "hidden_channels": width, "heads": heads}
        plan.config(network, chosen).build(3, 2, 5)


def test_graphs_and_protocols_exist() -> None:
    for graph in GRAPHS.values():
        assert graph.dataset == "mixed" or graph.dataset in REGISTRY
        assert {graph.protocol, *graph.shifts} <= PROTOCOLS.keys()
    assert GRAPHS["minesweeper"].metric == "roc_auc"
    assert GRAPHS["mixed-30"].graph(7, None).options == (("seed", 7), ("crossing", 0.3))


def test_graphs_are_found_by_name_and_data_set() -> None:
    assert plan.find_graphs(None) == list(GRAPHS.values())
    names = [graph.name for graph in plan.find_graphs(["texas", "mixed", "mixed-10"])]
    assert names == ["texas", "mixed-0", "mixed-10", "mixed-30"]
    with pytest.raises(UserError, match="unknown graph of the study of node gates 'karate'"):
        plan.find_graphs(["karate"])


def _plain(number: float) -> str:
    """Return a number without an exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".") if number else "0"


def test_the_page_states_the_same_plan() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    drawn = {**plan.STRUCTURES, **plan.NUMBERS}
    for name, given in drawn.items():
        shown = ", ".join(f"`{v}`" if isinstance(v, str) else _plain(v) for v in given)
        assert f"| `{name}` | {shown} |" in page
    assert f"each of {', '.join(map(str, plan.LAYERS[:-1]))} and {plan.LAYERS[-1]} layers" in page
    epochs, patience = plan.TRAINING["epochs"], plan.TRAINING["patience"]
    assert f"at most {epochs} epochs with a patience of {patience}" in page
    seeds = plan.REPORT_SEEDS
    assert f"seeds {seeds[0]} to {seeds[-1]}" in page


def test_only_generated_graphs_are_shortened() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    shortened = [graph for graph in GRAPHS.values() if graph.shortened]
    assert {graph.name for graph in shortened} == {"mixed-0", "mixed-10"}
    for graph in GRAPHS.values():
        few = graph.shortened
        assert graph.search_seeds == (plan.FEW_SEEDS if few else plan.SEARCH_SEEDS)
        assert graph.report_seeds == (range(1000, 1005) if few else plan.REPORT_SEEDS)
    assert "the search seeds 0 to 2 alone select among the draws" in page
    assert "only the report seeds 1000 to 1004 are run" in page
