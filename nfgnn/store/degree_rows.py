"""The logarithms of the degrees as a part of stored rows: ``degree.npy``."""

from nfgnn.spectral import log_degree
from nfgnn.store.part_files import is_missing, stored_lists, write_part
from nfgnn.store.source import Report
from nfgnn.store.workspace import Workspace


def write_degree(workspace: Workspace, report: Report) -> None:
    """Write log(1 + number of neighbours) of the stored rows, unless it exists or is not wanted."""
    if is_missing(workspace, "degree"):
        lists = stored_lists(workspace, "counting neighbours", report)
        write_part(workspace, "degree", (log_degree(some)[:, None] for some in lists))
