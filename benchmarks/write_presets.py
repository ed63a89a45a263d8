"""The best configurations of a search as preset tables.

    python benchmarks/write_presets.py results/search.jsonl

Chosen by mean validation accuracy on the ten search seeds. Tables of cells that were searched are replaced in
``nfgnn/presets``; all others, and what stands above the first table, stay as they are.
"""

import argparse
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

PRESETS = Path(__file__).parents[1] / "nfgnn" / "presets"
FILES = {
    "nfgnn": {
        (): ("agreement", "term", "paper"),
        ("agreement",): ("agreement",),
        ("term",): ("term",),
        ("paper",): ("paper",),
    },
    "polygnn": {(): ("global",)},
    "gprgnn": {(): ("GPRGNN",)},
    "bernnet": {(): ("BernNet",)},
}
"""Of every file: which families its groups of tables choose from."""


def mean(values: list[float]) -> float:
    return 100 * sum(values) / len(values)


def winners(lines: list[dict[str, Any]], families: tuple[str, ...]) -> dict[tuple[str, str], dict[str, Any]]:
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        cell = line["protocol"], line["dataset"]
        chosen = line["family"] in families and line["stage"] == 2
        if chosen and (cell not in best or mean(line["val"]) > mean(best[cell]["val"])):
            best[cell] = line
    first = [line for line in lines if line["family"] in families and line["stage"] == 1]
    tried = Counter((line["protocol"], line["dataset"]) for line in first)
    return {cell: {**line, "tried": tried[cell]} for cell, line in best.items()}


def text(name: str, table: dict[str, Any]) -> list[str]:
    return [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""]


def flat(tables: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], dict[str, Any]]:
    """``{"paper": {"full": {"cora": {…}}}}`` as ``{("paper", "full", "cora"): {…}}``."""
    if not any(isinstance(value, dict) for value in tables.values()):
        return {path: tables} if tables else {}
    return {key: value for name, part in tables.items() for key, value in flat(part, (*path, name)).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("search", type=Path, nargs="+")
    arguments = parser.parse_args()
    lines = [json.loads(line) for path in arguments.search for line in path.read_text().splitlines()]
    for file, groups in FILES.items():
        path = PRESETS / f"{file}.toml"
        old = path.read_text()
        head = old[: old.index("\n[") + 1] if "\n[" in old else old
        tables, notes = flat(tomllib.loads(old)), {}
        for group, families in groups.items():
            for (protocol, dataset), line in winners(lines, families).items():
                key = (*group, protocol, dataset)
                tables[key] = {k: v for k, v in line["config"].items() if k not in ("model", "family")}
                notes[key] = f"# {mean(line['val']):.2f} % in validation, the best of {line['tried']} by ten seeds."
        order = sorted(tables, key=lambda key: (key[-1] != "default" and len(key) > 1, len(key), key))
        body = []
        for key in order:
            body += [notes[key]] if key in notes else []
            body += text(".".join(key), tables[key])
        path.write_text(head + "\n".join(body).rstrip() + "\n")
        print(f"{path.name}: {len(notes)} tables")


if __name__ == "__main__":
    main()
