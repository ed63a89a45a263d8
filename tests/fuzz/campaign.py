"""Many cases, and their summary."""

import dataclasses
import gc
import json
import os
import random
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .outcomes import BUGS, Ended, Outcome, classify
from .place import Place, snapshot
from .process import MEMORY_BYTES, run_forked
from .samples import SETS, write_samples
from .targets import all_targets


@dataclass(frozen=True)
class CaseResult:
    """A case and its outcome."""

    id: str
    format: str
    command: str
    mutation: str
    outcome: Outcome
    detail: str


class Campaign:
    """Samples, targets, and the cases of one or several seeds. Use :meth:`open`."""

    def __init__(self, folder: Path, only: str = "") -> None:
        self.folder = folder
        self.samples = folder / "samples" / SETS[0]
        self.targets = [target for target in all_targets(self.samples) if only in target.format]
        self._weights = [target.weight for target in self.targets]
        self._expected: dict[int, object] = {}
        self._base_bytes = _resident_bytes()

    @classmethod
    @contextmanager
    def open(cls, only: str = "") -> Iterator["Campaign"]:
        """Write the samples to a temporary folder, which is removed at the end.

        Args:
            only: text that the format of a target must contain.
        """
        with tempfile.TemporaryDirectory(prefix="nfgnn-fuzz-", dir=_fast_folder()) as name:
            folder = Path(name)
            _write_samples(folder, only)
            os.environ["FUZZ_SAMPLES"] = str(folder / "samples" / SETS[0])
            before = snapshot(folder / "samples")
            gc.collect()
            gc.freeze()  # so that a child that collects garbage does not copy the parent's pages
            yield cls(folder, only)
            if snapshot(folder / "samples") != before:
                raise RuntimeError("a case has changed the samples, which commands only read")

    def run(self, case_id: str, keep: bool = False) -> tuple[CaseResult, Ended]:
        """Run one case.

        Args:
            case_id: ``SEED-NUMBER``.
            keep: leave its folder in place.
        """
        rng = random.Random(case_id)
        number = rng.choices(range(len(self.targets)), self._weights)[0]
        target = self.targets[number]
        place = Place(self.folder / f"case-{case_id}")
        place.create()
        prepared = target.prepare(rng, place, self.samples)
        before = snapshot(place.input)
        ended = run_forked(
            lambda: target.action(place, prepared.arguments),
            place,
            prepared.unprivileged,
            prepared.environment,
        )
        after = snapshot(place.input)
        if target.adds_files:
            after = {name: content for name, content in after.items() if name in before}
        changed = [] if target.writes_input else _differences(before, after)
        ended = dataclasses.replace(ended, changed=changed)
        if target.protected and ended.status == 0:
            value = json.loads(place.report.read_text())["value"]
            if value != self._value_of_sample(number):
                ended.problems.append("accepted with another result than the unchanged input")
        outcome, detail = classify(ended, prepared.names, self._base_bytes + MEMORY_BYTES)
        result = CaseResult(
            case_id, target.format, target.command, prepared.mutation, outcome, detail
        )
        if not keep:
            place.remove()
        return result, ended

    def _value_of_sample(self, number: int) -> object:
        """Return what a target returns for its unchanged sample."""
        if number not in self._expected:
            place = Place(self.folder / f"sample-{number}")
            place.create()
            target = self.targets[number]
            target.prepare_sample(place, self.samples)
            ended = run_forked(lambda: target.action(place, []), place)
            if ended.status != 0:
                raise RuntimeError(f"{target.format}, {target.command}: {ended.stderr[-2000:]}")
            self._expected[number] = json.loads(place.report.read_text())["value"]
            place.remove()
        return self._expected[number]


def summarise(results: list[CaseResult]) -> str:
    """Return the counts of outcomes by format and by command as Markdown tables."""
    present = list(Outcome)
    lines = []
    for title, key in (("format", "format"), ("command", "command")):
        lines += [f"| {title} | cases | {' | '.join(present)} |"]
        lines += ["|---" + "|---:" * (len(present) + 1) + "|"]
        groups: dict[str, Counter[Outcome]] = {}
        for result in results:
            groups.setdefault(getattr(result, key), Counter())[result.outcome] += 1
        total: Counter[Outcome] = Counter(result.outcome for result in results)
        for name, counts in [*sorted(groups.items()), ("**all**", total)]:
            cells = [str(counts[outcome]) for outcome in present]
            lines.append(f"| {name} | {sum(counts.values())} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def bugs(results: list[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.outcome in BUGS]


def _write_samples(folder: Path, only: str) -> None:
    """Write the samples in a child, so that this process starts no threads before it forks."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            write_samples(folder / "samples", only)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("the samples could not be written")


def _differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = sorted(before.keys() | after.keys())
    return [name for name in names if before.get(name) != after.get(name)]


def _fast_folder() -> str | None:
    """Return a folder in memory if there is one: commands wait until files are on disk."""
    memory = Path("/dev/shm")
    return (
        str(memory)
        if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**32
        else None
    )


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
