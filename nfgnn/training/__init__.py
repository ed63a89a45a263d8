"""From a graph and a configuration to a fitted model.

:func:`fit` is one run; :class:`NodeClassifier` puts scikit-learn's words around it; :func:`run_experiment` does many
seeds of one :class:`Experiment` into a run folder.
"""

from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.config import RunConfig, TrainingConfig
from nfgnn.training.fit import fit
from nfgnn.training.history import History
from nfgnn.training.runs import Experiment, load_run, read_summary, run_experiment

__all__ = [
    "Experiment",
    "History",
    "NodeClassifier",
    "RunConfig",
    "TrainingConfig",
    "fit",
    "load_run",
    "read_summary",
    "run_experiment",
]
