"""Results as pages and pictures.

- ``analyze.py`` measures a graph and writes a report (``nfgnn analyze``); ``analyze_text.py`` has
  the sentences of the report and ``analyze_page.py`` its HTML.
- ``auto_text.py`` has the sentences about a search for the best model (``nfgnn auto``), and
  ``auto_page.py`` its HTML.
- :mod:`nfgnn.explain.explorer` writes an interactive page about a run (``nfgnn explore``).
- ``run_figure.py`` draws the learning curves and filters of a run (``nfgnn train``),
  ``report_figure.py`` its confusion matrix and reliability diagram.
- :mod:`nfgnn.explain.figures.degrees`, :mod:`nfgnn.explain.figures.homophily_histograms` and
  :mod:`nfgnn.explain.figures.spectrum` draw figures of single graphs.
- ``figure_style.py`` and ``page_style.py`` have the common style of figures and of HTML reports.
"""

from nfgnn.explain.analyze import analyze_graph, check_analysis_output, write_analysis
from nfgnn.explain.auto_page import search_page
from nfgnn.explain.auto_text import USES, describe_auto, shown_limits
from nfgnn.explain.explorer import (
    build_node_table,
    check_page_output,
    select_runs,
    write_explorer,
)
from nfgnn.explain.figure_style import (
    COLOURS,
    FADED,
    FEW_NODES,
    FORMATS,
    INK,
    MUTED,
    canvas,
    clip_errors,
    headline,
    inline_svg,
    panels,
    percent,
    save,
    signed,
    title,
)
from nfgnn.explain.report_figure import write_report_figure
from nfgnn.explain.run_figure import write_run_figure

__all__ = [
    "COLOURS",
    "FADED",
    "FEW_NODES",
    "FORMATS",
    "INK",
    "MUTED",
    "USES",
    "analyze_graph",
    "build_node_table",
    "canvas",
    "check_analysis_output",
    "check_page_output",
    "clip_errors",
    "describe_auto",
    "headline",
    "inline_svg",
    "panels",
    "percent",
    "save",
    "search_page",
    "select_runs",
    "shown_limits",
    "signed",
    "title",
    "write_analysis",
    "write_explorer",
    "write_report_figure",
    "write_run_figure",
]
