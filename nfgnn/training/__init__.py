"""From a graph and a configuration to a fitted model.

:func:`fit` is one run on a graph, :func:`fit_rows` one on rows of terms that were computed before;
:class:`NodeClassifier` puts scikit-learn's words around both; :func:`run_experiment` does many seeds of one
:class:`Experiment` into a run folder, :func:`~nfgnn.training.distributed_runs.run_in_processes` with several processes.
"""

from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.config import RunConfig, TrainingConfig
from nfgnn.training.fit import fit
from nfgnn.training.history import History
from nfgnn.training.minibatch import fit_rows
from nfgnn.training.predictions import prediction_table, write_table
from nfgnn.training.run_folder import Experiment, load_run, read_summary, run_experiment

__all__ = [
    "Experiment",
    "History",
    "NodeClassifier",
    "RunConfig",
    "TrainingConfig",
    "fit",
    "fit_rows",
    "load_run",
    "prediction_table",
    "read_summary",
    "run_experiment",
    "write_table",
]
