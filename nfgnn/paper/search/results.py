"""The results of the preset search, one row per configuration, in a Parquet file."""

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from nfgnn.errors import UserError
from nfgnn.files import atomic_write
from nfgnn.paper.search.rounds import Cell, Config


@dataclass(frozen=True)
class Result:
    """The scores of one configuration on the first search seeds."""

    dataset: str
    protocol: str
    family: str
    stage: int
    """1 for a draw, 2 for a finalist, 3 for a finalist judged by held-out validation nodes."""
    config: Config
    val: Sequence[float]
    """Validation accuracy per seed, from seed 0 on."""
    test: Sequence[float]
    """Test accuracy per seed. It is reported and never selects anything."""
    epochs: Sequence[int] | None = None
    seeds: int | None = None
    """Number of seeds where only the means were kept."""
    note: str | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.dataset, self.protocol)

    @property
    def num_seeds(self) -> int:
        return self.seeds or len(self.val)

    def check(self) -> None:
        """Raise :class:`ValueError` if the scores are not lists of numbers."""
        for scores in (self.val, self.test):
            if not isinstance(scores, list) or not scores:
                raise ValueError("the scores of a configuration are not a list")
            if not all(isinstance(score, int | float) for score in scores):
                raise ValueError("a score is not a number")

    def val_mean(self, seeds: int | None = None) -> float:
        """Return the mean validation accuracy in %, on the first ``seeds`` seeds if given."""
        values = self.val[:seeds]
        return 100 * sum(values) / len(values)

    @property
    def key(self) -> str:
        return result_key(self.cell, self.family, self.stage, self.config)


def result_key(cell: Cell, family: str, stage: int, config: Config) -> str:
    """Return the text that identifies a result."""
    return f"{cell} {family} {stage} {json.dumps(config, sort_keys=True)}"


class SearchResults:
    """All results of a search, in the order in which they were found.

    Args:
        path: the Parquet file. It is read if it exists, and written by :meth:`add`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Result] = []
        self._best: dict[str, Result] = {}
        self._finalists: dict[tuple[Cell, str], dict[str, Result]] = {}
        for result in _read(path) if path.is_file() else []:
            self._insert(result)

    def _insert(self, result: Result) -> None:
        self.rows.append(result)
        key = result.key
        known = self._best.get(key)
        if known is None or len(known.val) < len(result.val):
            self._best[key] = result
            if result.stage == 2:
                self._finalists.setdefault((result.cell, result.family), {})[key] = result

    def find(self, cell: Cell, family: str, stage: int, config: Config) -> Result | None:
        """Return the result with the most seeds for a configuration."""
        return self._best.get(result_key(cell, family, stage, config))

    def finalists(self, cell: Cell, family: str) -> list[Result]:
        """Return the results of stage 2, best on the first ten seeds first."""
        found = self._finalists.get((cell, family), {}).values()
        # Means that only differ by the order of their sum are equal.
        return sorted(found, key=lambda result: -round(result.val_mean(10), 6))

    def add(self, results: Iterable[Result]) -> None:
        """Append results and write the file."""
        for result in results:
            self._insert(result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(self.path, _to_parquet(self.rows))


def _read(path: Path) -> list[Result]:
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
        results = [Result(**{**row, "config": json.loads(row["config"])}) for row in rows]
        for result in results:
            result.check()
        return results
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise UserError(
            f"{path} does not hold the results of a preset search ({error}): pass another file"
        ) from None


def _to_parquet(results: Sequence[Result]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = pa.list_(pa.float64())
    types: dict[str, Any] = {"stage": pa.int8(), "val": scores, "test": scores}
    types |= {"epochs": pa.list_(pa.int32()), "seeds": pa.int32()}
    names = [field.name for field in fields(Result)]
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    rows = [{**asdict(result), "config": json.dumps(result.config)} for result in results]
    file = io.BytesIO()
    table = pa.Table.from_pylist(rows, schema)
    pq.write_table(table, file, compression="zstd", compression_level=12)
    return file.getvalue()
