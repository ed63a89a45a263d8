"""One file per published layout: a folder of raw files in, a graph out, not yet through the gate."""

from nfgnn.data.readers.matlab import read_facebook, read_linkx
from nfgnn.data.readers.npz import read_gnn_benchmark, read_npz, read_npz_entry
from nfgnn.data.readers.ogb import read_ogb, read_ogb_mapped
from nfgnn.data.readers.planetoid import read_planetoid
from nfgnn.data.readers.pyg import read_pyg

__all__ = [
    "read_facebook",
    "read_gnn_benchmark",
    "read_linkx",
    "read_npz",
    "read_npz_entry",
    "read_ogb",
    "read_ogb_mapped",
    "read_planetoid",
    "read_pyg",
]
