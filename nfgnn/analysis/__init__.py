"""Measures of graphs and filters: tensors in, tensors or plain numbers out.

What surrounds a node: ``neighbourhood.py`` counts the classes of i-hop neighbourhoods, ``homophily.py`` and
``entropy.py`` turn the counts into h and S of nodes, and links into measures of whole graphs.
"""

from nfgnn.analysis.entropy import entropy_of_counts, label_entropy
from nfgnn.analysis.homophily import homophily, homophily_of_counts, label_informativeness, local_homophily
from nfgnn.analysis.neighbourhood import class_counts, nested_class_counts

__all__ = [
    "class_counts",
    "entropy_of_counts",
    "homophily",
    "homophily_of_counts",
    "label_entropy",
    "label_informativeness",
    "local_homophily",
    "nested_class_counts",
]
