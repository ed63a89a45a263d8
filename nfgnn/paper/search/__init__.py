"""Searches for hyper-parameters.

- :mod:`~nfgnn.paper.search.tune`: choose the settings of a model for one graph (``nfgnn tune``);
  :mod:`~nfgnn.training.search_spaces` holds the grids.
- :mod:`~nfgnn.paper.search.preset_search`: search the shipped presets (``nfgnn tune --presets``);
  :mod:`~nfgnn.paper.search.rounds` defines what is tried, :mod:`~nfgnn.paper.search.results` keeps
  the results, :mod:`~nfgnn.paper.search.preset_files` writes the winners.
- :mod:`~nfgnn.paper.search.modern`: the search on recent benchmarks;
  :mod:`~nfgnn.paper.search.modern_draws` defines what is tried,
  :mod:`~nfgnn.paper.search.modern_files` writes records and winners.
- :mod:`~nfgnn.paper.search.portfolio_report`: choose the portfolio of ``nfgnn auto``;
  :mod:`~nfgnn.paper.search.portfolio_candidates` defines what is tried,
  :mod:`~nfgnn.paper.search.portfolio_runs` trains it,
  :mod:`~nfgnn.paper.search.portfolio_selection` chooses.
- :mod:`~nfgnn.paper.search.engine`: what they share.
"""

from nfgnn.paper.search.modern import run_modern_search, run_modern_table
from nfgnn.paper.search.portfolio_report import write_portfolio_report
from nfgnn.paper.search.preset_search import run_preset_search
from nfgnn.paper.search.tune import (
    Outcome,
    Search,
    check_preset_output,
    preset_table,
    run_search,
    write_preset,
)

__all__ = [
    "Outcome",
    "Search",
    "check_preset_output",
    "preset_table",
    "run_modern_search",
    "run_modern_table",
    "run_preset_search",
    "run_search",
    "write_portfolio_report",
    "write_preset",
]
