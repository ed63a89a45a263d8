"""The outcomes of the study of node gates, from hand-made records."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from helpers.node_gate_records import add_report, add_search, fingerprint
from scipy.stats import ttest_rel

from nfgnn.nn import HEAD_GATES
from nfgnn.paper.statistics import holm, paired_overlapping
from nfgnn.paper.studies import node_gate_outcomes
from nfgnn.paper.studies import node_gate_plan as plan
from nfgnn.paper.studies.node_gate_oracle import ORACLE
from nfgnn.paper.studies.node_gate_outcomes import Outcomes, find_outcomes
from nfgnn.paper.studies.node_gate_plan import GRAPHS, StudyGraph
from nfgnn.training import Records

NOISE = (0.001, -0.002, 0.0005, 0.0015, -0.001, 0.002, -0.0005, 0.0, 0.0, -0.0015)
LEVELS = {"none": 0.5, "MLP": 0.4, "oracle": 0.7}


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    monkeypatch.setattr(StudyGraph, "fingerprint", fingerprint)
    # With ties SciPy enumerates all sign patterns, which takes long. It is tested elsewhere.
    monkeypatch.setattr(node_gate_outcomes, "signed_rank", lambda a, b: 1.0)
    monkeypatch.setattr(plan, "LAYERS", (2, 4))
    monkeypatch.setattr(plan, "DRAWS_PER_STRUCTURE", 1)
    monkeypatch.setattr(plan, "SEARCH_SEEDS", range(3))
    with Records(tmp_path / "records.sqlite") as opened:
        yield opened


def outcomes_of(records: Records, gains: Mapping[str, Mapping[str, float]]) -> Outcomes:
    """Return the outcomes if the gates have these gains on these graphs, under all protocols."""
    for name, by_gate in gains.items():
        graph = GRAPHS[name]
        add_search(records, graph, lambda network, draw, seed: 0.5 + (network == "term") * 0.1)

        def test(network: str, seed: int, by_gate: Mapping[str, float] = by_gate) -> float:
            noise = NOISE[seed - 1000]
            if network in LEVELS:
                return LEVELS[network] - noise
            return 0.5 + by_gate.get(network, 0.0) + noise

        for protocol in (graph.protocol, *graph.shifts):
            add_report(records, graph, protocol, test)
    return find_outcomes([GRAPHS[name] for name in gains], records)


def scores(gain: float) -> tuple[list[float], list[float]]:
    return [0.5 + gain + noise for noise in NOISE], [0.5 - noise for noise in NOISE]


def test_the_primary_tests_are_paired_and_corrected_together(records: Records) -> None:
    gains = {
        "texas": {"term": 0.002, "agreement": 0.01},
        "minesweeper": {"term": -0.01, "agreement": 0.001},
    }
    found = outcomes_of(records, gains)
    assert found.missing == []
    primary = [cell for cell in found.cells if cell.is_primary]
    expected = []
    for cell in primary:
        for test in cell.comparisons:
            gain = gains[cell.graph.name].get(test.gate, 0.0)
            result = ttest_rel(*scores(gain))
            assert test.difference == pytest.approx(gain, abs=1e-9)
            assert test.p == pytest.approx(result.pvalue)
            if test.confirmatory:
                expected.append(result.pvalue)
    tests = [test for cell in primary for test in cell.comparisons if test.confirmatory]
    assert len(tests) == 2 * len(plan.CONFIRMATORY)
    assert [test.p_holm for test in tests] == pytest.approx(holm(expected))
    # There are 100 test nodes on average, and 200 training nodes.
    overlapping = [paired_overlapping(*scores(test.difference), 100 / 200) for test in tests]
    assert [test.p_overlapping for test in tests] == pytest.approx(overlapping)
    shifts = [cell for cell in found.cells if cell.is_shift]
    assert len(shifts) == 2
    assert all(test.p_holm is None for cell in shifts for test in cell.comparisons)


@pytest.mark.parametrize(
    ("graphs", "pays"),
    [
        (["texas", "cora"], False),
        (["texas", "cora", "minesweeper"], True),
        (["texas", "chameleon", "chameleon-filtered"], False),
        (["texas", "chameleon", "squirrel-filtered"], True),
        (["texas", "mixed-0", "mixed-10"], False),
    ],
)
def test_a_gain_must_hold_on_three_real_graphs(
    records: Records, graphs: Sequence[str], pays: bool
) -> None:
    found = outcomes_of(records, {name: {"agreement": 0.05} for name in graphs})
    assert found.verdict.pays is pays
    assert found.verdict.gains["term"] == []


def test_losses_weigh_against_gains(records: Records) -> None:
    gains = {name: {"term": 0.05} for name in ("texas", "cora", "minesweeper")}
    losses = {name: {"term": -0.05} for name in ("actor", "photo", "cornell")}
    found = outcomes_of(records, gains | losses)
    assert not found.verdict.pays
    assert found.verdict.losses["term"] == ["actor", "cornell", "photo"]


def test_exploratory_gates_decide_nothing(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HEAD_GATES, "later", HEAD_GATES["term"])
    graphs = ("texas", "cora", "minesweeper")
    found = outcomes_of(records, {name: {"later": 0.05} for name in graphs})
    assert not found.verdict.pays
    tests = [test for cell in found.cells for test in cell.comparisons if test.gate == "later"]
    assert tests
    assert all(test.p_holm is None and not test.confirmatory for test in tests)


def test_the_share_of_the_oracles_gap(records: Records) -> None:
    found = outcomes_of(records, {"mixed-10": {"agreement": 0.05, "term": -0.02}})
    shares = {test.gate: test.oracle_share for test in found.cells[0].comparisons}
    assert shares["agreement"] == pytest.approx(0.25, abs=1e-6)
    assert shares["term"] == pytest.approx(-0.1, abs=1e-6)
    assert found.cells[0].oracle_gap is not None
    assert found.cells[0].oracle_gap["mean"] == pytest.approx(0.2, abs=1e-6)
    assert all(test.p_overlapping is None for test in found.cells[0].comparisons)


def test_there_is_no_share_of_a_gap_within_its_noise(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(LEVELS, ORACLE)
    found = outcomes_of(records, {"mixed-30": {"agreement": 0.05, ORACLE: 0.001}})
    assert [test.oracle_share for test in found.cells[0].comparisons] == [None] * 4


def test_same_settings_compare_the_paired_draws(records: Records) -> None:
    found = outcomes_of(records, {"texas": {}})
    same = {test.gate: test.same_settings for test in found.cells[0].comparisons}
    assert same["term"]["mean"] == pytest.approx(0.1)
    assert same["agreement"]["mean"] == pytest.approx(0.0)
    assert len(same["term"]["values"]) == 2


def test_the_last_seed_of_an_interrupted_report_is_left_out(
    records: Records, tmp_path: Path
) -> None:
    outcomes_of(records, {"mixed-30": {"term": 0.05}})
    with Records(tmp_path / "interrupted.sqlite") as interrupted:
        # The last seed was only trained without a gate.
        last = plan.REPORT_SEEDS[-1]
        kept = [
            run for run in records.all() if run.seed != last or run.config.get("gate") == plan.NONE
        ]
        interrupted.add(kept)
        found = find_outcomes([GRAPHS["mixed-30"]], interrupted)
    assert found.missing == ["mixed, 30 % crossing, full: 9 report seeds"]
    [cell] = found.cells
    assert {len(network.seeds) for network in cell.networks.values()} == {9}
    assert set(cell.networks) == {*plan.networks(), ORACLE}


def test_incomplete_graphs_are_not_tested(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = plan.REPORT_SEEDS
    monkeypatch.setattr(plan, "REPORT_SEEDS", seeds[:9])
    outcomes_of(records, {"texas": {"term": 0.05}})
    monkeypatch.setattr(plan, "REPORT_SEEDS", seeds)
    found = find_outcomes([GRAPHS["texas"], GRAPHS["cora"]], records)
    assert found.missing == [
        "Texas, full: 9 report seeds",
        f"Cora: no complete search of {', '.join(plan.networks())}",
    ]
    assert [test.p_holm for test in found.cells[0].comparisons] == [None] * 4


def test_a_gate_without_all_runs_is_left_out(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks = plan.networks(["term"])
    with monkeypatch.context() as patch:
        patch.setattr(plan, "networks", lambda: networks)
        outcomes_of(records, {"texas": {"term": 0.05}})
    found = find_outcomes([GRAPHS["texas"]], records)
    assert [test.gate for test in found.cells[0].comparisons] == ["term"]
    assert found.missing == ["Texas: no complete search of agreement, attention, cluster"]
    assert found.verdict.gains["term"] == ["texas"]


def test_intervals_with_few_nodes_are_left_out(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcomes_of(records, {"texas": {}})
    network = found.cells[0].networks["term"]
    reference = found.cells[0].networks["MLP"]
    assert network.interval_nodes == (200,) * 5
    assert network.worst_interval == 0.5
    assert network.relative_to(reference, 0)["mean"] == 0.0
    monkeypatch.setattr(node_gate_outcomes, "LEAST_NODES", 201)
    assert network.worst_interval is None
    assert network.relative_to(reference, 0) is None
