"""Winners become presets that give the configuration of the search."""

import runpy
import subprocess
import sys
import tomllib
from functools import lru_cache
from pathlib import Path

import pytest

from nfgnn.paper.search.modern import DRAW_SEEDS, FINALIST_SEEDS, PRECISION, Candidate, Cell, Winner
from nfgnn.paper.search.modern_draws import final_settings, modern_draws
from nfgnn.paper.search.modern_files import collect_modern, modern_summary, write_modern_presets
from nfgnn.paper.table_plan import make_plan
from nfgnn.paper.table_registry import TABLES, Column
from nfgnn.training import Record, Records, RunConfig, presets

COLUMN = Column("minesweeper", "public")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "modern_device.py"


def candidate(model: str, number: int = 0) -> Candidate:
    drawn = modern_draws("minesweeper public", model, number + 1)[number]
    drawn = {**drawn, "precision": PRECISION}
    final = {**drawn, **final_settings()}
    return Candidate(
        RunConfig.resolve(model, drawn, None, None, "none"),
        RunConfig.resolve(model, final, None, None, "none"),
        final,
    )


def record(config: RunConfig, seed: int, val: float = 0.9) -> Record:
    metrics = {"val_roc_auc": val, "test_roc_auc": 0.8, "val_accuracy": 0.5, "val_loss": 1.0}
    settings = config.to_dict()
    return Record("minesweeper", "f00d", "public", seed, settings, metrics, "cuda", "a GPU")


def winner(model: str, number: int = 0) -> Winner:
    chosen = candidate(model, number)
    cell = Cell(COLUMN, model, "val_roc_auc")
    return Winner(
        cell, chosen, 24, 12, (record(chosen.final_config, 0), record(chosen.final_config, 1))
    )


def use(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the winners from another file."""
    tables = lru_cache(lambda: tomllib.loads(path.read_text()))
    monkeypatch.setattr(presets, "modern_tables", tables)


def test_a_preset_is_the_final_configuration_of_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "modern.toml"
    write_modern_presets([winner("NFGNN"), winner("MLP")], path)
    write_modern_presets([winner("MLP", 1)], path)
    assert "# minesweeper: validation 90.00 %, best of 24" in path.read_text()
    use(path, monkeypatch)
    plan = make_plan("modern", ["minesweeper"], ["NFGNN", "MLP"])
    assert plan.configs["NFGNN", COLUMN] == candidate("NFGNN").final_config
    assert plan.configs["MLP", COLUMN] == candidate("MLP", 1).final_config


def test_a_graph_that_is_not_registered_has_no_preset(tmp_path: Path) -> None:
    path = tmp_path / "modern.toml"
    other = winner("MLP")
    cell = Cell(Column("graphs/mine.npz", "public"), "MLP", "val_roc_auc")
    write_modern_presets([Winner(cell, other.candidate, 2, 2, other.runs)], path)
    assert tomllib.loads(path.read_text()) == {}


def test_summary_has_validation_and_test_scores() -> None:
    row = "| MLP | minesweeper (public) | 24 | 12 | 2 | 90.00 | 80.00 | `"
    assert row in modern_summary([winner("MLP")])


def test_runs_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the database of a device to committed records, presets and the configured table."""
    monkeypatch.delenv("NFGNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    database = tmp_path / "device.sqlite"
    other = candidate("MLP")
    good = candidate("MLP", 1)
    with Records(database) as records:
        # The other draw is better with little patience only.
        records.add(record(other.short_config, seed, 0.95) for seed in DRAW_SEEDS)
        records.add(record(other.final_config, seed, 0.6) for seed in FINALIST_SEEDS)
        records.add(record(good.short_config, seed, 0.7) for seed in DRAW_SEEDS)
        records.add(
            record(good.final_config, seed) for seed in [*FINALIST_SEEDS, *range(1000, 1010)]
        )
    path = tmp_path / "modern.toml"
    results = tmp_path / "results"
    collect_modern([database], results, ["minesweeper"], ["MLP"], 2, preset_file=path)
    with Records(results / "modern-search.sqlite") as searched:
        assert len(searched.all()) == 2 * 2 + 2 * 3
    with Records(results / "records.sqlite") as reported:
        assert {run.seed for run in reported.all()} == set(range(1000, 1010))
    use(path, monkeypatch)
    assert make_plan("modern", ["minesweeper"], ["MLP"]).configs["MLP", COLUMN] == good.final_config
    summary = (results / "modern-search.md").read_text()
    assert "| MLP | minesweeper (public) | 2 | 2 | 3 | 90.00 |" in summary
    # A better draw replaces this winner as soon as it has the runs of the table.
    better = candidate("MLP", 2)
    for seeds, expected in (([*FINALIST_SEEDS, 1000], good), (range(1000, 1010), better)):
        with Records(database) as records:
            records.add(record(better.final_config, seed, 0.95) for seed in seeds)
        collect_modern([database], results, ["minesweeper"], ["MLP"], 3, preset_file=path)
        use(path, monkeypatch)
        plan = make_plan("modern", ["minesweeper"], ["MLP"])
        assert plan.configs["MLP", COLUMN] == expected.final_config


def test_cells_of_the_script() -> None:
    script = runpy.run_path(str(SCRIPT))
    cells = script["cells_of"](["tolokers:residual,GCN", "mixed:NFNet", "tolokers:GCN,NFNet"])
    residual = ["NFNet", "ResidualGCN", "ResidualGATSep", "ResidualSAGE", "ResidualGAT"]
    expected = [("tolokers", model) for model in [*residual, "GCN"]]
    assert cells == [*expected, ("mixed", "NFNet")]
    # Without cells, the script trains all models on all graphs that fit on one device.
    graphs = {"chameleon-filtered", "squirrel-filtered", "tolokers", "minesweeper"}
    every = {
        (graph, row.model)
        for graph in (*graphs, "pubmed", "computers")
        for row in TABLES["modern"].rows
    }
    ordered = script["cells_of"]([])
    assert set(ordered) == every
    assert len(ordered) == len(every)


def test_the_script_does_not_need_the_command_line(tmp_path: Path) -> None:
    """The typer of some machines is too old for the commands."""
    code = (
        "import runpy, sys; sys.modules['typer'] = None; sys.modules['optuna'] = None; "
        f"sys.argv = ['modern_device', {str(tmp_path)!r}, 'mixed']; "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "'mixed' is not GRAPH:MODEL" in done.stderr
