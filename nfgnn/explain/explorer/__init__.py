"""The explorer: one HTML file that shows the nodes of a run, without a server or a network.

``selection.py`` selects the runs and the seed and checks their graph, ``node_table.py`` collects
what is shown as arrays over all nodes, ``layout.py`` places the nodes on the map, ``surprise.py``
finds nodes worth a look, ``sample.py`` chooses the nodes of a large graph that a page can hold, and
``page.py`` packs the arrays into ``template/``, whose scripts draw them.
"""

from nfgnn.explain.explorer.node_table import NodeTable, build_node_table, homophily_bins
from nfgnn.explain.explorer.page import check_page_output, write_explorer
from nfgnn.explain.explorer.selection import RunSelection, select_runs

__all__ = [
    "NodeTable",
    "RunSelection",
    "build_node_table",
    "check_page_output",
    "homophily_bins",
    "select_runs",
    "write_explorer",
]
