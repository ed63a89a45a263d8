"""Filters as layers: :class:`NFConv`, a filter for every node, and :class:`PolyConv`, one for the whole graph."""

from nfgnn.nn.conv.gates import GATES, Gate
from nfgnn.nn.conv.nf_conv import NFConv
from nfgnn.nn.conv.poly_conv import PolyConv

__all__ = ["GATES", "Gate", "NFConv", "PolyConv"]
