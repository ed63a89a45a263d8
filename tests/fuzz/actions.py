"""What a case does with its input, and what must hold if it is accepted.

An action runs in the process of the case. It returns the problems that an oracle has found, and a
value to compare with that of the unchanged sample. It raises ``UserError`` or ``SystemExit`` to
refuse the input.
"""

import hashlib
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from nfgnn import AutoNodeClassifier, NodeClassifier, load_dataset, split
from nfgnn.cli import main
from nfgnn.data import open_large, published
from nfgnn.paper.search.results import SearchResults
from nfgnn.serving import NewNode, StorePredictor
from nfgnn.store import Store
from nfgnn.training import Records, load_run, merge_records, read_summary

from .array_mutations import hostile_tensor
from .hostile_values import hostile_value
from .mutate import damage_file
from .oracles import (
    array_problems,
    graph_problems,
    json_output_problems,
    page_problems,
    prediction_problems,
    probability_problems,
    table_problems,
)
from .place import Place
from .requests import request_problems
from .samples import FAST

_DIFFERENT = {
    *("seconds", "epoch_ms", "stages", "plan"),
    *("run", "output", "store", "path", "files", "source"),
}
"""Keys of a command's JSON that differ between equal runs: times and places."""
Result = tuple[list[str], Any]
Action = Callable[[Place, list[str]], Result]
"""Arguments: the folders of the case, and further command-line arguments of the case."""


def command(*words: str, check: Callable[[Place], list[str]] | None = None) -> Action:
    """Return the action that runs a command.

    Args:
        *words: the command line, in which ``INPUT``, ``OUT`` and ``SAMPLES`` are replaced.
        check: the oracle for the files that the command writes.
    """

    def run(place: Place, arguments: list[str]) -> Result:
        line = [_replace(word, place) for word in (*words, *arguments)]
        stdout = run_command(place, line)
        problems = check(place) if check else []
        if "--json" in line and "--help" not in line:
            problems += json_output_problems(stdout)
        return problems, _without_times(stdout)

    return run


def run_command(place: Place, line: list[str]) -> str:
    """Run a command line in this process and return what it has printed."""
    sys.argv = ["nfgnn", *line]
    try:
        main()
    except SystemExit as end:
        if end.code not in (0, None):
            raise
    sys.stdout.flush()
    return place.stdout.read_text(encoding="utf-8", errors="backslashreplace")


def predictions(*words: str) -> Action:
    """Return the action that predicts into a file, whose content is the value."""
    predict = command("predict", *words, "-o", "OUT/p.csv", "--json", check=_check_predictions)

    def run(place: Place, arguments: list[str]) -> Result:
        problems, _ = predict(place, arguments)
        return problems, (place.out / "p.csv").read_text(encoding="utf-8")

    return run


def load_graph(place: Place, arguments: list[str]) -> Result:
    """Load the only graph of the input and compare it with another reader."""
    path = _graph(place)
    data = load_dataset(path)
    problems = graph_problems(data)
    if path.is_dir():
        problems += table_problems(data, path)
    else:
        problems += array_problems(data, path)
    return problems, _digest(data)


def open_blocks(place: Place, arguments: list[str]) -> Result:
    """Open the graph of the input for reading in blocks, and read all of them."""
    path = _graph(place)
    graph = open_large(path)
    if graph is None:
        return [], None
    problems = []
    rows = 0
    for block in graph.features(7):
        rows += len(block)
        if not bool(torch.as_tensor(block).isfinite().all()):
            problems.append("a block of features is not finite")
    if rows != graph.num_nodes:
        problems.append(f"there are features for {rows} of {graph.num_nodes} nodes")
    (place.out / "pattern").mkdir()
    graph.write_pattern(place.out / "pattern", 2**26, False, _no_report)
    return problems, None


def load_named(name: str, pinned: dict[str, tuple[str, int]] | None) -> Action:
    """Return the action that loads a registered data set from the raw files of the input.

    Args:
        name: the data set.
        pinned: hashes and sizes that count as those of the published files.
    """

    def run(place: Place, arguments: list[str]) -> Result:
        known = {path: published.PublishedFile(*value) for path, value in (pinned or {}).items()}
        published.published_files = lambda: known
        data = load_dataset(name, root=place.input)
        return graph_problems(data), _digest(data)

    return run


def open_store(place: Place, arguments: list[str]) -> Result:
    store = Store.open(place.input / "store")
    data = store.labels()
    rows = store.rows(slice(None))
    if store.manifest.parts.columns:
        rows = store.with_parts(store.manifest.parts).rows(torch.arange(store.manifest.num_rows))
    content = [data.y, data.node_ids, data.class_names, rows, store.manifest]
    problems = [] if bool(rows.isfinite().all()) else ["the terms are not finite"]
    return problems, hashlib.sha256(repr([_plain(part) for part in content]).encode()).hexdigest()


def predict_new_nodes(place: Place, arguments: list[str]) -> Result:
    """Open a store as the server does, and predict nodes that are attached to several ids."""
    run = samples_folder() / "served-run" / "run"
    predictor = StorePredictor.open(run, place.input / "store", device="cpu")
    nodes = [NewNode([0.5] * 5, [f"é{i}", f"é{59 - i}"]) for i in range(30)]
    found = [predictor.predict([node])[0] for node in nodes]
    shares = torch.tensor([list(prediction.probabilities.values()) for prediction in found])
    return probability_problems(shares), _plain(shares)


def answer_request(place: Place, arguments: list[str]) -> Result:
    """Send a hostile request to a server, which must answer a proper one afterwards."""
    folder = samples_folder()
    predictor = StorePredictor.open(folder / "served-run" / "run", folder / "served" / "store")
    return request_problems(predictor, random.Random(arguments[0])), None


def load_model(place: Place, arguments: list[str]) -> Result:
    """Load a saved model and apply it to the graph that it was trained on."""
    classifier = NodeClassifier.load(place.input / "model", device="cpu")
    return _probabilities(place, classifier)


def load_search(place: Place, arguments: list[str]) -> Result:
    """Load the result of a search and predict with its ensemble."""
    classifier = AutoNodeClassifier.load(place.input / "auto", device="cpu")
    return _probabilities(place, classifier)


def load_run_model(place: Place, arguments: list[str]) -> Result:
    classifier = load_run(place.input / "run", device="cpu")
    read_summary(place.input / "run")
    return _probabilities(place, classifier)


def read_records(place: Place, arguments: list[str]) -> Result:
    """Read all records of a database, as the commands do that make tables."""
    with Records(place.input / "database" / "runs.sqlite") as records:
        found = records.all()
        for record in found:
            records.find(record.fingerprint, record.protocol, record.config, [record.seed])
    return [], [[record.key, dict(record.metrics)] for record in found]


def merge(name: str) -> Action:
    """Return the action that merges exported records into a new database."""

    def run(place: Place, arguments: list[str]) -> Result:
        with Records(place.out / "new.sqlite") as records:
            merge_records(records, place.input / "records" / name)
            return [], [[record.key, dict(record.metrics)] for record in records.all()]

    return run


def read_search_results(place: Place, arguments: list[str]) -> Result:
    results = SearchResults(place.input / "search" / "search.parquet")
    return [], [[row.key, row.val_mean()] for row in results.rows]


def check_pages(place: Place) -> list[str]:
    """Check all pages that a command has written."""
    pages = sorted(place.out.rglob("*.html"))
    return [problem for page in pages for problem in page_problems(page)]


def _graph(place: Place) -> Path:
    """Return the path of the graph, which a mutation may have removed."""
    return next(place.input.glob("graph*"), place.input / "graph.npz")


def _check_predictions(place: Place) -> list[str]:
    return prediction_problems(place.out / "p.csv")


def _probabilities(place: Place, classifier: NodeClassifier) -> Result:
    data = load_dataset(samples_folder() / "csv" / "graph")
    probabilities = classifier.predict_proba(data)
    return probability_problems(probabilities), _plain(probabilities)


def samples_folder() -> Path:
    """The first set of samples; the campaign sets the variable."""
    return Path(os.environ["FUZZ_SAMPLES"])


def _replace(word: str, place: Place) -> str:
    for name, folder in (("INPUT", place.input), ("OUT", place.out), ("SAMPLES", samples_folder())):
        if word == name or word.startswith(f"{name}/"):
            return str(folder) + word.removeprefix(name)
    return word


def _without_times(stdout: str) -> Any:
    """Return the JSON of a command without values that differ between equal runs."""
    try:
        content = json.loads(stdout)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    return {key: value for key, value in content.items() if key not in _DIFFERENT}


def _digest(data: Data) -> str:
    parts = sorted((key, _plain(value)) for key, value in data.to_dict().items())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout == torch.strided:
            return value.tolist()
        # A sparse tensor may have billions of empty columns.
        entries = value.to_sparse_coo().coalesce()
        return list(value.shape), entries.indices().tolist(), entries.values().tolist()
    return value.tolist() if hasattr(value, "tolist") else value


def _no_report(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


def train_and_explore(place: Place, arguments: list[str]) -> Result:
    """Train on the graph of the input, then write the page and predict."""
    graph = str(place.input / "graph")
    run = str(place.out / "run")
    run_command(place, ["train", graph, "--runs", "1", "--workers", "1", *FAST, "--out", run])
    run_command(place, ["explore", run, "-o", str(place.out / "e.html")])
    run_command(place, ["predict", run, graph, "-o", str(place.out / "p.csv")])
    run_command(place, ["verify", run])
    return check_pages(place) + _check_predictions(place), None


def load_twice(name: str) -> Action:
    """Return the action that loads a data set, mutates the cache, and loads it again."""

    def run(place: Place, arguments: list[str]) -> Result:
        load = load_named(name, None)
        _, first = load(place, [])
        rng = random.Random(arguments[0] if arguments else "0")
        files = [path for path in sorted(place.cache.rglob("*")) if path.is_file()]
        path = rng.choice(files)
        if arguments:
            mutation = damage_file(rng, path)
        problems, second = load(place, [])
        if second != first:
            problems.append(f"another graph was read after {mutation} of {path.name}")
        return problems, None

    return run


def fit_with_setting(place: Place, arguments: list[str]) -> Result:
    """Fit a classifier with a hostile setting."""
    key, _, value = arguments[-1].partition("=")
    rng = random.Random(value)
    settings = {"epochs": 2, key: hostile_value(rng)}
    if key == "epochs":
        settings[key] = rng.choice([0, -1, None, "x", float("nan"), [], 1.5])
    data = split(load_dataset("karate"), protocol="stratified", seed=0)
    classifier = NodeClassifier("NFGNN", preset="none", device="cpu", **settings).fit(data)
    return probability_problems(classifier.predict_proba(data)), None


def load_object(place: Place, arguments: list[str]) -> Result:
    """Load a PyG object, of which one attribute is hostile."""
    rng = random.Random(arguments[-1])
    content = torch.load(samples_folder() / "pt" / "graph.pt", weights_only=True)
    key = rng.choice([*content, "num_nodes", "edge_weight", "train_mask", "class_names", "name"])
    content[key] = hostile_tensor(rng, content.get(key, content["y"]))
    data = load_dataset(Data.from_dict(content))
    return graph_problems(data), None


def split_with(place: Place, arguments: list[str]) -> Result:
    """Split a graph with hostile arguments."""
    rng = random.Random(arguments[-1])
    given = {"protocol": "full", "seed": 0}
    given[rng.choice(list(given))] = hostile_value(rng)
    data = split(load_dataset("karate"), **given)
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    disjoint = int(masks.sum(0).max()) <= 1
    return [] if disjoint else ["the masks overlap"], None


def save_model(place: Place, arguments: list[str]) -> Result:
    """Save a model to a folder with files of the user."""
    classifier = NodeClassifier.load(samples_folder() / "model" / "model", device="cpu")
    classifier.save(place.input / "output")
    return [], None
