"""The commands and the code in README and docs run, page by page and in the order of the page.

The Python blocks of a page are executed, and every line of a bash block that starts with ``nfgnn``
is run, all in one folder. ``DATA`` in a command is the folder of the raw files. A comment before a
block changes how it is run: ``<!-- test: epochs=20 -->`` shortens the training of a bash block,
``<!-- test: max-runs=4 -->`` limits ``nfgnn auto``, and ``<!-- test: data -->`` marks a block that
needs real graphs. Before a Python block, another comment is a condition on its variables that must
hold after it, such as ``<!-- test: share > 0.95 -->``.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nfgnn.cli import app, main
from nfgnn.data import PROTOCOLS, REGISTRY
from nfgnn.nn import GATES, HEAD_GATES, MODELS
from nfgnn.paper.table_registry import TABLES
from nfgnn.spectral import BASES

REPOSITORY = Path(__file__).parents[1]
# docs/own-graph.md has a test of its own, which also runs the other commands of the page.
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "getting-started",
            "tutorial-csv",
            "tutorial-nfconv",
            "tutorial-large-graph",
            "tutorial-reproduce",
            "features",
            "auto",
            "tune",
            "scikit-learn",
            "deep-networks",
            "monitor",
            "resume",
            "cluster",
            "compare-runs",
            "explore",
            "analysis",
            "reproduce",
            "scaling",
            "scalable-training",
            "serving",
            "layers",
            "extending",
            "api",
            "cli",
            "settings",
            "models",
            "datasets",
            "protocols",
            "metrics",
            "bases",
            "concepts",
            "node-oriented",
            "gates",
            "numbers",
            "baselines",
        )
    ),
]
BLOCK = re.compile(
    r"(?:<!-- test: (?P<mark>[^>]*?) -->\n)?```(?P<language>bash|python)\n(?P<code>.*?)```",
    re.DOTALL,
)
NEEDS_DATA = re.compile(r" DATA\b")


@pytest.fixture
def _registries() -> Iterator[None]:
    """Undo what a page adds to the registries and to the command line."""
    registries = (BASES, GATES, HEAD_GATES, TABLES, MODELS, PROTOCOLS, REGISTRY)
    before = [(registry, dict(registry)) for registry in registries]
    commands = list(app.registered_groups)
    yield
    for registry, content in before:
        registry.clear()
        registry.update(content)
    app.registered_groups[:] = commands


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Return (mark, language, code) of every block of a page."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        found.append((match["mark"] or "", match["language"], match["code"]))
    return found


def _tensorboard_stub() -> ModuleType:
    """Return a module in place of TensorBoard, which is not a dependency."""
    module = ModuleType("torch.utils.tensorboard")
    vars(module)["SummaryWriter"] = _SummaryWriter
    return module


class _SummaryWriter:
    def __init__(self, log_dir: str) -> None:
        self.steps: list[int] = []

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        assert isinstance(scalar_value, float)
        self.steps.append(global_step)

    def close(self) -> None:
        assert self.steps[:6] == [1, 1, 1, 2, 2, 2]


def run_command(
    line: str, mark: str, data_root: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [
        str(data_root) if word == "DATA" else word for word in shlex.split(line, comments=True)
    ]
    if mark.startswith("max-runs="):
        if arguments[1] == "auto":
            arguments = _limited_search(arguments, mark)
    elif "=" in mark and arguments[1] == "train":
        arguments += ["--set", mark]
    monkeypatch.setattr(sys, "argv", arguments)
    status: object = 0
    try:
        main()
    except SystemExit as stop:
        status = stop.code
    assert not status, line


def _limited_search(arguments: list[str], limit: str) -> list[str]:
    """Replace the time limit of a search by a number of runs, in one process."""
    if "--time" in arguments:
        place = arguments.index("--time")
        arguments = arguments[:place] + arguments[place + 2 :]
    return [*arguments, f"--{limit}", "--workers=1"]


@pytest.mark.usefixtures("_registries")
@pytest.mark.parametrize(
    "page",
    # A newcomer starts with the README, so its commands also draw their figures.
    [pytest.param(p, marks=pytest.mark.figures if p == "README.md" else ()) for p in PAGES],
)
def test_page_does_what_it_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    needs_data = any(mark == "data" or NEEDS_DATA.search(code) for mark, _, code in blocks(page))
    data_root = request.getfixturevalue("data_root") if needs_data else None
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", _tensorboard_stub())
    names: dict[str, object] = {}
    ran = 0
    for mark, language, code in blocks(page):
        if mark == "data":
            monkeypatch.setenv("NFGNN_DATA", str(data_root))
        if language == "python":
            exec(compile(code, page, "exec"), names)
            assert mark in ("", "data") or eval(mark, names), mark
            ran += 1
        else:
            lines = code.replace("\\\n", "").splitlines()
            commands = [line for line in lines if line.startswith("nfgnn ")]
            for line in commands:
                run_command(line, mark, data_root, monkeypatch)
            ran += len(commands)
    assert ran, f"{page} has nothing to run"


def test_every_page_with_commands_is_run() -> None:
    for file in sorted((REPOSITORY / "docs").rglob("*.md")):
        page = file.relative_to(REPOSITORY).as_posix()
        code = [code for _, language, code in blocks(page) if language == "python"]
        commands = [code for _, _, code in blocks(page) if re.search("^nfgnn ", code, re.M)]
        if code or commands:
            assert page in [*PAGES, "docs/own-graph.md"], page


def test_results_quote_the_committed_tables() -> None:
    page = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
    mixed = (REPOSITORY / "results" / "mixed_patterns.md").read_text(encoding="utf-8")
    rows = [line for line in mixed.partition("## A third")[0].splitlines() if line.startswith("|")]
    assert len(rows) == 7
    assert "\n".join(rows) in page
    # The README has the means of the same rows, without their intervals.
    readme = _rows((REPOSITORY / "README.md").read_text(encoding="utf-8"))
    for name, quoted in (("nfgnn", "ours, 50 runs"), ("paper", None)):
        (means,) = [row[1:] for row in readme if row[0] == name]
        found = [row[1:] for row in _rows(page) if row[0] == (quoted or "paper's NFGNN")]
        assert means == [value.partition(" ±")[0] for value in found[0]]
    full = _rows((REPOSITORY / "results" / "full.md").read_text(encoding="utf-8"))
    (best,) = [row[1:] for row in full if row[0] == "NFGNN (best)"]
    committed = [re.sub(r"\*| \(.*", "", cell) for cell in best]
    (ours,) = [row[1:] for row in _rows(page.partition("Semi-supervised")[0]) if "ours" in row[0]]
    assert ours == committed


def test_deep_networks_quote_the_committed_tables() -> None:
    page = (REPOSITORY / "docs" / "deep-networks.md").read_text(encoding="utf-8")
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    modern = _rows((REPOSITORY / "results" / "modern.md").read_text(encoding="utf-8"))
    timed = _rows((REPOSITORY / "benchmarks/results/deep_network.md").read_text(encoding="utf-8"))
    section = page.partition("## Results")[2]
    scores, _, times = section.partition("## Speed")
    quoted = {row[0]: row[1:] for row in _rows(scores) if "±" in row[1]}
    assert len(quoted) == 8
    for model, values in quoted.items():
        committed = {value for row in modern if row[0] == model for value in row[1:]}
        assert committed >= set(values)
    measured = [tuple(row[1:]) for row in _rows(times)]
    assert len(measured) == 16
    assert measured[2:8] + measured[10:] == [tuple(row[1:]) for row in timed if "." in row[1]]
    short = _rows(readme.partition("Ten official splits")[2].partition("## Speed")[0])
    for row in short[2:6]:
        assert row[1:] in [values[:4] for values in quoted.values()]


def _rows(text: str) -> list[list[str]]:
    """Return the cells of all lines of tables, without bold print."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (REPOSITORY / page).read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (REPOSITORY / t).exists()]
    assert not missing


def test_the_pictures_are_small() -> None:
    for picture in (REPOSITORY / "docs" / "images").glob("*.png"):
        assert picture.stat().st_size < 150_000, picture
