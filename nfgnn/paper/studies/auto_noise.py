"""Whether ``nfgnn auto`` is honest about graphs in which labels, edges or features are noise.

All graphs are generated, so the right answer is known. Homophily of 1/3 says nothing about the
three classes; from there it rises in steps, at which the answer must not change back and forth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch_geometric.data import Data

from nfgnn.auto import AutoResult, run_auto
from nfgnn.data import check_graph, mixed_graph
from nfgnn.progress import Progress
from nfgnn.training import Graph

CLASSES = 3
NODES = 1000
HELP = "help"
UNCERTAIN = "not certain"
NO_HELP = "do not help"
NOTHING = "nothing can be learned"


@dataclass(frozen=True)
class NoiseCase:
    """A kind of graph and what should be reported.

    Args:
        name: what is noise.
        homophily: share of edges within a class; a third is chance.
        signal: strength of the features; 0 is noise.
        shuffled: whether the labels are permuted.
        edges: what should be reported about the edges; ``None`` if several answers are right.
        features: the same about the features.
    """

    name: str
    homophily: float
    signal: float
    shuffled: bool = False
    edges: str | None = None
    features: str | None = None

    def graph(self, seed: int, num_nodes: int = NODES) -> Data:
        """Return a graph with its own edges, features and labels for every seed."""
        data = mixed_graph(
            num_nodes,
            CLASSES,
            num_features=16,
            signal=self.signal,
            shares=(1.0, 0.0, 0.0),
            homophily=(self.homophily, 0.0),
            seed=seed,
        )
        y = data.y
        if self.shuffled:
            y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]
        # Without the name of the generated graph, nothing can be known about it.
        return check_graph(Data(x=data.x, edge_index=data.edge_index, y=y, name="noise"))


STRONG = 0.5
"""Signal of features that are informative, but leave something to learn from the edges."""
CASES = (
    NoiseCase("shuffled labels", 0.8, STRONG, True, NOTHING, NOTHING),
    NoiseCase("useless edges", 1 / CLASSES, STRONG, edges=NO_HELP, features=HELP),
    NoiseCase("useless features", 0.8, 0.0, edges=HELP, features=NO_HELP),
    NoiseCase("edges and features help", 0.6, STRONG, edges=HELP, features=HELP),
)
LEVELS = tuple(NoiseCase(f"homophily {h:.2f}", h, STRONG, features=HELP) for h in (0.37, 0.42, 0.5))


@dataclass(frozen=True)
class NoiseOutcome:
    """What was reported about one graph."""

    case: NoiseCase
    seed: int
    edges: str
    features: str
    score: float
    """Of the best model on validation nodes."""
    majority: float
    test: float
    """Of the prediction on test nodes."""
    test_majority: float

    @property
    def is_right(self) -> bool:
        pairs = ((self.edges, self.case.edges), (self.features, self.case.features))
        return all(right is None or _agrees(said, right) for said, right in pairs)


def _agrees(said: str, right: str) -> bool:
    """Whether a sentence is right. Where there is nothing to find, doubt is right, too."""
    return said == right or (right != HELP and said == UNCERTAIN)


def run_noise(
    cases: Sequence[NoiseCase],
    seeds: Sequence[int],
    max_runs: int,
    num_nodes: int = NODES,
    portfolio: Path | None = None,
) -> Iterator[NoiseOutcome]:
    """Search every graph with a number of runs, and yield the reported results.

    Args:
        cases: kinds of graphs.
        seeds: of the graphs, and of their searches.
        max_runs: number of trainings of a search.
        num_nodes: size of the graphs.
        portfolio: what is trained first, if not the portfolio that ships.
    """
    for case in cases:
        for seed in seeds:
            result = run_auto(
                Graph.of(case.graph(seed, num_nodes)),
                "stratified",
                seed,
                time=None,
                max_runs=max_runs,
                metric=None,
                device="cpu",
                workers=1,
                folder=None,
                source=None,
                portfolio=portfolio,
                single=False,
                resume=False,
                overwrite=False,
                progress=Progress(quiet=True),
            )
            yield _outcome(case, seed, result)


def _outcome(case: NoiseCase, seed: int, result: AutoResult) -> NoiseOutcome:
    test = result.ensemble_test or result.test
    assert test is not None
    return NoiseOutcome(
        case,
        seed,
        answer(result.value.sentences, "edges"),
        answer(result.value.sentences, "features"),
        result.best.validation.value,
        result.majority["val_accuracy"],
        test.value,
        result.majority["test_accuracy"],
    )


def answer(sentences: Sequence[str], what: str) -> str:
    """Return what a report says about the edges or the features."""
    if NOTHING in sentences[0].lower():
        return NOTHING
    if not sentences[0].startswith("The best model"):
        return UNCERTAIN
    for sentence in sentences:
        claim = sentence.partition(":")[0]
        if claim == f"The {what} help":
            return HELP
        if claim.startswith(f"The {what} seem to help"):
            return UNCERTAIN
        if claim.endswith((f"not certain that the {what} help", f"tell whether the {what} help")):
            return UNCERTAIN
        if claim.endswith(f"he {what} do not help"):
            return NO_HELP
    return "not known"


def markdown(outcomes: Sequence[NoiseOutcome], command: str, machine: str) -> str:
    """Return a table with a line per kind of graph."""
    lines = [
        "# `nfgnn auto` on noise",
        "",
        f"`{command}`, {machine}. Graphs of {NODES:,} nodes and {CLASSES} classes; a homophily of "
        "1/3 is chance.",
        "Answers of the report by graph, one per seed. Scores: accuracy in percent, mean over "
        "the seeds.",
        "",
        "| graph | the edges | the features | validation | majority | test | majority | right |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for case in dict.fromkeys(outcome.case for outcome in outcomes):
        found = [outcome for outcome in outcomes if outcome.case == case]
        cells = [_counted([outcome.edges for outcome in found])]
        cells.append(_counted([outcome.features for outcome in found]))
        for values in (
            [outcome.score for outcome in found],
            [outcome.majority for outcome in found],
            [outcome.test for outcome in found],
            [outcome.test_majority for outcome in found],
        ):
            cells.append(f"{100 * sum(values) / len(values):.1f}")
        right = sum(outcome.is_right for outcome in found)
        cells.append(f"{right} of {len(found)}")
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    right = sum(outcome.is_right for outcome in outcomes)
    lines += ["", f"{right} of {len(outcomes)} reports are right."]
    for case in contradictions(outcomes):
        lines.append(f"Reports contradict each other: {case.name}.")
    return "\n".join(lines) + "\n"


def contradictions(outcomes: Sequence[NoiseOutcome]) -> list[NoiseCase]:
    """Return the kinds of graphs about which one report claims what another one denies."""
    found = []
    for case in dict.fromkeys(outcome.case for outcome in outcomes):
        for answers in (
            {outcome.edges for outcome in outcomes if outcome.case == case},
            {outcome.features for outcome in outcomes if outcome.case == case},
        ):
            if {HELP, NO_HELP} <= answers and case not in found:
                found.append(case)
    return found


def _counted(answers: Sequence[str]) -> str:
    return ", ".join(f"{said} ×{answers.count(said)}" for said in dict.fromkeys(answers))
