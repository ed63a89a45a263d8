"""The explorer: one HTML file in which the nodes of a run can be looked at one by one.

``subject.py`` finds the runs and checks their graph, ``rows.py`` collects what there is to see as plain arrays,
``layout.py`` places the nodes, ``sample.py`` chooses the nodes of a large graph that a page can carry, ``page.py``
packs the arrays into ``template/``, whose script draws them. The file needs no server and no network.
"""

from nfgnn.explain.explorer.page import write_page
from nfgnn.explain.explorer.rows import explorer_rows, homophily_bins
from nfgnn.explain.explorer.selection import find_subject

__all__ = ["explorer_rows", "find_subject", "homophily_bins", "write_page"]
