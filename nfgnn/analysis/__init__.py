"""Measures of graphs and filters: tensors in, tensors or plain numbers out.

``homophily.py`` has the homophily of nodes and graphs and the label informativeness.
"""

from nfgnn.analysis.homophily import homophily, label_informativeness, local_homophily

__all__ = ["homophily", "label_informativeness", "local_homophily"]
