"""Notebooks of the examples. A comment ``# %% Title`` in a script starts a cell.

``make notebooks`` writes ``examples/NAME.ipynb`` for every ``examples/NAME.py``, without outputs.
"""

import ast
import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
_CELL = "# %% "


def notebook_of(script: Path) -> dict[str, Any]:
    """Return the notebook of a script: its docstring, then a heading and the code of every cell."""
    text = script.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    _, _, code = text.split('"""', 2)
    first, *sections = code.split(f"\n{_CELL}")
    title = script.stem.replace("_", " ").capitalize().replace("nf conv", "NFConv")
    source = f"This notebook has the code of `examples/{script.name}`."
    cells = [_markdown(f"# {title}\n\n{docstring}\n\n{source}"), _code(first)]
    for section in sections:
        heading, _, body = section.partition("\n")
        cells += [_markdown(f"## {heading}"), _code(body)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.strip().splitlines(keepends=True),
    }


def main() -> None:
    for script in sorted(EXAMPLES.glob("*.py")):
        path = script.with_suffix(".ipynb")
        text = json.dumps(notebook_of(script), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path.relative_to(EXAMPLES.parent))


if __name__ == "__main__":
    main()
