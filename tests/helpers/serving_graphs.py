"""Tables of people with text ids and features of every kind."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

CITIES = ("Rome", "Oslo", "Bonn")


def person(i: int) -> dict[str, object]:
    """Return the columns of a person."""
    return {"age": float(20 + i % 7), "income": 1.5 * (i % 11), "city": CITIES[i % 3]}


def friends(i: int) -> list[int]:
    """Return the friends of a person among those before."""
    return [j for j in {i - 1, i - 4, i // 2} if 0 <= j < i]


def write_people(folder: Path, people: np.ndarray) -> None:
    """Write people, and those of their friendships that start at them."""
    folder.mkdir()
    nodes = [{"id": f"p{i}", "label": "ab"[i // 3 % 2], **person(i)} for i in people.tolist()]
    csv.write_csv(pa.Table.from_pylist(nodes), folder / "nodes.csv")
    edges = [{"source": f"p{i}", "target": f"p{j}"} for i in people.tolist() for j in friends(i)]
    csv.write_csv(pa.Table.from_pylist(edges), folder / "edges.csv")
