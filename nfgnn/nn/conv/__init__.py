"""Spectral layers.

:class:`NFConv` has a filter for every node and :class:`PolyConv` one for the whole graph.
:class:`SpectralConv` also mixes channels.
"""

from nfgnn.nn.conv.nf_conv import NFConv
from nfgnn.nn.conv.poly_conv import PolyConv
from nfgnn.nn.conv.polynomial_filter import PolynomialFilter
from nfgnn.nn.conv.spectral_conv import OPERATORS, SpectralConv

__all__ = ["OPERATORS", "NFConv", "PolyConv", "PolynomialFilter", "SpectralConv"]
