"""The outcome classes, and the rules that tell them apart."""

import re
import signal
from dataclasses import dataclass
from enum import StrEnum

from nfgnn.errors import printable

_REMEDIES = (
    r"add|allow|ask|change|check|choose|compute|convert|copy|correct|create|creates?|did you mean|"
    r"download|drop|encode|export|extract|fill|fix|free|give|install|keep|leave|lists?|lower|"
    r"make|merge|move|must|name|needs?|omit|only|pass|precompute|read from|reduce|remove|rename|"
    r"renumber|repair|replace|requires?|required|restore|run|put|save|search|select|set|shorten|"
    r"split|bin it|"
    r"store|supports?|takes?|train|try|use|wait|write|are read from|is read from|"
    r"are numbers or text|are numbered"
)
_REMEDY = re.compile(rf"\b({_REMEDIES})\b", re.IGNORECASE)
_ITEM = re.compile(r"\d+\. |… and \d+ more")
# Escape sequences change the terminal, and the others change the order or the place of the text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Outcome(StrEnum):
    """What happened to a case."""

    OK = "ok"
    """Accepted, and the oracle agrees."""
    REFUSED = "refused"
    """Status 2 and one message that names the file or option and a remedy."""
    UNCLEAR = "unclear"
    """Refused, but the message lacks the file or the remedy, is repeated, or has control codes."""
    TRACEBACK = "traceback"
    """An unexpected error: a traceback or a crash report."""
    HANG = "hang"
    """The time ran out."""
    CRASH = "crash"
    """The interpreter was ended by a signal."""
    MEMORY = "memory"
    """The memory ran out, instead of being checked before."""
    EXECUTED = "code executed"
    """A payload ran."""
    WRONG = "silently wrong"
    """Accepted, although the oracle disagrees."""
    DAMAGED = "damaged"
    """A file changed that the command only reads, or a refused command left output behind."""


BUGS = frozenset(Outcome) - {Outcome.OK, Outcome.REFUSED}


@dataclass(frozen=True)
class Ended:
    """How the process of a case ended, and what it left."""

    status: int | None
    """Exit status; ``None`` after a signal or a timeout."""
    signal: int | None
    timed_out: bool
    peak_bytes: int
    stdout: str
    stderr: str
    problems: list[str]
    """What the oracle found."""
    executed: bool
    changed: list[str]
    """Files outside the output folder that changed, and leftovers of a refused command."""
    crash_report: str
    """The text of a crash report, or an empty string."""


def classify(ended: Ended, names: list[str], memory_bytes: int) -> tuple[Outcome, str]:
    """Return the outcome of a case and a sentence about it.

    Args:
        ended: how the process ended.
        names: texts of which a refusal must contain one: the file, its folder, or the option.
        memory_bytes: more than this is too much memory.
    """
    if ended.executed:
        return Outcome.EXECUTED, "the canary exists"
    if ended.changed:
        return Outcome.DAMAGED, ", ".join(ended.changed[:5])
    if ended.timed_out or ended.signal == signal.SIGXCPU:
        return Outcome.HANG, "the time ran out"
    if ended.peak_bytes > memory_bytes or "not enough memory" in ended.stderr:
        return Outcome.MEMORY, f"{ended.peak_bytes / 2**20:,.0f} MiB"
    if ended.signal is not None:
        return Outcome.CRASH, signal.Signals(ended.signal).name
    if ended.crash_report or "Traceback (most recent call last)" in ended.stderr:
        lines = (ended.crash_report or ended.stderr).strip().splitlines()
        return Outcome.TRACEBACK, lines[-1][:300]
    if ended.status == 0:
        return _judge_accepted(ended)
    if ended.status == 2:
        return _judge_refusal(ended, names)
    return Outcome.TRACEBACK, f"status {ended.status}"


def _judge_accepted(ended: Ended) -> tuple[Outcome, str]:
    if ended.problems:
        return Outcome.WRONG, "; ".join(ended.problems[:3])
    control = _CONTROL.search(ended.stdout + ended.stderr)
    if control:
        return Outcome.UNCLEAR, f"the output contains the control code {control[0]!r}"
    return Outcome.OK, ""


def _without_list(lines: list[str]) -> str:
    """Return the last line; that of a numbered list of errors is all of the list."""
    place = len(lines) - 1
    while place > 0 and _ITEM.match(lines[place]):
        place -= 1
    return " ".join(lines[place:])


def _judge_refusal(ended: Ended, names: list[str]) -> tuple[Outcome, str]:
    output = ended.stderr.strip() or ended.stdout.strip()
    control = _CONTROL.search(ended.stdout + ended.stderr)
    if control:
        return Outcome.UNCLEAR, f"the message contains the control code {control[0]!r}"
    if output.startswith("Usage:"):  # of the parser of the command line
        return Outcome.REFUSED, output.splitlines()[-2]
    lines = output.splitlines()
    if not lines:
        return Outcome.UNCLEAR, "there is no message"
    message = _without_list(lines)
    if len(message) > 3000:
        return Outcome.UNCLEAR, f"the message has {len(message)} characters"
    if sum(line.startswith("nfgnn: ") for line in lines) > 1:
        return Outcome.UNCLEAR, "there are several messages"
    if ended.stderr and not message.startswith("nfgnn: "):
        return Outcome.UNCLEAR, f"the last line is no message: {message[:200]}"
    # Messages are one line and are cut, so a long name need not be there as a whole.
    # A path is named as it is read; the home folder of a case is called "home".
    named = [*names, *(f"/home{name[1:]}" for name in names if name.startswith("~"))]
    if names and not any(printable(name)[:200] in output for name in named):
        return Outcome.UNCLEAR, f"no file or option is named: {message[:300]}"
    if not _REMEDY.search(message):
        return Outcome.UNCLEAR, f"no remedy is named: {message[:300]}"
    return Outcome.REFUSED, message
