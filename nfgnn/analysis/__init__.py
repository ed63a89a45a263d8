"""Measures of graphs and filters: tensors in, tensors or plain numbers out.

What surrounds a node: ``neighbourhood.py`` counts the classes of i-hop neighbourhoods without an n × n matrix;
``homophily.py`` and ``entropy.py`` turn the counts into h and S of nodes, and links into measures of whole graphs;
``spread.py`` says how much of the variety is more than chance. ``propositions.py`` has what one hop implies for two.

The graph without labels: ``structure.py`` (degrees, components), ``spectrum.py`` (all eigenvalues, or their density),
``smoothness.py`` (frequency of the features), ``translation.py`` (kernels centred at a node).

Learned filters: ``responses.py`` (their curves), ``jaccard.py`` (are filters of similar neighbourhoods similar?),
``intervals.py`` (accuracy by local homophily).
"""

from nfgnn.analysis.entropy import entropy_of_counts, label_entropy
from nfgnn.analysis.homophily import (
    homophily,
    homophily_of_counts,
    label_informativeness,
    local_homophily,
)
from nfgnn.analysis.intervals import accuracy_by_homophily
from nfgnn.analysis.jaccard import JACCARD_INTERVALS, distance_by_jaccard
from nfgnn.analysis.neighbourhood import class_counts, nested_class_counts
from nfgnn.analysis.propositions import preference_threshold, same_class_probability
from nfgnn.analysis.responses import centre_frequency, filter_subsets, frequency_response
from nfgnn.analysis.smoothness import feature_frequency
from nfgnn.analysis.spectrum import Spectrum, eigenvalues, spectral_density, spectrum
from nfgnn.analysis.spread import homophily_spread
from nfgnn.analysis.structure import degree_histogram, structure
from nfgnn.analysis.translation import energy_by_hop, hop_distance, translate

__all__ = [
    "JACCARD_INTERVALS",
    "Spectrum",
    "accuracy_by_homophily",
    "centre_frequency",
    "class_counts",
    "degree_histogram",
    "distance_by_jaccard",
    "eigenvalues",
    "energy_by_hop",
    "entropy_of_counts",
    "feature_frequency",
    "filter_subsets",
    "frequency_response",
    "homophily",
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
