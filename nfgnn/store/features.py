"""The scaled features, cut into blocks of columns on disk: the first terms, each block for itself."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from nfgnn.data import FeatureScaling
from nfgnn.npyfile import NpyFile
from nfgnn.store.job import block_folder, column_file
from nfgnn.store.manifest import write_json
from nfgnn.store.source import MemorySource, Report, Source, dense_rows


def write_columns(
    source: Source, how: str, bounds: list[int], work: Path, memory: int, report: Report
) -> None:
    """Scale the features and write one file ``[n, width]`` per block of columns; ``scaling.json`` last."""
    todo = [block for block in range(len(bounds) - 1) if not block_folder(work, block).is_dir()]
    if (work / "scaling.json").is_file() and all(
        column_file(work, block).is_file() for block in todo
    ):
        return
    (work / "scaling.json").unlink(missing_ok=True)
    rows = max(1, memory // (40 * source.num_features))
    scaling = _fit(source, how, rows, report)
    done = 0
    for chunk in _scaled(source, scaling, rows):
        for block, (first, last) in enumerate(pairwise(bounds)):
            with NpyFile.create(
                column_file(work, block), np.float32, (source.num_nodes, last - first)
            ) as file:
                file.write(done, chunk[:, first:last])
        done += len(chunk)
        report("scaling the features", done, source.num_nodes)
    for block in range(len(bounds) - 1):
        with NpyFile.open(column_file(work, block)) as file:
            file.sync()
    write_json(
        work / "scaling.json",
        {
            "how": scaling.how,
            "mean": None if scaling.mean is None else scaling.mean.tolist(),
            "deviation": None if scaling.deviation is None else scaling.deviation.tolist(),
        },
    )


def read_scaling(work: Path) -> FeatureScaling:
    """The scaling that :func:`write_columns` has fitted."""
    content = json.loads((work / "scaling.json").read_text(encoding="utf-8"))
    mean, deviation = (
        None if content[k] is None else torch.tensor(content[k]) for k in ("mean", "deviation")
    )
    return FeatureScaling(content["how"], mean, deviation)


def _fit(source: Source, how: str, rows: int, report: Report) -> FeatureScaling:
    """:meth:`FeatureScaling.fit`; of features that come in blocks, with sums in float64."""
    if isinstance(source, MemorySource):
        return FeatureScaling.fit(source.data.x, how)
    if how not in ("auto", "standard"):
        return FeatureScaling.fit(torch.zeros(1, 1), how)
    scaler, stored, negative, done = StandardScaler(), 0, False, 0
    for block in source.features(rows):
        scaler.partial_fit(block)
        stored += int(np.count_nonzero(block))
        negative |= bool((block < 0).any())
        done += len(block)
        report("looking at the features", done, source.num_nodes)
    if how == "auto" and not negative and stored <= 0.5 * source.num_nodes * source.num_features:
        return FeatureScaling("row")
    mean, deviation = (torch.from_numpy(v).float() for v in (scaler.mean_, np.sqrt(scaler.var_)))
    return FeatureScaling("standard", mean, torch.where(deviation > 0, deviation, 1.0))


def _scaled(source: Source, scaling: FeatureScaling, rows: int) -> Iterator[np.ndarray]:
    """Blocks of scaled rows, as :meth:`FeatureScaling.apply` gives them for the whole matrix."""
    if (
        isinstance(source, MemorySource)
        and source.data.x.layout != torch.strided
        and scaling.how != "standard"
    ):
        yield from dense_rows(
            scaling.apply(source.data.x), rows
        )  # scaled as a sparse matrix, as in training
        return
    for block in source.features(rows):
        yield scaling.apply(torch.from_numpy(block)).numpy()
