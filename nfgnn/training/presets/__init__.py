"""Hyper-parameters that were found to work: one TOML file per model, and this reader.

A file has a table ``[default]``, tables ``[full.texas]``, ``[semi.cora]``, … per protocol and dataset, and, where the
model's best form differs from the one in its paper, the same under ``[paper]``. Later tables override earlier ones;
``paper_like = "other"`` at the top takes those under ``[paper]`` from another model's file.
NFGNN's file also has the best configurations of two of its gates under ``[term]`` and ``[agreement]``, which the
comparison of gates reads. Keys are the arguments of the model and of the training; there is one spelling for each.
"""

import tomllib
from importlib.resources import files
from typing import Any

from nfgnn.errors import unknown_name

KINDS = ("best", "paper", "none")
GATE_KINDS = ("term", "agreement")
_LIKE_FULL = {"stratified", "geom-gcn", "random", "public"}


def preset(
    model: str, dataset: str | None, protocol: str | None, kind: str = "best"
) -> dict[str, Any]:
    """The hyper-parameters for a model on a dataset under a protocol.

    Args:
        model: name of the model.
        dataset: registered name; ``None`` or an unknown one leaves the model's ``[default]`` table.
        protocol: name of the split protocol. Those without tables of their own use ``full``'s, ``inductive``'s go
            before ``semi``'s.
        kind: ``"best"`` for the best validated configuration, ``"paper"`` for the best within the form that the paper
            describes, ``"none"`` for nothing at all; ``"term"`` and ``"agreement"`` for the best under that gate.
    """
    if kind not in KINDS + GATE_KINDS:
        raise unknown_name("preset", kind, KINDS)
    tables = preset_tables(model) if kind != "none" else {}
    if kind != "best":
        tables = tables.get(kind, tables)
    by_dataset = {**tables.get(table_protocol(protocol), {}), **tables.get(protocol or "", {})}
    return {**tables.get("default", {}), **by_dataset.get(dataset or "", {})}


def table_protocol(protocol: str | None) -> str:
    """The protocol whose tables are used under this one."""
    return (
        "full"
        if protocol is None or protocol in _LIKE_FULL
        else "semi"
        if protocol == "inductive"
        else protocol
    )


def preset_tables(model: str) -> dict[str, Any]:
    """All tables of a model's file; empty where it has none."""
    file = files(__name__) / f"{model.lower()}.toml"
    if not file.is_file():
        return {}
    tables: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    if "paper_like" in tables:
        tables["paper"] = preset_tables(tables.pop("paper_like"))["paper"]
    return tables
