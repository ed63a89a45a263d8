"""A configuration that a search has trained, with its predictions on validation nodes.

The validation nodes are :class:`~nfgnn.auto.bootstrap.ScoredNodes`. The leaderboard, the ensemble
and the value of the graph are computed from these two values.
"""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from nfgnn.training import RunConfig

PORTFOLIO = "portfolio"
"""Origin of configurations that ship with the package."""
SEARCH = "search"
"""Origin of configurations that were found on the graph itself."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration that was trained to the end, on the first splits or on all of them."""

    config: RunConfig
    """Trains the model of the given split again."""
    family: str
    """One of the families of :mod:`nfgnn.auto.result`."""
    origin: str
    """:data:`PORTFOLIO` or :data:`SEARCH`."""
    folders: tuple[Path, ...]
    """The runs on the first splits, as :mod:`nfgnn.auto.candidate_runs` writes them. The given
    split comes first."""
    probabilities: tuple[Tensor, ...]
    """Of the validation nodes of the first splits, ``[n, C]`` each. No model has seen the labels
    of the nodes that it predicts here."""
    seconds: float
    """Of all its runs together."""

    @property
    def folder(self) -> Path:
        """The run on the given split."""
        return self.folders[0]

    @property
    def splits(self) -> int:
        """Number of splits that it was trained on."""
        return len(self.probabilities)
