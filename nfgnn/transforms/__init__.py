"""From a checked graph to one that can be trained on: :func:`split` and :class:`FeatureScaling`."""

from nfgnn.transforms.features import SCALINGS, FeatureScaling
from nfgnn.transforms.split import PROTOCOLS, observed_part, split

__all__ = ["PROTOCOLS", "SCALINGS", "FeatureScaling", "observed_part", "split"]
