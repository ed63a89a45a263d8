"""One file per published layout: a folder of raw files in, a graph out, not yet through the gate."""

from nfgnn.data.readers.linkx import read_linkx_mat
from nfgnn.data.readers.npz import read_npz, read_npz_entry
from nfgnn.data.readers.ogb import read_ogb, read_ogb_mapped
from nfgnn.data.readers.pyg import read_pyg

__all__ = [
    "read_linkx_mat",
    "read_npz",
    "read_npz_entry",
    "read_ogb",
    "read_ogb_mapped",
    "read_pyg",
]
