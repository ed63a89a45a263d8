"""The table of names: one entry per dataset, and nothing else to touch for a new one.

Edges are undirected, without self-loops and duplicates, where we have measured them (``measured``); for the
others sizes and licences are as noted from the publications, not checked, and edges may count both directions.
"""

from pathlib import Path
from typing import Any

from nfgnn.data.entry import Entry
from nfgnn.data.readers import (
    read_facebook,
    read_gnn_benchmark,
    read_linkx,
    read_npz_entry,
    read_ogb,
    read_ogb_mapped,
    read_planetoid,
    read_pyg,
)
from nfgnn.errors import UserError

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SHCHUR = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_GEOM = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_HETERO = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_LINKX = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data"
_DRIVE = "https://drive.usercontent.google.com/download?confirm=t&id="
_OGB = "http://snap.stanford.edu/ogb/data/nodeproppred"

_YANG = "Yang et al. 2016, Revisiting Semi-Supervised Learning with Graph Embeddings"
_PITFALLS = "Shchur et al. 2018, Pitfalls of Graph Neural Network Evaluation"
_GEOM_GCN = "Pei et al. 2020, Geom-GCN"
_CRITICAL = "Platonov et al. 2023, A Critical Look at the Evaluation of GNNs under Heterophily"
_LIM = "Lim et al. 2021, Large Scale Learning on Non-Homophilous Graphs"
_HU = "Hu et al. 2020, Open Graph Benchmark"
_MIT = "MIT (repository)"


Size = tuple[int, int, int, int]  # nodes, edges, features, classes


def _planetoid(title: str, size: Size, megabytes: float, **more: Any) -> Entry:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    urls = {
        f"ind.{title.lower()}.{part}": f"{_PLANETOID}/ind.{title.lower()}.{part}" for part in parts
    }
    folder = f"Planetoid/{title}/raw"
    return Entry(
        title.lower(),
        title,
        read_planetoid,
        folder,
        urls,
        *size,
        _YANG,
        megabytes,
        measured=title != "PubMed",
        **more,
    )


def _shchur(group: str, title: str, file: str, size: Size, megabytes: float) -> Entry:
    folder = f"{group}/{title}/raw"
    urls = {file: f"{_SHCHUR}/{file}"}
    more: dict[str, Any] = {"measured": group == "Amazon", "licence": _MIT}
    return Entry(
        title.lower(),
        f"{group} {title}",
        read_gnn_benchmark,
        folder,
        urls,
        *size,
        _PITFALLS,
        megabytes,
        **more,
    )


def _geom_gcn(
    name: str, group: str, folder: str, size: Size, megabytes: float, **more: Any
) -> Entry:
    remote = "film" if name == "actor" else name
    content = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    urls = {file: f"{_GEOM}/new_data/{remote}/{file}" for file in content}
    splits = [f"{remote}_split_0.6_0.2_{i}.npz" for i in range(10)]
    urls |= {file: f"{_GEOM}/splits/{file}" for file in splits}
    more |= {
        "pyg": (group, {} if name == "actor" else {"name": name}),
        "measured": name != "wisconsin",
    }
    return Entry(
        name, name.capitalize(), read_pyg, folder, urls, *size, _GEOM_GCN, megabytes, **more
    )


def _wiki(name: str) -> tuple[str, str]:
    return "WikipediaNetwork", f"WikipediaNetwork/{name}/geom_gcn/raw"


def _heterophilous(name: str, size: Size, megabytes: float, metric: str = "accuracy") -> Entry:
    file, group = name.replace("-", "_"), "HeterophilousGraphDataset"
    folder, urls = f"{group}/{file}/raw", {f"{file}.npz": f"{_HETERO}/{file}.npz"}
    more: dict[str, Any] = {"metric": metric, "pyg": (group, {"name": name}), "licence": _MIT}
    return Entry(
        name, name.capitalize(), read_pyg, folder, urls, *size, _CRITICAL, megabytes, **more
    )


def _npz(name: str, file: str, size: Size, megabytes: float, measured: bool = False) -> Entry:
    more: dict[str, Any] = {"licence": _MIT, "measured": measured}
    urls = {file: f"{_HETERO}/{file}"}
    return Entry(
        name, name.capitalize(), read_npz_entry, "npz", urls, *size, _CRITICAL, megabytes, **more
    )


def _linkx(name: str, file: str, size: Size, megabytes: float, metric: str = "accuracy") -> Entry:
    folder = f"LINKXDataset/{name}/raw"
    urls = {"data.mat": f"{_LINKX}/{file.replace(' ', '%20')}"}
    reader = read_facebook if file.startswith("facebook100/") else read_linkx
    return Entry(name, Path(file).stem, reader, folder, urls, *size, _LIM, megabytes, metric=metric)


def _ogb(name: str, archive: str, split: str, size: Size, megabytes: float, licence: str) -> Entry:
    mapped = archive.endswith("-bin.zip")
    reader = read_ogb_mapped if mapped else read_ogb
    raw = (
        ("data.npz", "node-label.npz")
        if mapped
        else ("edge.csv.gz", "node-feat.csv.gz", "node-label.csv.gz")
    )
    files = [f"raw/{file}" for file in raw] + [
        f"split/{split}/{part}.csv.gz" for part in ("train", "valid", "test")
    ]
    more: dict[str, Any] = {"archive": True, "licence": licence, "files": tuple(files)}
    urls = {archive: f"{_OGB}/{archive}"}
    return Entry(
        name.lower(), name, reader, name.replace("-", "_"), urls, *size, _HU, megabytes, **more
    )


_TWINS = (
    "about half of the nodes have an exact twin (same neighbours, same label), and twins in training give labels away; "
    "see the -filtered version"
)

_TABLE = [
    _planetoid("Cora", (2708, 5278, 1433, 7), 0.4),
    _planetoid(
        "CiteSeer", (3327, 4552, 3703, 6), 1.0,
        defect="15 nodes have links but no label and no features (other loaders put them in class 0)",
    ),
    _planetoid("PubMed", (19717, 44324, 500, 3), 11),
    _shchur("Amazon", "Computers", "amazon_electronics_computers.npz", (13752, 245861, 767, 10), 3.4),
    _shchur("Amazon", "Photo", "amazon_electronics_photo.npz", (7650, 119081, 745, 8), 1.8),
    _shchur("Coauthor", "CS", "ms_academic_cs.npz", (18333, 81894, 6805, 15), 5),
    _shchur("Coauthor", "Physics", "ms_academic_phy.npz", (34493, 247962, 8415, 5), 10),
    _geom_gcn("chameleon", *_wiki("chameleon"), (2277, 31371, 2325, 5), 11, defect=_TWINS),
    _geom_gcn("squirrel", *_wiki("squirrel"), (5201, 198353, 2089, 5), 24, defect=_TWINS),
    _npz("chameleon-filtered", "chameleon_filtered.npz", (890, 8854, 2325, 5), 0.2),
    _npz("squirrel-filtered", "squirrel_filtered.npz", (2223, 46998, 2089, 5), 0.6),
    _geom_gcn("actor", "Actor", "Actor/raw", (7600, 26659, 932, 5), 0.6),
    _geom_gcn("texas", "WebKB", "WebKB/texas/raw", (183, 279, 1703, 5), 0.6, defect="a class of one node"),
    _geom_gcn(
        "cornell", "WebKB", "WebKB/cornell/raw", (183, 277, 1703, 5), 0.6,
        defect="the published file holds the nodes (features and labels) of Texas under Cornell's links; "
        "cornell-genuine is the real one",
    ),
    _npz("cornell-genuine", "cornell.npz", (183, 277, 1703, 5), 0.03, measured=True),
    _geom_gcn("wisconsin", "WebKB", "WebKB/wisconsin/raw", (251, 450, 1703, 5), 0.9),
    _heterophilous("roman-empire", (22662, 32927, 300, 18), 24),
    _heterophilous("amazon-ratings", (24492, 93050, 300, 5), 27),
    _heterophilous("minesweeper", (10000, 39402, 7, 2), 0.3, "roc_auc"),
    _heterophilous("tolokers", (11758, 519000, 10, 2), 1.5, "roc_auc"),
    _heterophilous("questions", (48921, 153540, 301, 2), 54, "roc_auc"),
    _linkx("penn94", "facebook100/Penn94.mat", (41554, 1362229, 4814, 2), 11),
    _linkx("reed98", "facebook100/Reed98.mat", (962, 18812, 745, 2), 0.2),
    _linkx("amherst41", "facebook100/Amherst41.mat", (2235, 90954, 1193, 2), 0.8),
    _linkx("cornell5", "facebook100/Cornell5.mat", (18660, 790777, 4735, 2), 7),
    _linkx("johnshopkins55", "facebook100/Johns Hopkins55.mat", (5180, 186586, 2406, 2), 2),
    _linkx("genius", "genius.mat", (421961, 984979, 12, 2), 20, "roc_auc"),
    Entry(
        "pokec", "pokec", read_linkx, "LINKXDataset/pokec/raw",
        {"pokec.mat": _DRIVE + "1dNs5E7BrWJbgcHeQ_zuy5Ozp2tRCWG0y"}, 1632803, 30622564, 65, 2, _LIM, 200,
    ),
    _ogb("ogbn-arxiv", "arxiv.zip", "time", (169343, 1166243, 128, 40), 81, "ODC-BY"),
    _ogb("ogbn-products", "products.zip", "sales_ranking", (2449029, 61859140, 100, 47), 1380, "Amazon"),
    _ogb("ogbn-papers100M", "papers100M-bin.zip", "time", (111059956, 1615685872, 128, 172), 57000, "ODC-BY"),
]  # fmt: skip

REGISTRY: dict[str, Entry] = {entry.name: entry for entry in _TABLE}
BUILT_IN = ("karate", "mixed")


def names() -> list[str]:
    """All names that :func:`nfgnn.data.load_dataset` knows."""
    return [*REGISTRY, *BUILT_IN]


def canonical_name(name: str) -> str | None:
    """The registered name that ``name`` means, whatever its case, dashes and spaces; else ``None``."""
    wanted = _squeeze(name)
    return next((known for known in names() if _squeeze(known) == wanted), None)


def entry(name: str) -> Entry:
    """The entry of a registered name."""
    known = canonical_name(name)
    if known is None or known not in REGISTRY:
        raise UserError(f"no downloadable dataset is called {name!r}.")
    return REGISTRY[known]


def _squeeze(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
