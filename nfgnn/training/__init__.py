"""From a run specification to a result.

:class:`NodeClassifier` fits one model in the style of scikit-learn. A :class:`RunSpec` (graph,
protocol, seed, configuration) is a run as a value; :func:`execute` turns many of them into results,
with an executor (in process, process pool, Ray) and a place for the results (run folder, database
of records, memory). :func:`run_experiment` does so for several seeds of one configuration.

Below that, :mod:`~nfgnn.training.trainer` has the epoch loop, with one trainer each for whole
graphs, parts of a graph, batched runs and mini-batches of rows. Hyper-parameters come from
:mod:`nfgnn.training.presets`, grids of them are in :mod:`nfgnn.training.search_spaces`, and metrics
are values of :mod:`nfgnn.training.metrics`.
"""

from nfgnn.training.class_report import (
    count_predictions,
    never_predicted_warning,
    report_per_class,
)
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.config import RunConfig, TrainingConfig
from nfgnn.training.criterion import Criterion
from nfgnn.training.device import device_name, machine_name, resolve_device, usable_cores
from nfgnn.training.distributed import process_group
from nfgnn.training.execution import Executor, Results, batch_size, execute, raise_first
from nfgnn.training.executors import (
    InProcess,
    ProcessPool,
    RayTasks,
    TimeLimit,
    UntilDeadline,
    WorkerPool,
)
from nfgnn.training.executors.ray_train import train_on_ray
from nfgnn.training.experiment import Experiment, run_experiment
from nfgnn.training.history import History
from nfgnn.training.inputs import (
    align_features,
    check_model,
    check_num_features,
    fingerprint,
    is_row_model,
    resolve_config,
    store_of,
)
from nfgnn.training.mask_split import MaskSplit, single_graph
from nfgnn.training.masks import MASKS, with_boolean_masks
from nfgnn.training.metrics import (
    METRICS,
    Metric,
    accuracy,
    find_metric,
    resolve_metric,
    scores,
    summarise,
)
from nfgnn.training.minibatch import fit_rows
from nfgnn.training.predict_new_nodes import predict_new_nodes
from nfgnn.training.predictions import (
    check_table_output,
    prediction_table,
    split_of_run,
    write_table,
)
from nfgnn.training.records import (
    InMemory,
    Record,
    RecordResults,
    Records,
    RunFolder,
    best_seed,
    export_records,
    has_records,
    holds_run_folder,
    load_run,
    merge_records,
    open_records,
    read_description,
    read_report,
    read_summary,
    verify_run,
)
from nfgnn.training.run import (
    NUMERIC_SETTINGS,
    Failure,
    Graph,
    RunResult,
    RunSpec,
    fit_together,
    same_cost,
)
from nfgnn.training.scoring import Predictor, score_nodes
from nfgnn.training.settings import SETTINGS, check_setting
from nfgnn.training.sklearn_tags import classifier_tags
from nfgnn.training.split_check import checked_split, class_counts, class_names, majority_scores
from nfgnn.training.stopping import should_stop
from nfgnn.training.trainer import StopTraining
from nfgnn.training.whole_graph import fit

__all__ = [
    "MASKS",
    "METRICS",
    "NUMERIC_SETTINGS",
    "SETTINGS",
    "Criterion",
    "Executor",
    "Experiment",
    "Failure",
    "Graph",
    "History",
    "InMemory",
    "InProcess",
    "MaskSplit",
    "Metric",
    "NodeClassifier",
    "Predictor",
    "ProcessPool",
    "RayTasks",
    "Record",
    "RecordResults",
    "Records",
    "Results",
    "RunConfig",
    "RunFolder",
    "RunResult",
    "RunSpec",
    "StopTraining",
    "TimeLimit",
    "TrainingConfig",
    "UntilDeadline",
    "WorkerPool",
    "accuracy",
    "align_features",
    "batch_size",
    "best_seed",
    "check_model",
    "check_num_features",
    "check_setting",
    "check_table_output",
    "checked_split",
    "class_counts",
    "class_names",
    "classifier_tags",
    "count_predictions",
    "device_name",
    "execute",
    "export_records",
    "find_metric",
    "fingerprint",
    "fit",
    "fit_rows",
    "fit_together",
    "has_records",
    "holds_run_folder",
    "is_row_model",
    "load_run",
    "machine_name",
    "majority_scores",
    "merge_records",
    "never_predicted_warning",
    "open_records",
    "predict_new_nodes",
    "prediction_table",
    "process_group",
    "raise_first",
    "read_description",
    "read_report",
    "read_summary",
    "report_per_class",
    "resolve_config",
    "resolve_device",
    "resolve_metric",
    "run_experiment",
    "same_cost",
    "score_nodes",
    "scores",
    "should_stop",
    "single_graph",
    "split_of_run",
    "store_of",
    "summarise",
    "train_on_ray",
    "usable_cores",
    "verify_run",
    "with_boolean_masks",
    "write_table",
]
