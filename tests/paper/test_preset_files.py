"""The shipped presets are the winners of the committed search."""

import shutil
from pathlib import Path

from nfgnn.paper.search.preset_files import winners, write_presets
from nfgnn.paper.search.results import Result, SearchResults
from nfgnn.paper.search.rounds import Cell
from nfgnn.training import presets

RESULTS = Path(__file__).parents[2] / "results"
SHIPPED = Path(presets.__file__).parent


def test_presets_are_the_winners_of_the_search(tmp_path: Path) -> None:
    copied = tmp_path / "presets"
    shutil.copytree(SHIPPED, copied)
    write_presets(SearchResults(RESULTS / "search.parquet").rows, copied, tmp_path / "search.md")
    for path in sorted(copied.glob("*.toml")):
        assert path.read_text() == (SHIPPED / path.name).read_text(), path.name
    assert (tmp_path / "search.md").read_text() == (RESULTS / "search.md").read_text()


def test_more_seeds_win_then_the_mean_then_the_first() -> None:
    def result(name: str, stage: int, val: list[float], seeds: int | None = None) -> Result:
        config = {"model": "GPRGNN", "name": name}
        return Result("texas", "semi", "GPRGNN", stage, config, val, val, seeds=seeds)

    cell = Cell("texas", "semi")
    rows = [result("a", 1, [0.9]), result("b", 2, [0.7]), result("c", 2, [0.8])]
    assert winners(rows, ("GPRGNN",))[cell] == (rows[2], 1)
    rows.append(result("d", 2, [0.1, 0.2]))
    assert winners(rows, ("GPRGNN",))[cell][0] is rows[3]
    rows.append(result("e", 2, [0.15], seeds=2))  # only the mean was kept
    assert winners(rows, ("GPRGNN",))[cell][0] is rows[3]
    assert winners(rows, ("GPRGNN",), stage=1)[cell][0] is rows[0]
    rows.append(result("f", 3, [0.01]))
    assert winners(rows, ("GPRGNN",))[cell][0] is rows[5]
    assert winners(rows, ("BernNet",)) == {}
