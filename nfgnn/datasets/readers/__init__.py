"""One file per published layout: a folder of raw files in, a graph out, not yet through the gate."""

from nfgnn.datasets.readers.linkx import read_linkx_mat
from nfgnn.datasets.readers.npz import read_npz, read_npz_entry
from nfgnn.datasets.readers.ogb import read_ogb, read_ogb_mapped
from nfgnn.datasets.readers.pyg import read_pyg

__all__ = ["read_linkx_mat", "read_npz", "read_npz_entry", "read_ogb", "read_ogb_mapped", "read_pyg"]
