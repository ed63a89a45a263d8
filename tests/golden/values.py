"""The values that are frozen, computed through the stable interface only.

That is the command line and the public names of ``nfgnn``; no internal module is imported here,
so these functions outlive a rewrite of what is behind them.
"""

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from golden.tools import DROPPED, HERE, REPOSITORY, Shell, digest, summary, without
from safetensors.numpy import load_file
from torch_geometric.data import Data

from nfgnn import NFGNN, NFConv, NodeClassifier, PolyGNN, ScalableNFGNN, load_dataset, split

ON_CPU = ("--device", "cpu")
ONE_BY_ONE = (*ON_CPU, "--seed", "0", "--workers", "1")
OTHER_MODELS = (
    "GCN", "GAT", "BMGCN", "PolyGNN", "BernNet", "GPRGNN", "LINK", "MLP", "ScalableNFGNN",
)  # fmt: skip
ITEMS = ("full", "semi", "ablation", "inductive", "orientation", "k-rank", "time")
RUN_FOLDER = HERE / "run_folder_v1"
TEXAS_FULL = ("full", "--datasets", "texas", "--models", "NFGNN,MLP", "--runs", "2")
TEXAS_TIME = ("time", "--datasets", "texas", "--models", "GCN", "--runs", "2")


@dataclass(frozen=True)
class Place:
    """Where a value is computed.

    Args:
        shell: runs the commands, in ``folder``.
        folder: an empty folder.
        root: the raw files; ``None`` where they are not here.
    """

    shell: Shell
    folder: Path
    root: Path | None = None

    @property
    def data(self) -> tuple[str, ...]:
        """The option that names the raw files."""
        assert self.root is not None
        return ("--root", str(self.root))

    def train(self, *arguments: str, out: str) -> dict[str, Any]:
        """The JSON of ``nfgnn train``."""
        return self.shell.json("train", *arguments, *ONE_BY_ONE, "--out", str(self.folder / out))


def train_mixed(place: Place) -> dict[str, Any]:
    """The generated graph, in three runs."""
    return {"mixed": place.train("mixed", "--runs", "3", "--set", "epochs=60", out="mixed")}


def train_real(place: Place) -> dict[str, Any]:
    """Texas to the end of its patience, Cora for 60 epochs, in three runs each."""
    runs = ("--runs", "3", *place.data)
    return {
        "texas": {"long": place.train("texas", *runs, out="texas")},
        "cora": place.train("cora", *runs, "--set", "epochs=60", out="cora"),
    }


def train_models(place: Place) -> dict[str, Any]:
    """Other models on Texas, 30 epochs each."""
    quick = ("texas", *place.data, "--runs", "1", "--set", "epochs=30", "--model")
    return {model: place.train(*quick, model, out=model) for model in OTHER_MODELS}


def train_protocols(place: Place) -> dict[str, Any]:
    """Other ways to split the nodes."""
    quick = ("--runs", "1", "--set", "epochs=30")
    texas = ("texas", *place.data, *quick)
    cora = ("cora", *place.data, *quick)
    return {
        "inductive": place.train(*cora, "--protocol", "inductive", out="inductive"),
        "semi": place.train(*cora, "--protocol", "semi", out="semi"),
        "stratified": place.train(*texas, "--protocol", "stratified", out="stratified"),
        "geom-gcn": place.train(*texas, "--protocol", "geom-gcn", out="geom-gcn"),
    }


def _classifier(data: Data, model: str, **settings: Any) -> dict[str, Any]:
    """What a fitted classifier says of a few nodes."""
    torch.set_num_threads(1)
    classifier = NodeClassifier(model, seed=3, device="cpu", epochs=20, **settings).fit(data)
    nodes = torch.arange(0, data.num_nodes, max(1, data.num_nodes // 12))
    frequencies, curves = classifier.response(data, nodes[:3], points=9)
    return {
        "predict_proba": classifier.predict_proba(data)[nodes].tolist(),
        "coefficients": classifier.coefficients(data)[nodes[:4]].tolist(),
        "frequencies": frequencies.tolist(),
        "response": curves.tolist(),
        "lambda_max": classifier.lambda_max(data),
        "test_accuracy": classifier.score(data),
    }


def classifier_generated(place: Place) -> dict[str, Any]:
    """``NodeClassifier`` on graphs that need no file."""
    mixed = split(load_dataset("mixed", num_nodes=300), protocol="full", seed=1)
    karate = split(load_dataset("karate"), protocol="stratified", seed=1)
    return {
        "mixed NFGNN": _classifier(mixed, "NFGNN"),
        "mixed NFGNN legendre": _classifier(mixed, "NFGNN", basis="legendre", K=4, rank=2),
        "mixed PolyGNN": _classifier(mixed, "PolyGNN"),
        "karate NFGNN": _classifier(karate, "NFGNN", K=4),
        "karate ScalableNFGNN": _classifier(karate, "ScalableNFGNN", K=4),
    }


def classifier_texas(place: Place) -> dict[str, Any]:
    """``NodeClassifier`` on Texas, with the settings of both presets."""
    data = split(load_dataset("texas", place.root), protocol="full", seed=1)
    return {
        "best": _classifier(data, "NFGNN"),
        "paper": _classifier(data, "NFGNN", preset="paper"),
        "PolyGNN": _classifier(data, "PolyGNN"),
    }


def modules(place: Place) -> dict[str, Any]:
    """Outputs and parameters of the public modules as they are built, before training."""
    torch.set_num_threads(1)
    data = load_dataset("karate")
    x = torch.from_numpy(np.random.default_rng(5).standard_normal((34, 6)).astype(np.float32))
    makers: dict[str, Callable[[], torch.nn.Module]] = {
        "NFConv": lambda: NFConv(6, K=4, rank=2),
        "NFConv agreement": lambda: NFConv(6, K=4, rank=2, gate="agreement", basis="bernstein"),
        "NFGNN": lambda: NFGNN(6, 4, hidden_channels=8, K=4),
        "ScalableNFGNN": lambda: ScalableNFGNN(6, 4, hidden_channels=8, K=4),
        "PolyGNN": lambda: PolyGNN(6, 4, hidden_channels=8, K=4),
    }
    found = {}
    for name, make in makers.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(11)
            module = make().eval()
        with torch.no_grad():
            output = module(x, data.edge_index)
        state = {key: summary(value.numpy()) for key, value in module.state_dict().items()}
        found[name] = {"output": output[:5].tolist(), "state": state}
    return found


def _table(path: Path) -> dict[str, list[Any]]:
    """The columns of a CSV file, numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [_number(row[name]) for row in rows] for name in rows[0]}


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def describe_run(run: Path) -> dict[str, Any]:
    """Everything in a run folder but times and the picture's pixels."""
    files = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    content: dict[str, Any] = {"files": files}
    for name in files:
        path = run / name
        if path.suffix == ".json":
            content[name] = without(json.loads(path.read_text()), {"seconds", "epoch_ms"})
        elif path.suffix == ".csv":
            content[name] = _table(path)
        elif path.suffix == ".npy":
            content[name] = summary(np.load(path))
        elif path.suffix == ".safetensors":
            content[name] = {key: summary(value) for key, value in load_file(path).items()}
    return content


def write_run(shell: Shell, folder: Path) -> None:
    """The run that is committed as ``run_folder_v1``."""
    quick = ("--runs", "2", "--set", "epochs=30", "--set", "K=4", "--set", "hidden_channels=16")
    # With a model, because the default of unknown graphs changes with the portfolio.
    arguments = ("--protocol", "stratified", "--model", "NFGNN", *quick, *ONE_BY_ONE, "--json")
    shell.run("train", "karate", *arguments, "--out", str(folder))


def run_folder(place: Place) -> dict[str, Any]:
    """A run folder as ``nfgnn train --out`` writes it now."""
    write_run(place.shell, place.folder / "run")
    return describe_run(place.folder / "run")


def run_folder_v1(place: Place) -> dict[str, Any]:
    """The committed run folder, read by ``nfgnn predict`` and ``NodeClassifier.load``."""
    torch.set_num_threads(1)
    data = load_dataset("karate")
    columns = ("id", "predicted", "probability", "margin")  # of the first version
    found: dict[str, Any] = {}
    for seed in (0, 1):
        out = place.folder / f"{seed}.csv"
        chosen = ("--seed", str(seed), *ON_CPU, "-o", str(out))
        place.shell.run("predict", str(RUN_FOLDER), "karate", *chosen)
        classifier = NodeClassifier.load(RUN_FOLDER / f"seed-{seed}", device="cpu")
        found[f"seed-{seed}"] = {
            "predict": {name: _table(out)[name] for name in columns},
            "predict_proba": classifier.predict_proba(data).tolist(),
            "coefficients": classifier.coefficients(data)[:6].tolist(),
            "response": classifier.response(data, [0, 33], points=7)[1].tolist(),
        }
    out = place.folder / "best.csv"
    place.shell.run("predict", str(RUN_FOLDER), "karate", *ON_CPU, "-o", str(out))
    found["best"] = {name: _table(out)[name] for name in columns}
    return found


def _records(file: Path) -> list[dict[str, Any]]:
    """The runs of a database, without what a machine decides."""
    columns = ("key", "dataset", "fingerprint", "protocol", "seed", "config", "metrics", "version")
    query = f"SELECT {', '.join(columns)} FROM runs ORDER BY key"
    with closing(sqlite3.connect(file)) as database:
        rows = [dict(zip(columns, row)) for row in database.execute(query)]
    for row in rows:
        row["config"] = json.loads(row["config"])
        row["metrics"] = without(json.loads(row["metrics"]), {"seconds"})
    return rows


def record_keys(place: Place) -> dict[str, Any]:
    """The records of a few runs: above all their keys, by which later versions find them."""
    options = (*ON_CPU, *place.data, "--out", str(place.folder))
    place.shell.run("reproduce", *TEXAS_FULL, *options)
    return {"records": _records(place.folder / "records.sqlite")}


def _texts(folder: Path) -> dict[str, str]:
    """Tables of a folder, by the name of the file."""
    names = sorted(path for path in folder.iterdir() if path.suffix in (".md", ".csv", ".tex"))
    return {path.name: path.read_text() for path in names if not path.name.startswith("records")}


def records_v1(place: Place) -> dict[str, Any]:
    """The committed records, from the database and from the text files: tables without training.

    There are no raw files for these commands, so a run that is not found cannot be made up for.
    """
    found = {}
    sources = {
        "sqlite": {"records_v1.sqlite": "records.sqlite"},
        "csv": {
            "records_v1.csv": "records.csv",
            "records_v1.configs.json": "records.configs.json",
        },
    }
    for name, files in sources.items():
        folder = place.folder / name
        folder.mkdir()
        for file, target in files.items():
            shutil.copy(HERE / file, folder / target)
        for item in (TEXAS_FULL, TEXAS_TIME):
            place.shell.run("reproduce", *item, "--from-records", "--out", str(folder))
        found[name] = _texts(folder)
    return found


def result_tables(place: Place) -> dict[str, Any]:
    """The committed tables, made again from the committed runs, by checksum."""
    results = REPOSITORY / "results"
    folder = place.folder / "results"
    made = [f"{item}{end}" for item in ITEMS for end in (".md", ".csv", ".tests.csv", ".tex")]
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns("figures", "search*", *made))
    place.shell.run("reproduce", *ITEMS, "--from-records", "--out", str(folder))
    # A table without paired tests has no file of tests.
    written = [name for name in made if (folder / name).exists()]
    return {name: digest((folder / name).read_bytes()) for name in written}


def _write_graph(path: Path, nodes: int, links: int, features: int, labelled: float) -> None:
    """A random graph as one file, the same on every machine."""
    random = np.random.default_rng(7)
    y = np.where(random.random(nodes) < labelled, random.integers(0, 3, nodes), -1)
    np.savez(
        path,
        edges=random.integers(0, nodes, (links, 2)),
        node_features=random.standard_normal((nodes, features)).astype(np.float32),
        node_labels=y,
    )


def _store(folder: Path, dropped: set[str]) -> dict[str, Any]:
    """The arrays of a store and its manifest, without paths."""
    manifest = without(json.loads((folder / "manifest.json").read_text()), dropped)
    sums = manifest.pop("checksums")
    samples = manifest.pop("samples")
    assert len(manifest.pop("checksum")) == 64  # of the manifest, with the path of the graph
    arrays = {str(path.relative_to(folder)): np.load(path) for path in folder.rglob("*.npy")}
    return {
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
        "manifest": manifest,
        "checksums": {name: {"sha256": "".join(parts)} for name, parts in sums.items()},
        "samples": {"sha256": "".join(samples)},
        "arrays": {name: summary(array) for name, array in sorted(arrays.items())},
    }


def _plan(answer: dict[str, Any]) -> dict[str, Any]:
    """Of the plan, what neither the memory of the process nor its speed decides."""
    names = ("cut", "num_nodes", "num_entries", "num_rows", "num_features", "K", "store_bytes")
    return {**answer, "plan": {name: answer["plan"][name] for name in names}}


def stores(place: Place) -> dict[str, Any]:
    """Stores of a graph in memory, in three settings."""
    _write_graph(place.folder / "small.npz", 400, 1500, 5, 0.5)
    settings = {
        "default": (),
        "all rows": ("--rows", "all", "--self-loops", "--basis", "jacobi(0.5, 1)"),
        "half": ("--dtype", "bfloat16", "--features", "raw", "--lambda-max", "1.8"),
    }
    found = {}
    for name, options in settings.items():
        out = place.folder / name.replace(" ", "-")
        source = ("precompute", str(place.folder / "small.npz"), "--out", str(out), "--K", "3")
        answer = place.shell.json(*source, *options, *ON_CPU)
        found[name] = {"store": _store(out, {"source"}), "answer": _plan(answer)}
    return found


def stores_of_cuts(place: Place) -> dict[str, Any]:
    """One graph in both cuts: in memory, and streamed from disk in the least memory that will do.

    That least depends on what the process holds, so budgets are tried from below; the first that
    is enough leaves no room for the graph itself. The fingerprint of a graph that is read in
    blocks depends on path and modification time of its file, and is left out.
    """
    _write_graph(place.folder / "large.npz", 100_000, 3_000_000, 4, 0.01)
    source = ("precompute", str(place.folder / "large.npz"), "--K", "2", *ON_CPU, "--json")
    out, inside = place.folder / "streamed", place.folder / "resident"
    status, answer = place.shell.status(*source, "--out", str(out), "--memory", "1MB")
    assert status == 2, "the first command was to load the libraries, not to find enough memory"
    for more in range(120, 1200, 16):
        budget = ("--memory", f"RSS+{more}MB")
        status, answer = place.shell.status(*source, "--out", str(out), *budget)
        if status == 0:
            break
    assert status == 0, place.shell.said()
    streamed = without(json.loads(answer), DROPPED)
    resident = place.shell.json(*source[:-1], "--out", str(inside), "--memory", "16GB")
    left_out = {"source", "fingerprint"}
    return {
        "streamed": {"store": _store(out, left_out), "answer": _plan(streamed)},
        "resident": {"store": _store(inside, {"source"}), "answer": _plan(resident)},
    }


def _write_tables(folder: Path, data: Data, known: int) -> None:
    """A graph as two folders of CSV files: ``old`` with the first nodes, ``new`` with the rest."""
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].T.tolist()
    features = data.x.to_dense().tolist()
    head = ["id", "label", *(f"x{i}" for i in range(len(features[0])))]
    parts = {
        "old": (range(known), [link for link in once if max(link) < known]),
        "new": (range(known, data.num_nodes), [link for link in once if max(link) >= known]),
    }
    for name, (nodes, links) in parts.items():
        (folder / name).mkdir()
        rows = [[f"n{i}", data.class_names[int(data.y[i])], *features[i]] for i in nodes]
        ends = [[f"n{a}", f"n{b}"] for a, b in links]
        tables = {"nodes": [head, *rows], "edges": [["source", "target"], *ends]}
        for table, lines in tables.items():
            with (folder / name / f"{table}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(lines)


def new_nodes(place: Place) -> dict[str, Any]:
    """Predictions for nodes that a graph or a store does not have yet."""
    folder = place.folder
    _write_tables(folder, load_dataset("mixed", num_nodes=200), known=190)
    old, store, run = str(folder / "old"), str(folder / "store"), str(folder / "run")
    terms = ("--K", "3", "--rows", "all", "--self-loops", *ON_CPU)
    place.shell.run("precompute", old, "--out", store, *terms)
    quick = ("--protocol", "stratified", "--runs", "1", "--set", "epochs=20")
    found = {"train": place.train(store, *quick, out="run")}
    found["train"].pop("source", None)
    for known in ("store", "old"):
        out = folder / f"{known}.csv"
        extends = ("--extends", str(folder / known), *ON_CPU, "-o", str(out))
        place.shell.run("predict", run, str(folder / "new"), *extends)
        found[f"extends {known}"] = _table(out)
    return found


def analyze_generated(place: Place) -> dict[str, Any]:
    """``nfgnn analyze`` of a graph that needs no file."""
    out = ("--out", str(place.folder / "karate"))
    return {"karate": place.shell.json("analyze", "karate", "--no-models", *out)}


def analyze_texas(place: Place) -> dict[str, Any]:
    """``nfgnn analyze`` of Texas."""
    out = ("--out", str(place.folder / "texas"))
    return {"texas": place.shell.json("analyze", "texas", "--no-models", *place.data, *out)}


WITHOUT_DATA: tuple[Callable[[Place], dict[str, Any]], ...] = (
    train_mixed,
    classifier_generated,
    modules,
    run_folder,
    run_folder_v1,
    records_v1,
    result_tables,
    stores,
    stores_of_cuts,
    new_nodes,
    analyze_generated,
)
"""Values that need no raw files."""
WITH_DATA: tuple[Callable[[Place], dict[str, Any]], ...] = (
    train_real,
    train_models,
    train_protocols,
    classifier_texas,
    record_keys,
    analyze_texas,
)
"""Values that need the raw files of Texas and Cora."""
