"""Valid inputs in every format. Two sets with equal names hold two graphs of the same shape."""

import contextlib
import hashlib
import io
import os
import shutil
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from nfgnn import NodeClassifier, split
from nfgnn.cli import app
from nfgnn.data import REGISTRY, export_graph, load_dataset
from nfgnn.data.synthetic import mixed_graph
from nfgnn.paper.search.results import Result, SearchResults
from nfgnn.training import export_records, open_records

from ..helpers.raw_layouts import writer_of

SETS = ("one", "two")
RAW = (
    "cora",
    "photo",
    "texas",
    "actor",
    "minesweeper",
    "chameleon-filtered",
    "reed98",
    "genius",
    "twitch-gamers",
    "ogbn-arxiv",
    "arxiv-year",
    "ogbn-papers100m",
)
"""One registered data set for each layout of raw files."""
FAST = ("--set", "epochs=2", "--set", "K=2", "--set", "hidden_channels=4")


def write_samples(folder: Path, only: str = "") -> None:
    """Write both sets, or the part of them that the targets of serving need."""
    # Recorded times would make the files, and with them the cases, differ between campaigns.
    ticks = count()
    time.perf_counter = lambda: float(next(ticks))
    for seed, name in enumerate(SETS):
        place = folder / name
        place.mkdir(parents=True)
        os.chdir(place)
        if only.startswith("served"):
            data = mixed_graph(60, 3, degree=4, num_features=5, seed=seed)
            _write_graphs(place, data)
            _write_new_nodes(place / "new-nodes", data)
            _write_served_store(place)
        else:
            _write_set(place, seed)


def published_hashes(folder: Path) -> dict[str, tuple[str, int]]:
    """Return hash and size of the raw files of a set, by their path below the data root."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            hashes[str(path.relative_to(folder))] = (digest, len(content))
    return hashes


def _write_set(place: Path, seed: int) -> None:
    data = mixed_graph(60, 3, degree=4, num_features=5, seed=seed)
    _write_graphs(place, data)
    _write_new_nodes(place / "new-nodes", data)
    for name in RAW:
        entry = REGISTRY[name]
        raw = place / "raw" / entry.folder
        raw.mkdir(parents=True, exist_ok=True)
        writer_of(entry)(entry, raw)
    graph = str(place / "csv" / "graph")
    _run("train", graph, "--runs", "2", *FAST, "--out", "run/run", "--json")
    _write_search_folder(place, graph)
    rows = ("--rows", "all", "--sketch", "3")
    _run("precompute", graph, "--K", "2", *rows, "--out", "store/store", "--json")
    _run("train", "store/store", "--runs", "1", *FAST[:2], "--out", "store-run/run", "--json")
    tune = ("tune", graph, "--trials", "1", "--seeds", "0", "--set", "epochs=2", "--model", "MLP")
    _run(*tune, "--storage", "database/runs.sqlite", "--out", "preset/mlp.toml")
    with open_records(place / "database" / "runs.sqlite") as records:
        (place / "records").mkdir()
        for ending in ("parquet", "csv", "json"):
            export_records(records, place / "records" / f"runs.{ending}")
    (place / "results").mkdir()
    shutil.copyfile(place / "database" / "runs.sqlite", place / "results" / "records.sqlite")
    shutil.copyfile(place / "records" / "runs.parquet", place / "results" / "records.parquet")
    _write_model(place, data)
    _write_search_results(place / "search" / "search.parquet")
    _write_served_store(place)
    _write_foreign_files(place)


def _write_search_folder(place: Path, graph: str) -> None:
    """Write the result of a search among two models, both of which are in the ensemble."""
    (place / "auto").mkdir()
    portfolio = place / "auto" / "portfolio.toml"
    models = ("MLP", "GCN")
    tables = [f'[[configuration]]\nmodel = "{m}"\nepochs = 2\nhidden_channels = 4' for m in models]
    portfolio.write_text("\n".join(tables))
    budget = ("--max-runs", "10", "--workers", "1", "--portfolio", str(portfolio))
    _run("auto", graph, *budget, "--out", "auto/auto", "--json")


def _write_graphs(place: Path, data: Data) -> None:
    for file_format in ("csv", "parquet"):
        export_graph(data, place / file_format / "graph", file_format)
    for table in (place / "csv" / "graph").iterdir():
        target = place / "tsv" / "graph" / f"{table.stem}.tsv"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(table.read_text().replace(",", "\t"))
    for folder in ("npz", "npz-csr", "pt", "safetensors"):
        (place / folder).mkdir()
    export_graph(data, place / "npz" / "graph.npz", "npz")
    csr = data.x.to_sparse_csr()
    edges = data.edge_index.t().contiguous().numpy()
    parts = {
        "attr_data": csr.values().numpy(),
        "attr_indices": csr.col_indices().numpy(),
        "attr_indptr": csr.crow_indices().numpy(),
        "attr_shape": np.array(data.x.shape),
    }
    np.savez(place / "npz-csr" / "graph.npz", edges=edges, labels=data.y.numpy(), **parts)
    tensors = {"x": data.x, "edge_index": data.edge_index, "y": data.y}
    torch.save(tensors, place / "pt" / "graph.pt")
    save_file(tensors, place / "safetensors" / "graph.safetensors")


def _write_new_nodes(folder: Path, data: Data) -> None:
    """Write two nodes with edges to the graph and to each other."""
    folder.mkdir(parents=True)
    names = ",".join(f"x{i}" for i in range(data.num_features))
    rows = [f"new{i}," + ",".join("0.5" for _ in range(data.num_features)) for i in range(2)]
    (folder / "nodes.csv").write_text("\n".join([f"id,{names}", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target,weight\nnew0,1,1\nnew0,new1,2\nnew1,5,0.5\n")


def _write_served_store(place: Path) -> None:
    """Write a store with a weighted graph and text ids, a run on it, and new nodes."""
    graph = place / "named" / "graph"
    graph.mkdir(parents=True)
    nodes = (place / "csv" / "graph" / "nodes.csv").read_text().splitlines()
    edges = (place / "csv" / "graph" / "edges.csv").read_text().splitlines()
    named = [f"é{line}" for line in nodes[1:]]
    (graph / "nodes.csv").write_text("\n".join([nodes[0], *named]) + "\n")
    ends = [line.split(",")[:2] for line in edges[1:]]
    rows = [f"é{a},é{b},{1 + i % 3}" for i, (a, b) in enumerate(ends)]
    (graph / "edges.csv").write_text("\n".join(["source,target,weight", *rows]) + "\n")
    _run("precompute", str(graph), "--K", "2", "--serve", "--out", "served/store", "--json")
    _run("train", "served/store", "--runs", "1", *FAST[:2], "--out", "served-run/run", "--json")
    added = place / "named-nodes"
    shutil.copytree(place / "new-nodes", added)
    table = (added / "edges.csv").read_text().replace(",1,", ",é1,").replace(",5,", ",é5,")
    (added / "edges.csv").write_text(table)


def _write_model(place: Path, data: Data) -> None:
    data = split(load_dataset(data), protocol="full", seed=0)
    settings: dict[str, Any] = {"epochs": 2, "K": 2, "hidden_channels": 4}
    NodeClassifier("NFGNN", device="cpu", **settings).fit(data).save(place / "model" / "model")


def _write_foreign_files(place: Path) -> None:
    """Write folders that a command must not replace: each holds a file of the user."""
    shutil.copytree(place / "run" / "run", place / "foreign" / "run")
    shutil.copytree(place / "store" / "store", place / "foreign" / "store")
    shutil.copytree(place / "model" / "model", place / "foreign" / "model")
    for name, marker in (("empty", None), ("config", "config.json"), ("manifest", "manifest.json")):
        (place / "foreign" / name).mkdir()
        if marker:
            (place / "foreign" / name / marker).write_text("{}")
    for folder in (place / "foreign").iterdir():
        (folder / "thesis.txt").write_text("years of work")
    (place / "foreign" / "run" / "seed-0" / "notes.txt").write_text("more work")


def _write_search_results(path: Path) -> None:
    path.parent.mkdir()
    config = {"model": "MLP", "lr": 0.01}
    results = [Result("texas", "full", "MLP", 1, config, [0.5, 0.6], [0.5, 0.6], [3, 4])]
    SearchResults(path).add(results)


def _run(*arguments: str) -> None:
    """Run a command in this process; it must succeed."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as log,
    ):
        try:
            app(list(arguments))
        except SystemExit as end:
            if end.code:
                print(log.getvalue(), file=sys.__stderr__)
                raise RuntimeError(f"nfgnn {' '.join(arguments)}: status {end.code}") from None
