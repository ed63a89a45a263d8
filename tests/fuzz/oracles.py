"""What must hold if an input is accepted. A problem is a sentence; no problem is an empty list."""

import csv
import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data


def graph_problems(data: Data) -> list[str]:
    """Check what ``nfgnn.data.check_graph`` promises of every graph."""
    n = data.num_nodes
    edges = data.edge_index
    x = data.x.values() if data.x.layout == torch.sparse_csr else data.x
    both = set(map(tuple, edges.t().tolist()))
    checks = {
        "features are float32 and finite": x.dtype == torch.float32 and bool(x.isfinite().all()),
        "features have a row for every node": data.x.size(0) == n,
        "edges are node numbers": edges.dtype == torch.int64
        and (edges.numel() == 0 or (int(edges.min()) >= 0 and int(edges.max()) < n)),
        "edges are unique": len(both) == edges.size(1),
        "edges have both directions": all((b, a) in both for a, b in both),
        "no self-loops": all(a != b for a, b in both),
        "labels are classes": data.y.shape == (n,)
        and int(data.y.min()) >= -1
        and int(data.y.max()) < data.num_classes,
        "every class has a name": len(data.class_names) == data.num_classes,
        "names of classes are different": len(set(data.class_names)) == len(data.class_names),
        "weights are positive and finite": data.get("edge_weight") is None
        or bool(((data.edge_weight > 0) & data.edge_weight.isfinite()).all()),
    }
    return [f"not true: {name}" for name, right in checks.items() if not right]


def table_problems(data: Data, folder: Path) -> list[str]:
    """Read a folder of text tables by Python's ``csv`` and compare labels and features.

    Tables that this simple reader does not understand are not compared.
    """
    path = next(folder.glob("nodes.?sv"), None)
    if path is None:
        return []
    try:
        text = path.read_bytes().decode("utf-8-sig")
        delimiter = max(",;\t", key=text.split("\n")[0].count)
        rows = list(
            csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
        )
    except (UnicodeDecodeError, csv.Error):
        return []
    rows = [{(k or "").strip(): v for k, v in row.items()} for row in rows]
    problems = []
    if len(rows) != data.num_nodes:
        return []  # blank lines and line ends inside of quotes
    labels = [row.get("label") for row in rows]
    if all(isinstance(label, str) and label.strip() == label and label for label in labels):
        missing = {"nan", "null", "none", "na", "n/a", "unknown", "?"}
        known = [label for label in labels if str(label).lower() not in missing]
        pairs = {(label, int(y)) for label, y in zip(labels, data.y) if label in known}
        if len({y for _, y in pairs}) != len({label for label, _ in pairs}):
            problems.append("different labels became one class")
    for column, name in enumerate(data.get("feature_names") or []):
        try:
            expected = np.array([float(row[name]) for row in rows], dtype=np.float64)
        except (ValueError, KeyError, TypeError):
            continue
        if np.isnan(expected).any():
            continue  # gaps are filled
        with np.errstate(over="ignore"):
            expected = expected.astype(np.float32)
        found = data.x.to_dense()[:, column].numpy()
        if not np.array_equal(found, expected):
            problems.append(f"feature {name!r} is not that of the file")
    return problems


def array_problems(data: Data, path: Path) -> list[str]:
    """Read an ``.npz`` or ``.pt`` file by NumPy or torch and compare features and edges."""
    try:
        if path.suffix == ".npz":
            with np.load(path) as archive:
                arrays = {key: archive[key] for key in archive.files}
        elif path.suffix == ".pt":
            content = torch.load(path, weights_only=True)
            arrays = {key: value.numpy() for key, value in content.items()}
        else:
            return []
    except Exception:
        return []  # another reader may accept less
    problems = []
    features = arrays.get("node_features" if path.suffix == ".npz" else "x")
    if isinstance(features, np.ndarray) and features.ndim == 2 and features.shape[1]:
        with np.errstate(over="ignore", invalid="ignore"):
            expected = features.astype(np.float32)
        if not np.array_equal(data.x.to_dense().numpy(), expected):
            problems.append("the features are not those of the file")
    edges = arrays.get("edges", arrays.get("edge_index"))
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and "adj_data" not in arrays:
        pairs = edges if edges.shape[1] == 2 and edges.shape[0] != 2 else edges.T
        expected_edges = {(int(a), int(b)) for a, b in pairs if a != b}
        expected_edges |= {(b, a) for a, b in expected_edges}
        if set(map(tuple, data.edge_index.t().tolist())) != expected_edges:
            problems.append("the edges are not those of the file")
    return problems


def json_output_problems(stdout: str) -> list[str]:
    """Check that a command with ``--json`` has printed one object of finite numbers."""
    try:
        content = json.loads(stdout, parse_constant=_refuse_constant)
    except ValueError as error:
        return [f"the output is not valid JSON ({error})"]
    return [] if isinstance(content, dict) else ["the output is not a JSON object"]


def prediction_problems(path: Path) -> list[str]:
    """Check that predictions are probabilities."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(keepends=True)))
    if not rows:
        return ["there are no predictions"]
    for row in rows:
        for name in ("probability", "margin"):
            if not _is_share(row.get(name)):
                return [f"the {name} is {row.get(name)!r}"]
    return []


def probability_problems(probabilities: torch.Tensor) -> list[str]:
    sums = probabilities.sum(-1)
    right = bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-4))
    return [] if right else ["the probabilities are not finite or do not sum to 1"]


def page_problems(page: Path) -> list[str]:
    """Check that no hostile text of ``hostile_values`` became markup of a page."""
    parser = _PageParser()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.problems


class _PageParser(HTMLParser):
    """Find elements and attributes that call ``fuzz()``, as all payloads do."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        for name, value in attrs:
            if "fuzz()" in (value or "") and (name.startswith("on") or name in ("href", "src")):
                self.problems.append(f"the page has <{tag} {name}={value}>")

    def handle_data(self, data: str) -> None:
        if self._in_script and data.lstrip().startswith("fuzz()"):
            self.problems.append("the page has a script that was a name")


def _is_share(text: Any) -> bool:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return False
    return math.isfinite(value) and -1e-6 <= value <= 1 + 1e-6


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it contains {name}")
