"""Measures of graphs and filters: pure functions from tensors to tensors or plain numbers.

Neighbourhoods and labels:

- :mod:`nfgnn.analysis.neighbourhood`: class counts in the i-hop neighbourhoods of all nodes.
- :mod:`nfgnn.analysis.homophily`: homophily and label entropy of nodes and of whole graphs.
- :mod:`nfgnn.analysis.homophily_spread`: how much homophily varies beyond chance.
- :mod:`nfgnn.analysis.propositions`: what homophily at one hop implies for two hops.
- :mod:`nfgnn.analysis.baselines`: what features alone and edges alone predict.

Graphs without labels:

- :mod:`nfgnn.analysis.structure`: degrees, components, bipartiteness.
- :mod:`nfgnn.analysis.spectrum`: eigenvalues or their density, and the frequency of features.
- :mod:`nfgnn.analysis.translation`: kernels centred at a node.

Learned filters:

- :mod:`nfgnn.analysis.responses`: frequency responses.
- :mod:`nfgnn.analysis.jaccard`: whether nodes with similar neighbourhoods have similar filters.
"""

from nfgnn.analysis.baselines import Baselines, cross_validate_baselines
from nfgnn.analysis.homophily import (
    accuracy_by_homophily,
    entropy_of_counts,
    homophily,
    homophily_by_chance,
    homophily_interval,
    homophily_of_counts,
    label_entropy,
    label_informativeness,
    local_homophily,
)
from nfgnn.analysis.homophily_spread import homophily_spread
from nfgnn.analysis.jaccard import JACCARD_INTERVALS, distance_by_jaccard
from nfgnn.analysis.neighbourhood import adjacency_matrix, class_counts, nested_class_counts
from nfgnn.analysis.propositions import preference_threshold, same_class_probability
from nfgnn.analysis.responses import centre_frequency, filter_subsets, frequency_response
from nfgnn.analysis.spectrum import (
    Spectrum,
    eigenvalues,
    feature_frequency,
    spectral_density,
    spectrum,
)
from nfgnn.analysis.structure import degree_histogram, structure
from nfgnn.analysis.translation import energy_by_hop, hop_distance, translate

__all__ = [
    "JACCARD_INTERVALS",
    "Baselines",
    "Spectrum",
    "accuracy_by_homophily",
    "adjacency_matrix",
    "centre_frequency",
    "class_counts",
    "cross_validate_baselines",
    "degree_histogram",
    "distance_by_jaccard",
    "eigenvalues",
    "energy_by_hop",
    "entropy_of_counts",
    "feature_frequency",
    "filter_subsets",
    "frequency_response",
    "homophily",
    "homophily_by_chance",
    "homophily_interval",
    "homophily_of_counts",
    "homophily_spread",
    "hop_distance",
    "label_entropy",
    "label_informativeness",
    "local_homophily",
    "nested_class_counts",
    "preference_threshold",
    "same_class_probability",
    "spectral_density",
    "spectrum",
    "structure",
    "translate",
]
