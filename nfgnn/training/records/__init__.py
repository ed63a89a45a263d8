"""Results of runs: records in a database or in files, and run folders.

:class:`RecordResults` and :class:`RunFolder` are the two places that
:func:`nfgnn.training.execution.execute` writes to; :class:`InMemory` keeps fitted models.
"""

from nfgnn.training.records.database import RecordResults, Records
from nfgnn.training.records.export import export_records, has_records, merge_records, open_records
from nfgnn.training.records.in_memory import InMemory
from nfgnn.training.records.read_run_folder import (
    best_seed,
    load_run,
    read_description,
    read_report,
    read_summary,
    verify_run,
)
from nfgnn.training.records.record import RESULTS_VERSION, Record, run_key
from nfgnn.training.records.run_folder import RunFolder
from nfgnn.training.records.run_folder_layout import holds_run_folder

__all__ = [
    "RESULTS_VERSION",
    "InMemory",
    "Record",
    "RecordResults",
    "Records",
    "RunFolder",
    "best_seed",
    "export_records",
    "has_records",
    "holds_run_folder",
    "load_run",
    "merge_records",
    "open_records",
    "read_description",
    "read_report",
    "read_summary",
    "run_key",
    "verify_run",
]
