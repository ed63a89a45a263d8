"""A gallery of the scripts in ``examples/``, which run when the site is built."""

import ast
import contextlib
import io
import os
import runpy
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Example:
    """A script and what it has printed and drawn."""

    name: str
    summary: str
    details: str
    code: str
    printed: str
    figures: list[Path]

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize().replace("nf conv", "NFConv")


def examples(app: Sphinx, page_folder: Path) -> str:
    """Run all examples and return an overview with pictures, then one section per example."""
    found = []
    for script in sorted(EXAMPLES.glob(app.config.gallery_examples)):
        app.env.note_dependency(str(script))
        found.append(_run(script, Path(app.doctreedir) / "examples" / script.stem))
    cards = [_card(example, page_folder) for example in found]
    sections = [_section(example, page_folder) for example in found]
    return "\n".join([":::{container} gallery", *cards, ":::", "", *sections])


def _run(script: Path, folder: Path) -> Example:
    """Run a script in a folder of its own, which keeps the figures that it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    code = script.read_text(encoding="utf-8")
    description = ast.get_docstring(ast.parse(code)) or ""
    summary, _, details = description.partition("\n\n")
    _, _, body = code.split('"""', 2)
    printed = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        os.chdir(before)
        plt.close("all")
    figures = sorted(folder.glob("*.png"))
    return Example(script.stem, summary, details, body.strip(), printed.getvalue().strip(), figures)


def _card(example: Example, page_folder: Path) -> str:
    picture = ""
    if example.figures:
        picture = f"![{example.title}]({_relative(example.figures[0], page_folder)})\n\n  "
    link = f"[{example.title}](#{example.name.replace('_', '-')})"
    return f"- {picture}{link}\n\n  {' '.join(example.summary.split())}\n"


def _section(example: Example, page_folder: Path) -> str:
    notebook = _relative(EXAMPLES / f"{example.name}.ipynb", page_folder)
    pictures = []
    for figure in example.figures:
        pictures.append(f"![Figure of {example.title}]({_relative(figure, page_folder)})")
    return "\n\n".join(
        [
            f"({example.name.replace('_', '-')})=\n## {example.title}",
            example.summary,
            *pictures,
            example.details,
            *_cells(example.code),
            f"Output of `python examples/{example.name}.py`:",
            f"```text\n{example.printed}\n```",
            f"The same as a notebook: {{download}}`{example.name}.ipynb <{notebook}>`\n",
        ]
    )


def _cells(code: str) -> list[str]:
    """Return the code in blocks; a comment ``# %% Title`` starts a block."""
    first, *cells = code.split("\n# %% ")
    blocks = [f"```python\n{first.strip()}\n```"]
    for cell in cells:
        title, _, body = cell.partition("\n")
        blocks += [f"**{title}**", f"```python\n{body.strip()}\n```"]
    return blocks


def _relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()
