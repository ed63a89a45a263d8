"""Validated hyper-parameters: one TOML file per model, and the functions that read them.

Tables are selected by the registered name of the graph (``data.registered_name``), which
:func:`nfgnn.data.load_dataset` sets by the content of a graph and never by the name of a file.
:mod:`~nfgnn.training.presets.preset_file` reads a preset file of the user.

A file has a table ``[default]`` and tables per protocol and dataset (``[full.texas]``,
``[semi.cora]``, …). Where the best form of a model differs from the form in its paper, the same
tables exist under ``[paper]``. Later tables override earlier ones. ``paper_like = "other"`` takes
the tables under ``[paper]`` from the file of another model. NFGNN's file also has the best
configurations of two of its gates under ``[term]`` and ``[agreement]``.

``modern.toml`` holds the winners of the search on the newer benchmarks, for all models:
``[MODEL.PROTOCOL]`` with a line per dataset. They count where the file of the model has no table
for this protocol and dataset.

Keys are the arguments of the model and of the training.
"""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nfgnn.errors import UserError, suggestion
from nfgnn.training.presets.preset_file import (
    PresetFile,
    is_preset_file,
    preset_model,
    read_preset_file,
)

KINDS = ("best", "paper", "none")
GATE_KINDS = ("term", "agreement")
MODERN = "modern"
_LIKE_FULL = {"stratified", "geom-gcn", "random", "public"}


def preset(
    model: str, dataset: str | None, protocol: str | None, kind: str = "best"
) -> dict[str, Any]:
    """Return the hyper-parameters of a model for a dataset under a protocol.

    Args:
        model: name of the model.
        dataset: registered name; ``None`` or an unknown name leaves the ``[default]`` table.
        protocol: name of the split protocol. Protocols without tables use those of ``full``;
            tables of ``inductive`` override those of ``semi``.
        kind: ``"best"`` for the best validated configuration, ``"paper"`` for the best one in the
            form that the paper describes, ``"none"`` for no preset, ``"term"`` or ``"agreement"``
            for the best one with that gate, ``"modern"`` for the winner of the search on the
            newer benchmarks, and the best one where there is none.
    """
    if kind not in (*KINDS, *GATE_KINDS, MODERN):
        raise UserError(
            f"unknown preset '{kind}': choose one of {', '.join(KINDS)}, or a .toml "
            f"file{suggestion(kind, KINDS)}"
        )
    tables = preset_tables(model) if kind != "none" else {}
    if kind in ("best", MODERN):
        has_own = kind == "best" and dataset in tables.get(protocol or "", {})
        winner = modern_tables().get(model, {}).get(protocol or "", {}).get(dataset or "")
        # A winner states all settings that differ from the model's defaults.
        if winner is not None and not has_own:
            return dict(winner)
    else:
        tables = tables.get(kind, tables)
    by_dataset = {**tables.get(table_protocol(protocol), {}), **tables.get(protocol or "", {})}
    return {**tables.get("default", {}), **by_dataset.get(dataset or "", {})}


def has_preset(model: str, dataset: str | None, protocol: str | None) -> bool:
    """Whether a model has a preset of its own for a dataset under a protocol."""
    tables = preset_tables(model)
    of_protocols = [tables.get(table_protocol(protocol), {}), tables.get(protocol or "", {})]
    of_protocols.append(modern_tables().get(model, {}).get(protocol or "", {}))
    return any(dataset in by_dataset for by_dataset in of_protocols)


def table_protocol(protocol: str | None) -> str:
    """Return the protocol whose tables are used under this one."""
    if protocol is None or protocol in _LIKE_FULL:
        return "full"
    if protocol == "inductive":
        return "semi"
    return protocol


def preset_tables(model: str) -> dict[str, Any]:
    """Return all tables of a model; empty if it has no file."""
    file = files(__name__) / f"{model.lower()}.toml"
    if not file.is_file():
        return {}
    tables = dict(_parsed(file.read_text(encoding="utf-8")))
    if "paper_like" in tables:
        tables["paper"] = preset_tables(tables.pop("paper_like"))["paper"]
    return tables


@lru_cache
def _parsed(text: str) -> dict[str, Any]:
    """Parse a file of presets once. A search reads the same file for every cell of its table."""
    return tomllib.loads(text)


@lru_cache
def modern_tables() -> dict[str, Any]:
    """Return the winners of the search on the newer benchmarks, by model and protocol."""
    file = files(__name__) / "modern.toml"
    tables: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    return tables


__all__ = [
    "GATE_KINDS",
    "KINDS",
    "MODERN",
    "PresetFile",
    "has_preset",
    "is_preset_file",
    "modern_tables",
    "preset",
    "preset_model",
    "preset_tables",
    "read_preset_file",
    "table_protocol",
]
