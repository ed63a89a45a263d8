"""Scale the features and write them in column blocks: the first term of every block."""

import json
import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch

from nfgnn.data import FeatureScaling
from nfgnn.npyfile import NpyFile
from nfgnn.store.file_format import as_list, make_scaling, write_json
from nfgnn.store.source import MemorySource, Report, Source
from nfgnn.store.workspace import Workspace

_SCALING = "scaling.json"
_BYTES_PER_VALUE = 40  # while a block of rows is scaled
_FITTED_VALUES = 2**20  # added up at a time; constant, because rounding depends on it


def write_feature_blocks(source: Source, workspace: Workspace, memory: int, report: Report) -> None:
    """Write one file ``[num_nodes, width]`` per column block, then the scaling.

    Nothing is done if the files of all missing blocks exist.

    Args:
        source: the graph.
        workspace: where the files are written.
        memory: bytes of memory to use.
        report: receives progress.
    """
    scaling_file = workspace.folder / _SCALING
    missing = [b for b in workspace.missing_blocks() if not workspace.features_file(b).is_file()]
    if scaling_file.is_file() and not missing:
        return
    scaling_file.unlink(missing_ok=True)
    rows = max(1, memory // (_BYTES_PER_VALUE * source.num_features))
    scaling = _fit_scaling(source, workspace.settings.features, report)
    done = 0
    for chunk in _scaled_rows(source, scaling, rows):
        for block, (first, last) in enumerate(pairwise(workspace.plan.bounds)):
            shape = (source.num_nodes, last - first)
            with NpyFile.create(workspace.features_file(block), np.float32, shape) as file:
                file.write(done, chunk[:, first:last])
        done += len(chunk)
        report("scaling the features", done, source.num_nodes)
    for block in range(workspace.plan.blocks):
        with NpyFile.open(workspace.features_file(block)) as file:
            file.sync()
    content = {
        "how": scaling.how,
        "mean": as_list(scaling.mean),
        "deviation": as_list(scaling.deviation),
    }
    write_json(scaling_file, content)


def read_scaling(workspace: Workspace) -> FeatureScaling:
    """Return the scaling that :func:`write_feature_blocks` has fitted."""
    content = json.loads((workspace.folder / _SCALING).read_text(encoding="utf-8"))
    return make_scaling(content["how"], content["mean"], content["deviation"])


def _fit_scaling(source: Source, how: str, report: Report) -> FeatureScaling:
    """Do what :meth:`FeatureScaling.fit` does; for features in blocks with sums in float64.

    A store is computed before any split is known. ``auto`` therefore looks at all nodes, and only
    chooses between ``row`` and ``standard``.
    """
    if isinstance(source, MemorySource):
        if how == "auto":
            how = _choose_scaling(source)
        return FeatureScaling.fit(source.data.x, how)
    if how not in ("auto", "standard"):
        return FeatureScaling.fit(torch.zeros(1, 1), how)
    # Importing scikit-learn takes a second, which other users of this package need not wait.
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    nonzeros = 0
    negative = False
    done = 0
    for block in source.features(max(1, _FITTED_VALUES // source.num_features)):
        scaler.partial_fit(block)
        nonzeros += int(np.count_nonzero(block))
        negative |= bool((block < 0).any())
        done += len(block)
        report("scanning the features", done, source.num_nodes)
    if how == "auto" and _is_sparse(nonzeros, source) and not negative:
        return FeatureScaling("row")
    mean = torch.from_numpy(scaler.mean_).float()
    deviation = torch.from_numpy(np.sqrt(scaler.var_)).float()
    return FeatureScaling("standard", mean, torch.where(deviation > 0, deviation, 1.0))


def _choose_scaling(source: MemorySource) -> str:
    x = source.data.x
    values = x if x.layout == torch.strided else x.values()
    nonzeros = int(torch.count_nonzero(values))
    if _is_sparse(nonzeros, source) and not bool((values < 0).any()):
        return "row"
    return "standard"


def _is_sparse(nonzeros: int, source: Source) -> bool:
    return nonzeros <= 0.5 * source.num_nodes * source.num_features


def _scaled_rows(source: Source, scaling: FeatureScaling, rows: int) -> Iterator[np.ndarray]:
    """Yield blocks of the rows that :meth:`FeatureScaling.apply` gives for the whole matrix."""
    for block in source.features(rows):
        x = torch.from_numpy(block)
        if source.sparse_features and scaling.how != "standard":
            # Scaled as a sparse matrix, so that values are rounded as in training.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # CSR tensors are in beta
                x = x.to_sparse_csr()
        yield scaling.apply(x).to_dense().numpy()
