"""`nfgnn precompute`: from a graph to a store, within a memory budget."""

import hashlib
import json
import re
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from nfgnn.data import check_feature_names
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import empty, locked, publish, refuse_foreign_files
from nfgnn.npyfile import NpyFile
from nfgnn.object_store import is_remote
from nfgnn.ray_cluster import Say
from nfgnn.spectral import resolve_basis
from nfgnn.store.agreement_rows import write_agreement
from nfgnn.store.assemble_rows import assemble_rows, open_writer
from nfgnn.store.degree_rows import write_degree
from nfgnn.store.disk_laplacian import DiskLaplacian
from nfgnn.store.executors import BlockExecutor, make_executor
from nfgnn.store.feature_blocks import read_scaling, write_feature_blocks
from nfgnn.store.file_format import DTYPES
from nfgnn.store.machine_speed import measure_speed
from nfgnn.store.manifest import FILE, WORK, Manifest
from nfgnn.store.memory_budget import remaining_memory, resident_bytes, return_freed_memory
from nfgnn.store.plan import Plan, Settings, make_plan
from nfgnn.store.remote import Upload, local_folder
from nfgnn.store.sketch_rows import write_sketch
from nfgnn.store.source import MASKS, Report, Source
from nfgnn.store.store import Store
from nfgnn.store.stored_graph import GRAPH_FILES
from nfgnn.store.stored_ids import ID_FILES, id_arrays
from nfgnn.store.two_hop_rows import write_two_hop
from nfgnn.store.workspace import Workspace

_SORT_SHARE = 0.8  # of the remaining memory, for sorting the edges
_SCALING_SHARE = 0.25  # the same for scaling the features
_ARRAYS = ("terms", "sketch", "two_hop", "degree", "agreement", "nodes", "y")
_STORE_NAMES = re.compile(
    rf"{WORK}|({'|'.join((*_ARRAYS, *MASKS, *GRAPH_FILES, *ID_FILES))})\.npy"
    rf"|{re.escape(FILE)}"
    rf"|\.{re.escape(FILE)}\.[0-9a-f]{{16}}\.partial"
)


def _no_report(stage: str, done: int, total: int) -> None:
    pass


def _no_output(line: str) -> None:
    pass


def precompute(
    source: Source,
    out: str | Path,
    settings: Settings,
    *,
    engine: str = "local",
    address: str | None = None,
    chosen: Plan | None = None,
    report: Report = _no_report,
    say: Say = _no_output,
    overwrite: bool = False,
) -> Store:
    r"""Compute the terms :math:`p_k(\tilde L) X` of a graph and write them as a store.

    The stages are: sort the edges into a CSR matrix, compute the parts of the stored rows besides
    the terms, scale the features and divide their columns into blocks, compute the terms of every
    block, assemble rows. Every stage writes its files atomically, so the same call resumes the work
    after an interruption. A store of the same graph with the same settings is left as it is.

    Args:
        source: the graph.
        out: folder of the store, or its URL. A remote store is computed in the cache folder and
            uploaded when it is complete.
        settings: what to compute, and the memory for it.
        engine: where blocks are computed, ``"local"`` or ``"ray"``.
        address: address of a Ray cluster.
        chosen: a plan from :func:`plan_precompute`; by default one is made.
        report: receives progress.
        say: receives single lines for the user.
        overwrite: replace a store, or unfinished work, of another graph or with other settings. A
            store is replaced when the new one is complete.
    """
    if is_remote(out):
        return _precompute_remote(
            source, out, settings, engine, address, chosen, report, say, overwrite
        )
    _validate(source, settings)
    executor = make_executor(engine, address, say)
    return_freed_memory()
    folder = Path(out)
    existed = folder.exists()
    fingerprint = _fingerprint(source, settings)
    try:
        with locked(folder, _busy(folder)):
            job = _Job(source, settings, executor, engine, chosen, report, say, fingerprint)
            if _replaces_store(folder, fingerprint, overwrite):
                return _replace_store(job, folder)
            return _precompute(job, folder, overwrite)
    finally:
        if not existed:
            # Fails if there is work to resume, which is the usual case.
            with suppress(OSError):
                folder.rmdir()


def _precompute_remote(
    source: Source,
    url: str,
    settings: Settings,
    engine: str,
    address: str | None,
    chosen: Plan | None,
    report: Report,
    say: Say,
    overwrite: bool,
) -> Store:
    """Compute a store in the cache folder, and upload it."""
    _validate(source, settings)
    upload = Upload.to(url)
    fingerprint = _fingerprint(source, settings)
    with locked(upload.staging, _busy(url)):
        if not upload.is_complete(fingerprint, overwrite, _is_store_name):
            if not upload.has_computed(fingerprint):
                # Work on another store in this folder was abandoned.
                precompute(
                    source,
                    upload.folder,
                    settings,
                    engine=engine,
                    address=address,
                    chosen=chosen,
                    report=report,
                    say=say,
                    overwrite=True,
                )
            upload.run(report)
    return Store.open(url)


@dataclass(frozen=True)
class _Job:
    """The arguments of :func:`precompute`, without the folder."""

    source: Source
    settings: Settings
    executor: BlockExecutor
    engine: str
    chosen: Plan | None
    report: Report
    say: Say
    fingerprint: str


def _precompute(job: _Job, folder: Path, overwrite: bool) -> Store:
    """Compute a store, or return the one that is there, in a locked folder."""
    source = job.source
    settings = job.settings
    if (folder / FILE).is_file():
        _refuse_other_work(folder)
        shutil.rmtree(folder / WORK, ignore_errors=True)
        return Store.open(folder)
    workspace = _resume(folder, job.fingerprint, overwrite)
    if workspace is None:
        chosen = job.chosen or plan_precompute(source, folder, settings, job.engine)
        workspace = _start(source, folder, settings, chosen, job.fingerprint)
    else:
        job.say("resuming unfinished work with its original plan")
    if workspace.missing_blocks():
        memory = remaining_memory(settings.memory)
        source.write_pattern(
            workspace.graph, int(_SORT_SHARE * memory), settings.self_loops, job.report
        )
        DiskLaplacian(workspace.graph).write_scale()
        write_sketch(workspace, job.report)
        write_two_hop(workspace, job.report)
        write_degree(workspace, job.report)
        if workspace.plan.cut == "streamed":
            DiskLaplacian(workspace.graph, workspace.plan.stream_entries).write_values()
        write_feature_blocks(source, workspace, int(_SCALING_SHARE * memory), job.report)
        write_agreement(workspace, job.report)
        job.executor.run(workspace, job.report)
    return _finish(source, workspace, folder, job.report)


def _replaces_store(folder: Path, fingerprint: str, overwrite: bool) -> bool:
    """Whether a folder holds a store that is to be computed again."""
    if not (folder / FILE).is_file():
        return False
    # A damaged manifest can only be overwritten.
    if not overwrite and Manifest.read(folder).fingerprint == fingerprint:
        return False
    refuse_replacement(folder, "a store", ours=True, overwrite=overwrite)
    _refuse_other_files(folder)
    _refuse_other_work(folder)
    return True


def _replace_store(job: _Job, folder: Path) -> Store:
    """Compute a store beside the one that is there, and exchange them when it is complete."""
    staging = folder.with_name(f".{folder.name}.partial")
    _refuse_other_files(staging)
    with locked(staging, _busy(folder)):
        if (staging / FILE).is_file():
            usable = Manifest.read(staging).fingerprint == job.fingerprint
        else:
            # Without work to resume, it is the rest of an old store that could not be deleted.
            usable = (staging / WORK).is_dir()
        if not usable:
            empty(staging)
        _precompute(job, staging, overwrite=True)
        publish(staging, folder)
    return Store.open(folder)


def _busy(folder: Path | str) -> str:
    return f"another process is writing {folder}: wait until it finishes, or choose another --out"


def plan_precompute(
    source: Source, out: str | Path, settings: Settings, engine: str = "local"
) -> Plan:
    """Return how :func:`precompute` would divide the work and what it would cost.

    Nothing is written.
    """
    _validate(source, settings)
    folder = local_folder(out)
    held = resident_bytes()  # measuring the speed needs some memory for a moment
    on_gpu = settings.device == "cuda"
    if settings.device == "auto":
        on_gpu = torch.cuda.is_available()
    return make_plan(
        source.num_nodes,
        source.num_entries + (source.num_nodes if settings.self_loops else 0),
        source.num_features,
        len(_stored_nodes(source, settings.rows)),
        settings,
        base=held,
        speed=measure_speed(source.num_nodes, folder),
        out=folder,
        device_memory=torch.cuda.mem_get_info()[0] if on_gpu else 0,
        parts=make_executor(engine, None, _no_output).target_blocks,
        weighted=source.weighted,
    )


def _resume(folder: Path, fingerprint: str, overwrite: bool) -> Workspace | None:
    """Return the workspace of an interrupted call, if there is one."""
    work = folder / WORK
    if not Workspace.plan_file(work).is_file():
        return None
    _refuse_other_work(folder)
    if overwrite and not _is_work_of(work, fingerprint):
        _refuse_other_files(folder)
        empty(folder)
        return None
    workspace = Workspace.load(work)
    if workspace.fingerprint != fingerprint:
        raise UserError(
            f"{folder} contains unfinished work on another graph or with other settings: choose "
            "another --out, or delete it with --overwrite"
        )
    return workspace


def _is_work_of(work: Path, fingerprint: str) -> bool:
    """Whether unfinished work can be resumed."""
    try:
        return Workspace.load(work).fingerprint == fingerprint
    except UserError:  # damaged
        return False


def _start(
    source: Source, folder: Path, settings: Settings, plan: Plan, fingerprint: str
) -> Workspace:
    """Create a workspace."""
    if folder.exists() and any(path.name != WORK for path in folder.iterdir()):
        refuse_replacement(folder, "a store", ours=False)
    _refuse_other_work(folder)
    if plan.disk_bytes > plan.free_bytes:
        raise UserError(
            f"{folder}: {plan.disk_bytes / 1e9:.1f} GB of disk space is needed, but only "
            f"{plan.free_bytes / 1e9:.1f} GB are free. Free some space, or store fewer values "
            "(--rows labelled, --dtype bfloat16, a smaller --K)"
        )
    workspace = Workspace(folder / WORK, settings, plan, fingerprint)
    nodes = _stored_nodes(source, settings.rows)
    with NpyFile.create(workspace.nodes_file, np.int64, nodes.shape) as file:
        file.write(0, nodes)
        file.finish()
    workspace.save()
    return workspace


def _refuse_other_files(folder: Path) -> None:
    """Refuse to replace a folder with files that are not part of a store."""
    refuse_foreign_files(folder, _is_store_name, "a store")


def _is_store_name(name: str) -> bool:
    """Whether a store, or an unfinished one, contains a file or folder of this name."""
    return bool(_STORE_NAMES.fullmatch(name))


def _refuse_other_work(folder: Path) -> None:
    """Refuse to use a folder ``work`` that holds files of others: it is deleted in the end."""
    refuse_foreign_files(folder / WORK, Workspace.has_name, "the workspace of a store")


def _finish(source: Source, workspace: Workspace, folder: Path, report: Report) -> Store:
    """Assemble the rows, complete the store and delete the workspace."""
    settings = workspace.settings
    if settings.serve:
        _keep_graph(workspace.graph, folder)
    # The graph and the features are not needed any more; the rows need the space.
    shutil.rmtree(workspace.graph, ignore_errors=True)
    for block in range(workspace.plan.blocks):
        workspace.features_file(block).unlink(missing_ok=True)
    nodes = workspace.nodes.numpy()
    ids = None if source.node_ids is None else id_arrays(np.asarray(source.node_ids)[nodes], nodes)
    with open_writer(workspace, folder) as writer:
        assemble_rows(workspace, writer, report)
        for name in settings.parts.columns:
            _keep_part(workspace.part_file(name), folder)
        store = writer.finish(
            nodes,
            source.y[nodes],
            {name: mask[nodes] for name, mask in source.masks.items()},
            ids=ids or {},
            graph=settings.serve,
            num_nodes=source.num_nodes,
            scaling=read_scaling(workspace),
            class_names=source.class_names,
            basis=str(workspace.basis),
            self_loops=settings.self_loops,
            lambda_max=settings.lambda_max,
            dataset=source.name,
            registered_name=source.registered_name,
            metric=source.metric,
            source=source.source,
            fingerprint=workspace.fingerprint,
            feature_names=source.feature_names or None,
            feature_encoding=source.feature_encoding,
            parts=settings.parts,
        )
    shutil.rmtree(workspace.folder, ignore_errors=True)
    return store


def _keep_graph(graph: Path, folder: Path) -> None:
    """Move the files of the graph into the store; an interrupted call may have moved some."""
    for name in GRAPH_FILES:
        file = graph / f"{name}.npy"
        if file.is_file():
            file.replace(folder / file.name)


def _keep_part(file: Path, folder: Path) -> None:
    """Move a part of the rows into the store; an interrupted call may have moved it."""
    if file.is_file():
        file.replace(folder / file.name)


def _validate(source: Source, settings: Settings) -> None:
    check_feature_names(source.feature_names, source.num_features, source.name)
    if settings.serve and settings.rows != "all":
        raise UserError("--serve needs the terms of all nodes: use it with --rows all")
    if settings.rows not in ("labelled", "all"):
        raise UserError(f"unknown --rows {settings.rows}: choose labelled or all")
    if settings.dtype not in DTYPES:
        raise UserError(f"unknown --dtype {settings.dtype}: choose one of {', '.join(DTYPES)}")
    if settings.sketch < 0:
        raise UserError(
            f"--sketch is a number of columns and must be at least 0, got {settings.sketch}"
        )
    if settings.two_hop < 0:
        raise UserError(
            f"--two-hop is a number of columns and must be at least 0, got {settings.two_hop}"
        )
    if settings.K < 0:
        raise UserError(f"--K is a polynomial degree and must be at least 0, got {settings.K}")
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no GPU is available; use --device cpu")
    try:
        resolve_basis(settings.basis)
    except ValueError as error:
        raise UserError(str(error)) from None


def _stored_nodes(source: Source, rows: str) -> np.ndarray:
    """Return the nodes whose rows are stored."""
    if rows == "all":
        nodes = np.arange(source.num_nodes)
    else:
        nodes = np.flatnonzero(source.y >= 0)
    if len(nodes) == 0:
        raise UserError(
            f"{source.name}: no node has a label, so no rows would be stored; "
            "use --rows all to store all nodes"
        )
    return nodes


def _fingerprint(source: Source, settings: Settings) -> str:
    """Return a hash of everything that determines the content of a store."""
    content = asdict(settings)
    content["basis"] = str(resolve_basis(settings.basis))
    # Memory and device determine how the work is done, not its result.
    del content["memory"]
    del content["device"]
    # Stores of older versions know none of them.
    for name in ("serve", "sketch", "two_hop", "degree", "agreement"):
        if not content[name]:
            del content[name]
    text = json.dumps([source.fingerprint, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
