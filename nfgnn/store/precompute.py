"""From a graph to a store, in a budget of memory."""

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import resolve_basis
from nfgnn.store.assemble import assemble
from nfgnn.store.calibrate import calibrate
from nfgnn.store.cluster import Say
from nfgnn.store.engines import ENGINES
from nfgnn.store.features import read_scaling, write_columns
from nfgnn.store.job import Job, block_folder
from nfgnn.store.manifest import DTYPES, FILE, Manifest
from nfgnn.store.memory import resident_bytes, return_freed_memory
from nfgnn.store.operator import write_scale
from nfgnn.store.plan import Plan, Settings, make_plan
from nfgnn.store.source import Report, Source
from nfgnn.store.store import Store
from nfgnn.store.store import write_columns as write_labels

_PARTS = 16  # blocks for a cluster at least, since blocks are what its workers share


def _silent(what: str, done: int, total: int) -> None:
    pass


def plan(source: Source, out: str | Path, settings: Settings, engine: str = "local") -> Plan:
    """How :func:`precompute` would cut the work, and what it would take; nothing is written."""
    _check(settings)
    n = source.num_nodes
    entries = source.num_entries + (n if settings.self_loops else 0)
    base = resident_bytes()  # before calibrating, which needs some for a moment
    kept = len(_kept(source, settings.rows))
    on_device = settings.device == "cuda" or (
        settings.device == "auto" and torch.cuda.is_available()
    )
    free = torch.cuda.mem_get_info()[0] if on_device else 0
    return make_plan(
        n, entries, source.num_features, kept, settings, base=base, speed=calibrate(n, Path(out)), out=Path(out),
        device_memory=free, parts=1 if engine == "local" else _PARTS,
    )  # fmt: skip


def precompute(
    source: Source,
    out: str | Path,
    settings: Settings,
    *,
    engine: str = "local",
    address: str | None = None,
    chosen: Plan | None = None,
    report: Report = _silent,
    say: Say = lambda text: None,
) -> Store:
    r"""Compute the terms :math:`p_k(\tilde L) X` of a graph and write them as a store.

    Stages: the graph in compressed rows, the scaled features in blocks of columns, the terms of every block, the rows
    put together. Each leaves files that are there whole or not at all; the same call after a kill goes on.

    Args:
        source: the graph.
        out: the store's folder.
        settings: what to compute, in how much memory.
        engine: a name of ``ENGINES``.
        address: of a Ray cluster.
        chosen: a plan made before.
        report: told of progress.
        say: told single facts.
    """
    if engine not in ENGINES:
        raise UserError(f"--engine {engine} is not known: choose one of {', '.join(ENGINES)}")
    return_freed_memory()
    folder, mark = Path(out), _fingerprint(source, settings)
    if (folder / FILE).is_file():
        if Manifest.read(folder).fingerprint != mark:
            raise UserError(
                f"{folder} holds a store of another graph or other settings: choose another --out"
            )
        shutil.rmtree(folder / "work", ignore_errors=True)
        return Store.open(folder)
    job = _job(source, folder, settings, mark, chosen, say, engine)
    if not all(block_folder(job.work, block).is_dir() for block in range(job.plan.blocks)):
        room = max(settings.memory - resident_bytes(), settings.memory // 4)
        source.write_pattern(job.graph, int(0.8 * room), settings.self_loops, report)
        write_scale(job.graph)
        write_columns(source, settings.features, job.plan.bounds, job.work, room // 4, report)
        ENGINES[engine](job, report, say, address)
    return _finish(source, job, folder, report)


def _job(
    source: Source,
    folder: Path,
    settings: Settings,
    mark: str,
    chosen: Plan | None,
    say: Say,
    engine: str,
) -> Job:
    """Begin, or go on with what is there."""
    work = folder / "work"
    if (work / "plan.json").is_file():
        job = Job.load(work)
        if job.fingerprint != mark:
            raise UserError(f"{folder} holds unfinished work of another graph or other settings: choose another --out "
                            "or delete it")  # fmt: skip
        say("going on with the unfinished work, as it was planned")
        return job
    if folder.exists() and any(path.name != "work" for path in folder.iterdir()):
        raise UserError(f"{folder} is not empty: choose another --out")
    chosen = chosen or plan(source, folder, settings, engine)
    if chosen.disk_bytes > chosen.free_bytes:
        raise UserError(
            f"{folder}: {chosen.disk_bytes / 1e9:.1f} GB of disk are needed, {chosen.free_bytes / 1e9:.1f} GB are "
            "free: make room, or keep fewer values (--rows labelled, --dtype bfloat16, a smaller --K)"
        )
    work.mkdir(parents=True, exist_ok=True)
    nodes = _kept(source, settings.rows)
    with NpyFile.create(work / "nodes.npy", np.int64, nodes.shape) as file:
        file.write(0, nodes)
        file.finish()
    job = Job(work, settings, chosen, mark)
    job.save()
    return job


def _finish(source: Source, job: Job, folder: Path, report: Report) -> Store:
    shutil.rmtree(job.graph, ignore_errors=True)  # room for the rows
    for path in job.work.glob("x-*.npy"):
        path.unlink()
    nodes, settings, scaling = job.nodes.numpy(), job.settings, read_scaling(job.work)
    masks = {key: mask[nodes] for key, mask in source.masks.items()}
    checksums = {"terms": assemble(job, folder / "terms.npy", report)}
    checksums |= write_labels(folder, nodes, source.y[nodes], masks)
    Manifest(
        dataset=source.name, num_nodes=source.num_nodes, num_rows=len(nodes), num_features=source.num_features,
        num_classes=len(source.class_names), K=settings.K, basis=str(job.basis), self_loops=settings.self_loops,
        lambda_max=settings.lambda_max, features=scaling.how,
        feature_mean=None if scaling.mean is None else scaling.mean.tolist(),
        feature_deviation=None if scaling.deviation is None else scaling.deviation.tolist(), dtype=settings.dtype,
        class_names=source.class_names, metric=source.metric, masks=list(masks), source=source.source,
        fingerprint=job.fingerprint, block_rows=job.block_rows, checksums=checksums,
    ).save(folder)  # fmt: skip
    shutil.rmtree(job.work, ignore_errors=True)
    return Store.open(folder)


def _check(settings: Settings) -> None:
    if settings.rows not in ("labelled", "all"):
        raise UserError(f"--rows {settings.rows} is not known: choose labelled or all")
    if settings.dtype not in DTYPES:
        raise UserError(f"--dtype {settings.dtype} is not known: choose one of {', '.join(DTYPES)}")
    if settings.K < 0:
        raise UserError(
            f"--K is the degree of the polynomials and must not be negative, got {settings.K}"
        )
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: there is no GPU here; use --device cpu")
    try:
        resolve_basis(settings.basis)
    except ValueError as error:
        raise UserError(str(error)) from None


def _kept(source: Source, rows: str) -> np.ndarray:
    nodes = np.arange(source.num_nodes) if rows == "all" else np.flatnonzero(source.y >= 0)
    if not len(nodes):
        raise UserError(
            f"{source.name}: no node has a label, so there is no row to keep; --rows all keeps all nodes"
        )
    return nodes


def _fingerprint(source: Source, settings: Settings) -> str:
    """Of everything that decides the content of a store; not of the memory and the machine."""
    what = {
        key: value for key, value in asdict(settings).items() if key not in ("memory", "device")
    }
    what["basis"] = str(resolve_basis(settings.basis))
    return hashlib.sha256(
        json.dumps([source.fingerprint, what], sort_keys=True).encode()
    ).hexdigest()
