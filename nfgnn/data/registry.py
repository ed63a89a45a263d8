"""The registry of data sets: one :class:`Entry` per data set is all that a new one needs.

Edge counts are undirected, without self-loops and duplicates, for Planetoid, Amazon, Geom-GCN
(without Wisconsin) and ``cornell-genuine``, which the tests measure. Other sizes are those of the
publications, whose edges may count both directions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from nfgnn.data.large_graph import LargeGraph
from nfgnn.data.readers.matlab import read_facebook, read_linkx
from nfgnn.data.readers.npz import read_gnn_benchmark, read_npz_folder
from nfgnn.data.readers.ogb import (
    open_papers100m,
    read_arxiv_year,
    read_ogb,
    read_papers100m,
)
from nfgnn.data.readers.planetoid import read_planetoid
from nfgnn.data.readers.pyg import read_pyg
from nfgnn.data.readers.twitch_gamers import read_twitch_gamers
from nfgnn.files import require_regular_file

Reader = Callable[[Path, tuple[str, ...]], Data]
"""From the folder of the raw files and their names to a graph that is not validated yet."""


@dataclass(frozen=True)
class Entry:
    """One data set: where its raw files are published, how they are read, what they contain."""

    name: str
    title: str
    reader: Reader
    folder: str
    """Folder of the raw files, below a data root."""
    urls: dict[str, str]
    """The address of every file; an archive is unpacked into the folder."""
    nodes: int
    edges: int
    features: int
    classes: int
    source: str
    megabytes: float
    """Approximate size of the download."""
    metric: str = "accuracy"
    archive: bool = False
    defect: str = ""
    """A known data issue, reported with every load."""
    licence: str = "not stated"
    files: tuple[str, ...] = ()
    """The raw files, if they are not the keys of ``urls``."""
    optional: tuple[str, ...] = ()
    """Files that are downloaded with the others and read where they are available: the published
    splits of data sets that were loaded without them before."""
    large_reader: Callable[[Path, tuple[str, ...]], LargeGraph] | None = None
    """Opens a graph that exceeds the memory. Its ``reader`` maps the files and is not cached."""

    @property
    def required(self) -> tuple[str, ...]:
        """The raw files that must be present."""
        return self.files or tuple(file for file in self.urls if file not in self.optional)

    def raw_files(self, folder: Path) -> tuple[str, ...]:
        """Return the raw files to read: the required ones, and optional ones that are present."""
        for file in self.optional:
            # A pipe or device in its place would count as missing, and the splits with it.
            require_regular_file(folder / file)
        present = [file for file in self.optional if (folder / file).is_file()]
        return (*self.required, *present)

    def read(self, folder: Path) -> Data:
        """Read the raw files in ``folder``."""
        return self.reader(folder, self.raw_files(folder))


_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_SHCHUR = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_GEOM = (
    "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/"
    "f1fc0d14b3b019c562737240d06ec83b07d16a8f"
)
_HETERO = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_LINKX = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data"
_DRIVE = "https://drive.usercontent.google.com/download?confirm=t&id="
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"

_YANG = "Yang et al. 2016, Revisiting Semi-Supervised Learning with Graph Embeddings"
_PITFALLS = "Shchur et al. 2018, Pitfalls of Graph Neural Network Evaluation"
_GEOM_GCN = "Pei et al. 2020, Geom-GCN"
_CRITICAL = "Platonov et al. 2023, A Critical Look at the Evaluation of GNNs under Heterophily"
_LIM = "Lim et al. 2021, Large Scale Learning on Non-Homophilous Graphs"
_HU = "Hu et al. 2020, Open Graph Benchmark"
_MIT = "MIT (repository)"

Size = tuple[int, int, int, int]
"""Nodes, edges, features, classes."""


def _planetoid(title: str, size: Size, megabytes: float, **more: Any) -> Entry:
    name = title.lower()
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    urls = {f"ind.{name}.{part}": f"{_PLANETOID}/ind.{name}.{part}" for part in parts}
    folder = f"Planetoid/{title}/raw"
    return Entry(name, title, read_planetoid, folder, urls, *size, _YANG, megabytes, **more)


def _shchur(group: str, name: str, file: str, size: Size, megabytes: float) -> Entry:
    title = f"{group} {name}"
    folder = f"{group}/{name}/raw"
    urls = {file: f"{_SHCHUR}/{file}"}
    reader = read_gnn_benchmark
    more: dict[str, Any] = {"licence": _MIT}
    return Entry(name.lower(), title, reader, folder, urls, *size, _PITFALLS, megabytes, **more)


def _amazon(name: str, file: str, size: Size, megabytes: float) -> Entry:
    return _shchur("Amazon", name, f"amazon_electronics_{file}.npz", size, megabytes)


def _coauthor(name: str, file: str, size: Size, megabytes: float) -> Entry:
    return _shchur("Coauthor", name, f"ms_academic_{file}.npz", size, megabytes)


def _geom_gcn(name: str, group: str, size: Size, megabytes: float, **more: Any) -> Entry:
    published_name = "film" if name == "actor" else name
    files = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    urls = {file: f"{_GEOM}/new_data/{published_name}/{file}" for file in files}
    for i in range(10):
        file = f"{published_name}_split_0.6_0.2_{i}.npz"
        urls[file] = f"{_GEOM}/splits/{file}"
    folders = {
        "Actor": "Actor/raw",
        "WebKB": f"WebKB/{name}/raw",
        "WikipediaNetwork": f"WikipediaNetwork/{name}/geom_gcn/raw",
    }
    arguments = {} if group == "Actor" else {"name": name}
    reader = partial(read_pyg, group, arguments)
    title = name.capitalize()
    return Entry(name, title, reader, folders[group], urls, *size, _GEOM_GCN, megabytes, **more)


def _heterophilous(name: str, size: Size, megabytes: float, metric: str = "accuracy") -> Entry:
    group = "HeterophilousGraphDataset"
    file = name.replace("-", "_")
    folder = f"{group}/{file}/raw"
    urls = {f"{file}.npz": f"{_HETERO}/{file}.npz"}
    reader = partial(read_pyg, group, {"name": name})
    title = name.capitalize()
    more: dict[str, Any] = {"metric": metric, "licence": _MIT}
    return Entry(name, title, reader, folder, urls, *size, _CRITICAL, megabytes, **more)


def _npz(name: str, file: str, size: Size, megabytes: float) -> Entry:
    urls = {file: f"{_HETERO}/{file}"}
    title = name.capitalize()
    more: dict[str, Any] = {"licence": _MIT}
    return Entry(name, title, read_npz_folder, "npz", urls, *size, _CRITICAL, megabytes, **more)


def _linkx(
    name: str,
    file: str,
    size: Size,
    megabytes: float,
    metric: str = "accuracy",
    splits: tuple[str, ...] = (),
) -> Entry:
    folder = f"LINKXDataset/{name}/raw"
    urls = {"data.mat": f"{_LINKX}/{file.replace(' ', '%20')}"}
    urls |= {split: f"{_LINKX}/splits/{split}" for split in splits}
    reader = read_facebook if file.startswith("facebook100/") else read_linkx
    title = Path(file).stem
    more: dict[str, Any] = {"metric": metric, "optional": splits}
    return Entry(name, title, reader, folder, urls, *size, _LIM, megabytes, **more)


def _ogb(name: str, split: str, size: Size, megabytes: float, licence: str) -> Entry:
    folder = name.replace("-", "_")
    archive = f"{name.removeprefix('ogbn-')}.zip"
    urls = {archive: f"{_OGB}/{archive}"}
    files = ["raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz"]
    files += [f"split/{split}/{part}.csv.gz" for part in ("train", "valid", "test")]
    more: dict[str, Any] = {"archive": True, "licence": licence, "files": tuple(files)}
    return Entry(name, name, read_ogb, folder, urls, *size, _HU, megabytes, **more)


def _arxiv_year(name: str) -> Entry:
    entry = _ogb("ogbn-arxiv", "time", (169343, 1166243, 128, 5), 90, "ODC-BY")
    splits = f"{name}-splits.npy"
    return replace(
        entry,
        name=name,
        title=name,
        source=_LIM,
        reader=read_arxiv_year,
        urls={**entry.urls, splits: f"{_LINKX}/splits/{splits}"},
        files=(*entry.files[:2], "raw/node_year.csv.gz", splits),
    )


def _papers100m(name: str) -> Entry:
    entry = _ogb(name, "time", (111059956, 1615685872, 128, 172), 57000, "ODC-BY")
    return replace(
        entry,
        name=name.lower(),
        reader=read_papers100m,
        large_reader=open_papers100m,
        urls={"papers100M-bin.zip": f"{_OGB}/papers100M-bin.zip"},
        files=("raw/data.npz", "raw/node-label.npz", *entry.files[-3:]),
    )


_TWINS = (
    "about half of the nodes have an exact twin (same neighbours, same label), and twins in "
    "training reveal labels; see the -filtered version"
)
_UNLABELLED = "15 nodes have edges but no label and no features (other loaders put them in class 0)"
_NOT_CORNELL = (
    "the published file contains the nodes (features and labels) of Texas with Cornell's edges; "
    "cornell-genuine is the real graph"
)

_PENN94 = ("fb100-Penn94-splits.npy",)

# Columns: name, files, (nodes, edges, features, classes), megabytes of the download.
_TABLE = [
    _planetoid("Cora", (2708, 5278, 1433, 7), 0.4),
    _planetoid("CiteSeer", (3327, 4552, 3703, 6), 1.0, defect=_UNLABELLED),
    _planetoid("PubMed", (19717, 44324, 500, 3), 11),
    _amazon("Computers", "computers", (13752, 245861, 767, 10), 3.4),
    _amazon("Photo", "photo", (7650, 119081, 745, 8), 1.8),
    _coauthor("CS", "cs", (18333, 81894, 6805, 15), 5),
    _coauthor("Physics", "phy", (34493, 247962, 8415, 5), 10),
    _geom_gcn("chameleon", "WikipediaNetwork", (2277, 31371, 2325, 5), 11, defect=_TWINS),
    _geom_gcn("squirrel", "WikipediaNetwork", (5201, 198353, 2089, 5), 24, defect=_TWINS),
    _npz("chameleon-filtered", "chameleon_filtered.npz", (890, 8854, 2325, 5), 0.2),
    _npz("squirrel-filtered", "squirrel_filtered.npz", (2223, 46998, 2089, 5), 0.6),
    _geom_gcn("actor", "Actor", (7600, 26659, 932, 5), 0.6),
    _geom_gcn("texas", "WebKB", (183, 279, 1703, 5), 0.6, defect="a class of one node"),
    _geom_gcn("cornell", "WebKB", (183, 277, 1703, 5), 0.6, defect=_NOT_CORNELL),
    _npz("cornell-genuine", "cornell.npz", (183, 277, 1703, 5), 0.03),
    _geom_gcn("wisconsin", "WebKB", (251, 450, 1703, 5), 0.9),
    _heterophilous("roman-empire", (22662, 32927, 300, 18), 24),
    _heterophilous("amazon-ratings", (24492, 93050, 300, 5), 27),
    _heterophilous("minesweeper", (10000, 39402, 7, 2), 0.3, "roc_auc"),
    _heterophilous("tolokers", (11758, 519000, 10, 2), 1.5, "roc_auc"),
    _heterophilous("questions", (48921, 153540, 301, 2), 54, "roc_auc"),
    _linkx("penn94", "facebook100/Penn94.mat", (41554, 1362229, 4814, 2), 13, splits=_PENN94),
    _linkx("reed98", "facebook100/Reed98.mat", (962, 18812, 745, 2), 0.2),
    _linkx("amherst41", "facebook100/Amherst41.mat", (2235, 90954, 1193, 2), 0.8),
    _linkx("cornell5", "facebook100/Cornell5.mat", (18660, 790777, 4735, 2), 7),
    _linkx("johnshopkins55", "facebook100/Johns Hopkins55.mat", (5180, 186586, 2406, 2), 2),
    _linkx("genius", "genius.mat", (421961, 984979, 12, 2), 35, "roc_auc", ("genius-splits.npy",)),
    Entry(
        name="pokec",
        title="pokec",
        reader=read_linkx,
        folder="LINKXDataset/pokec/raw",
        urls={
            "pokec.mat": _DRIVE + "1dNs5E7BrWJbgcHeQ_zuy5Ozp2tRCWG0y",
            "pokec-splits.npy": _DRIVE + "1ZhpAiyTNc0cE_hhgyiqxnkKREHK7MK-_",
        },
        optional=("pokec-splits.npy",),
        nodes=1632803,
        edges=30622564,
        features=65,
        classes=2,
        source=_LIM,
        megabytes=260,
    ),
    Entry(
        name="twitch-gamers",
        title="twitch-gamers",
        reader=read_twitch_gamers,
        folder="LINKXDataset/twitch-gamers/raw",
        urls={
            "twitch-gamer_feat.csv": _DRIVE + "1fA9VIIEI8N0L27MSQfcBzJgRQLvSbrvR",
            "twitch-gamer_edges.csv": _DRIVE + "1XLETC6dG3lVl7kDmytEJ52hvDMVdxnZ0",
            "twitch-gamer-splits.npy": f"{_LINKX}/splits/twitch-gamer-splits.npy",
        },
        nodes=168114,
        edges=6797557,
        features=7,
        classes=2,
        source=_LIM,
        megabytes=100,
    ),
    _arxiv_year("arxiv-year"),
    _ogb("ogbn-arxiv", "time", (169343, 1166243, 128, 40), 81, "ODC-BY"),
    _ogb("ogbn-products", "sales_ranking", (2449029, 61859140, 100, 47), 1380, "Amazon"),
    _papers100m("ogbn-papers100M"),
]  # fmt: skip

REGISTRY: dict[str, Entry] = {entry.name: entry for entry in _TABLE}
BUILT_IN = ("karate", "mixed")


def names() -> list[str]:
    """Return all names that :func:`nfgnn.data.load_dataset` accepts."""
    return [*REGISTRY, *BUILT_IN]


def canonical_name(name: str) -> str | None:
    """Return the registered name for a spelling in any case, with any dashes and spaces."""
    wanted = _letters(name)
    for registered in names():
        if _letters(registered) == wanted:
            return registered
    return None


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
