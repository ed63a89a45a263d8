"""What a search hands over: trained configurations with their predictions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nfgnn.auto.validation import ValidationSplits
from nfgnn.training import Metric, RunConfig

PORTFOLIO = "portfolio"
"""Origin of configurations that ship with the package."""
SEARCH = "search"
"""Origin of configurations that were found on the graph itself."""


@dataclass(frozen=True)
class Candidate:
    """A configuration that was trained on the first splits, or on all of them."""

    name: str
    """Unique, such as ``GCN 2``."""
    config: RunConfig
    """Trains the model of the given split again."""
    family: str
    """Whether it uses features, links or both: see :mod:`nfgnn.auto.result`."""
    origin: str
    """:data:`PORTFOLIO` or :data:`SEARCH`."""
    folders: tuple[Path, ...]
    """Folder of the run on every split, as :mod:`nfgnn.auto.candidate_runs` writes them. The first
    one is the run on the given split, whose model can be deployed."""
    probabilities: tuple[Tensor, ...]
    """Class probabilities of the validation nodes of every split, ``[n, C]`` each."""
    score: float
    """Mean over the splits of the metric on validation nodes."""
    seconds: float
    """Of all its runs together."""

    @property
    def splits(self) -> int:
        """Number of splits that it was trained on."""
        return len(self.folders)

    def all_probabilities(self) -> Tensor:
        """Return the probabilities of all nodes by the model of the given split."""
        return torch.from_numpy(np.load(self.folders[0] / "probabilities.npy"))


@dataclass(frozen=True)
class SearchOutcome:
    """The result of a search."""

    candidates: tuple[Candidate, ...]
    """The best first. Those that were trained on all splits come before the others."""
    splits: ValidationSplits
    """What they were trained on. ``splits.scored`` has the validation nodes and their labels."""
    metric: Metric
    runs: int
    """Number of trainings."""
    seconds_to_first: float
    """Until the first configuration was trained to the end."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as models that were left out."""
