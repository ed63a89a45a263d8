"""Write small raw files in the layouts in which the data sets are published."""

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import io, sparse

from nfgnn.data import Entry

RNG = np.random.default_rng(0)
Truth = dict[str, int]


def planetoid(entry: Entry, folder: Path) -> Truth:
    """Matrices and the dictionary ``graph`` as pickles, ``test.index`` as text."""
    labelled, train, test, features, classes = 560, 30, 40, 12, entry.classes
    name = entry.title.lower()
    allx = sparse.csr_matrix((RNG.random((labelled, features)) < 0.3).astype(np.float32))
    tx = sparse.csr_matrix((RNG.random((test, features)) < 0.3).astype(np.float32))
    ally, ty = (
        np.eye(classes)[np.arange(labelled) % classes],
        np.eye(classes)[np.arange(test) % classes],
    )
    order = labelled + RNG.permutation(test)
    n = labelled + test
    graph = {
        i: [(i + 1) % n, (i + 1) % n, i] for i in range(n)
    }  # duplicates and self-loops, as in the real files
    parts = {
        "x": allx[:train],
        "tx": tx,
        "allx": allx,
        "y": ally[:train],
        "ty": ty,
        "ally": ally,
        "graph": graph,
    }
    for part, content in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(content, protocol=2))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{i}\n" for i in order))
    return {"nodes": n, "edges": n, "features": features, "classes": classes, "splits": 1}


def gnn_benchmark(entry: Entry, folder: Path) -> Truth:
    """One ``.npz`` with the CSR parts of edges and features."""
    n, features = 30, 9
    adj = sparse.csr_matrix(np.roll(np.eye(n), 1, axis=1))
    attr = sparse.csr_matrix((RNG.random((n, features)) < 0.5).astype(np.float32))
    parts = {
        f"{key}_{part}": getattr(matrix, part)
        for key, matrix in (("adj", adj), ("attr", attr))
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(folder / entry.required[0], labels=np.arange(n) % entry.classes, **parts)
    return {"nodes": n, "edges": n, "features": features, "classes": entry.classes, "splits": 0}


def geom_gcn(entry: Entry, folder: Path) -> Truth:
    """Two tab-separated files with a header, and ten splits."""
    n, features = 25, 6
    rows = ["node_id\tfeature\tlabel"]
    for i in range(n):
        present = RNG.random(features) < 0.5
        present[i % features] = True
        values = np.flatnonzero(present) if entry.name == "actor" else present.astype(int)
        rows.append(f"{i}\t{','.join(map(str, values))}\t{i % entry.classes}")
    (folder / "out1_node_feature_label.txt").write_text("\n".join(rows) + "\n")
    edges = ["node_id\tnode_id"] + [f"{i}\t{(i + 1) % n}" for i in range(n)] + ["3\t3"]
    (folder / "out1_graph_edges.txt").write_text("\n".join(edges) + "\n")
    for file in entry.required[2:]:
        part = RNG.permutation(np.arange(n) % 3)
        masks = {
            f"{key}_mask": (part == i).astype(np.int64)
            for i, key in enumerate(("train", "val", "test"))
        }
        np.savez(folder / file, **masks)
    return {"nodes": n, "edges": n, "features": features, "classes": entry.classes, "splits": 10}


def heterophilous(entry: Entry, folder: Path) -> Truth:
    """One ``.npz``; masks are [splits, nodes]."""
    n, features = 40, 5
    part = RNG.integers(0, 3, (10, n))
    np.savez(
        folder / entry.required[0],
        node_features=RNG.random((n, features)).astype(np.float32),
        node_labels=np.arange(n) % entry.classes,
        edges=np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1),
        **{f"{key}_masks": part == i for i, key in enumerate(("train", "val", "test"))},
    )
    return {"nodes": n, "edges": n, "features": features, "classes": entry.classes, "splits": 10}


def facebook(entry: Entry, folder: Path) -> Truth:
    """``A`` sparse and ``local_info`` [n, 7]; its second column is the gender: 1, 2 or 0."""
    n = 30
    a = sparse.csc_matrix(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    info = np.stack([np.arange(n) % (k + 2) for k in range(7)], axis=1)
    info[:, 1] = np.arange(n) % 3
    io.savemat(folder / entry.required[0], {"A": a, "local_info": info.astype(np.uint16)})
    features = sum(len(np.unique(info[:, k])) for k in (0, 2, 3, 4, 5, 6))
    labelled = np.flatnonzero(info[:, 1])
    return {
        "nodes": n,
        "edges": n,
        "features": features,
        "classes": 2,
        "splits": fixed_splits(entry, folder, labelled),
        "unlabelled": 10,
    }


def linkx(entry: Entry, folder: Path) -> Truth:
    """``edge_index``, ``node_feat`` and ``label`` [1, n], as in genius.mat and pokec.mat."""
    n, features = 30, 4
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    content = {
        "edge_index": edges,
        "node_feat": RNG.random((n, features)),
        "label": (np.arange(n) % 2)[None],
    }
    io.savemat(folder / entry.required[0], content)
    splits = fixed_splits(entry, folder, np.arange(n))
    return {"nodes": n, "edges": n, "features": features, "classes": 2, "splits": splits}


def fixed_splits(entry: Entry, folder: Path, nodes: np.ndarray) -> int:
    """Five dictionaries of node numbers in a pickled array, where the entry has such a file."""
    files = [file for file in entry.urls if file.endswith("-splits.npy")]
    for file in files:
        splits = []
        for _ in range(5):
            train, valid, test = np.array_split(RNG.permutation(nodes), 3)
            splits.append({"train": train, "valid": valid, "test": test})
        np.save(folder / file, np.array(splits, dtype=object), allow_pickle=True)
    return 5 * len(files)


def twitch_gamers(entry: Entry, folder: Path) -> Truth:
    """A CSV of accounts, one of edges, and five splits."""
    n = 30
    rows = [
        "views,mature,life_time,created_at,updated_at,numeric_id,dead_account,language,affiliate"
    ]
    for i in range(n):
        dates = f"2016-02-{1 + i % 28:02d},2018-10-{1 + i % 30:02d}"
        language = ("EN", "DE", "OTHER")[i % 3]
        rows.append(f"{100 * i},{i % 2},{i},{dates},{i},{int(i % 5 == 0)},{language},{int(i > 9)}")
    edges = ["numeric_id_1,numeric_id_2"] + [f"{i},{(i + 1) % n}" for i in range(n)]
    for file, lines in zip(entry.required, (rows, edges)):
        (folder / file).write_text("\n".join(lines) + "\n")
    splits = fixed_splits(entry, folder, np.arange(n))
    return {"nodes": n, "edges": n, "features": 7, "classes": 2, "splits": splits}


def _gzip_csv(path: Path, rows: np.ndarray, text: str = "%d") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, rows, fmt=text, delimiter=",")


def ogb(entry: Entry, folder: Path) -> Truth:
    """Gzipped CSV files without headers."""
    n, features = 50, 4
    raw = folder / "raw"
    _gzip_csv(raw / "edge.csv.gz", np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))
    _gzip_csv(raw / "node-feat.csv.gz", RNG.random((n, features)), "%.6f")
    _gzip_csv(raw / "node-label.csv.gz", np.arange(n)[:, None] % entry.classes)
    _gzip_csv(raw / "num-node-list.csv.gz", np.array([[n]]))
    _gzip_csv(raw / "num-edge-list.csv.gz", np.array([[n]]))
    _splits(entry, folder, np.arange(n))
    return {
        "nodes": n,
        "edges": n,
        "features": features,
        "classes": min(entry.classes, n),
        "splits": 1,
    }


def arxiv_year(entry: Entry, folder: Path) -> Truth:
    """The files of ogbn-arxiv with the years of publication, and five splits."""
    n, features = 50, 4
    raw = folder / "raw"
    _gzip_csv(raw / "edge.csv.gz", np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1))
    _gzip_csv(raw / "node-feat.csv.gz", RNG.random((n, features)), "%.6f")
    _gzip_csv(raw / "node_year.csv.gz", 2000 + np.arange(n)[:, None] % 10)
    splits = fixed_splits(entry, folder, np.arange(n))
    return {"nodes": n, "edges": n, "features": features, "classes": 5, "splits": splits}


def ogb_binary(entry: Entry, folder: Path) -> Truth:
    """papers100M: ``data.npz`` and ``node-label.npz``; most labels are NaN."""
    n, features = 400, 4
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    x = RNG.random((n, features)).astype(np.float32)
    counts = {"num_nodes_list": np.array([n]), "num_edges_list": np.array([n])}
    save = np.savez_compressed if folder.name.endswith("compressed") else np.savez
    save(
        folder / "raw/data.npz",
        edge_index=edges,
        node_feat=x,
        node_year=np.full((n, 1), 2010),
        **counts,
    )
    labels = np.where(np.arange(n) < 200, np.arange(n) % entry.classes, np.nan)[:, None]
    save(folder / "raw/node-label.npz", node_label=labels.astype(np.float32))
    _splits(entry, folder, np.arange(200))
    return {
        "nodes": n,
        "edges": n,
        "features": features,
        "classes": entry.classes,
        "splits": 1,
        "unlabelled": 200,
    }


def _splits(entry: Entry, folder: Path, nodes: np.ndarray) -> None:
    for part, file in enumerate(entry.required[-3:]):
        _gzip_csv(folder / file, nodes[nodes % 3 == part][:, None])


def writer_of(entry: Entry) -> Callable[[Entry, Path], Truth]:
    """Return the function that writes small raw files in the layout of an entry."""
    group = entry.folder.split("/")[0]
    if entry.name == "ogbn-papers100m":
        return ogb_binary
    if entry.name == "arxiv-year":
        return arxiv_year
    if entry.name == "twitch-gamers":
        return twitch_gamers
    if group == "LINKXDataset":
        return linkx if entry.name in ("genius", "pokec") else facebook
    if group in ("WebKB", "Actor", "WikipediaNetwork"):
        return geom_gcn
    if group in ("HeterophilousGraphDataset", "npz"):
        return heterophilous
    if group.startswith("ogbn_"):
        return ogb
    writers = {"Planetoid": planetoid, "Amazon": gnn_benchmark, "Coauthor": gnn_benchmark}
    if group not in writers:
        raise LookupError(
            f"{entry.name} has a layout of its own ({entry.folder}): write its raw files in "
            "tests/helpers/raw_layouts.py, so that the tests can load it without a download"
        )
    return writers[group]
