"""``python -m tests.fuzz``: run cases, or repeat one."""

import argparse
import math
import os
import resource
import sys
import time
from pathlib import Path

import torch

from .campaign import Campaign, CaseResult, bugs, summarise

_MEMORY_BYTES = 12 * 2**30
_RESULT = """# Result of the fuzzer

`{command}` on {machine}: {cases} cases in {minutes:.0f} minutes, {bugs} bugs.
[docs/fuzzing.md](../../docs/fuzzing.md) explains the outcomes.

{summary}"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="number of cases of each seed")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="seeds of the cases")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no case after")
    parser.add_argument("--only", default="", help="only formats that contain this text")
    parser.add_argument("--case", help="repeat the case with this id and print everything")
    parser.add_argument("--result", type=Path, help="Markdown file for the summary")
    parser.add_argument("--machine", default=f"{os.cpu_count()} cores", help="for the summary")
    options = parser.parse_args()
    _bound_memory()
    torch.set_num_threads(1)  # a fork has only the thread that calls it
    with Campaign.open(options.only) as campaign:
        if options.case:
            return _repeat(campaign, options.case)
        start = time.perf_counter()
        results = _run_all(campaign, options.seed, options.cases, start + options.seconds)
        seconds = time.perf_counter() - start
    found = bugs(results)
    summary = summarise(results)
    print(summary)
    print(f"{len(results)} cases in {seconds:.0f} s, {len(found)} bugs")
    if options.result:
        seeds = " ".join(map(str, options.seed))
        text = _RESULT.format(
            command=f"make fuzz CASES={options.cases} SEED='{seeds}'",
            machine=options.machine,
            cases=len(results),
            minutes=seconds / 60,
            bugs=len(found),
            summary=summary,
        )
        options.result.write_text(text, encoding="utf-8")
    return 1 if found else 0


def _bound_memory() -> None:
    """Let a mistake of the fuzzer itself end in an error, not in a machine without memory."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _run_all(campaign: Campaign, seeds: list[int], cases: int, end: float) -> list[CaseResult]:
    results = []
    for case_id in (f"{seed}-{number}" for seed in seeds for number in range(cases)):
        if time.perf_counter() > end:
            break
        result, _ = campaign.run(case_id)
        results.append(result)
        if bugs([result]):
            print(
                f"{result.id}  {result.outcome}  {result.format} / {result.command}  "
                f"[{result.mutation}]  {result.detail}",
                flush=True,
            )
    return results


def _repeat(campaign: Campaign, case_id: str) -> int:
    result, ended = campaign.run(case_id, keep=True)
    print(f"{result.format} / {result.command}  [{result.mutation}]")
    print(f"--- standard output\n{ended.stdout}\n--- standard error\n{ended.stderr}")
    print(ended.crash_report)
    print(f"--- {result.outcome}: {result.detail}")
    return 1 if bugs([result]) else 0


if __name__ == "__main__":
    sys.exit(main())
