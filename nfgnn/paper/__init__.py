"""Everything that belongs to the paper and not to the library. Only the command line imports it.

- Tables: :mod:`~nfgnn.paper.table_registry` lists them, :mod:`~nfgnn.paper.table_plan` narrows one
  to what the user asked for, :mod:`~nfgnn.paper.reproduce` makes the runs that are missing,
  :mod:`~nfgnn.paper.table_cells` computes the contents (with :mod:`~nfgnn.paper.statistics`), and
  :mod:`~nfgnn.paper.table_writer` writes Markdown, CSV and LaTeX.
- Figures: one module each in :mod:`nfgnn.paper.figures`, on graphs and models of
  :mod:`~nfgnn.paper.trained_models`; :mod:`~nfgnn.paper.figure_writer` writes the files.
- Searches: :mod:`nfgnn.paper.search` has ``nfgnn tune`` and the search of the shipped presets.
- Studies: :mod:`nfgnn.paper.studies.mixed_patterns`, which also runs as ``python -m``, so it is not
  imported here; and the study of node gates, with a plan, runs, outcomes and a report
  (:mod:`nfgnn.paper.studies.node_gate_report`).

All of them train through :func:`nfgnn.training.execute`.
"""

from nfgnn.paper.figure_writer import write_figures
from nfgnn.paper.reproduce import collect, run_missing
from nfgnn.paper.search import (
    Search,
    check_preset_output,
    preset_table,
    run_preset_search,
    run_search,
    write_preset,
)
from nfgnn.paper.search.rounds import SEARCH
from nfgnn.paper.table_cells import make_tables
from nfgnn.paper.table_plan import FIRST_REPORT_SEED, make_plan
from nfgnn.paper.table_registry import TABLES
from nfgnn.paper.table_writer import check_table_files, markdown, write_tables

__all__ = [
    "FIRST_REPORT_SEED",
    "SEARCH",
    "TABLES",
    "Search",
    "check_preset_output",
    "check_table_files",
    "collect",
    "make_plan",
    "make_tables",
    "markdown",
    "preset_table",
    "run_missing",
    "run_preset_search",
    "run_search",
    "write_figures",
    "write_preset",
    "write_tables",
]
