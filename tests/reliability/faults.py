"""Full, read-only, refusing and unreadable disks at every file event of a command."""

import errno
from dataclasses import dataclass
from pathlib import Path

from reliability.harness import Outcome, Prepared, Server, content, damage, difference


@dataclass(frozen=True)
class Fault:
    """A disk that fails from some file event on, or at one event only."""

    error: int
    lasting: bool
    deletes: bool = False
    reads: bool = False
    """Whether reading fails, not writing."""


FAULTS = {
    "full": Fault(errno.ENOSPC, lasting=True),
    "read-only": Fault(errno.EROFS, lasting=True, deletes=True),
    "one refusal": Fault(errno.EACCES, lasting=False),
}
READ_FAULTS = {
    "unreadable": Fault(errno.EIO, lasting=True, reads=True),
    "one bad sector": Fault(errno.EIO, lasting=False, reads=True),
}


def try_fault(
    server: Server, prepared: Prepared, fault: Fault, at: int, folder: Path
) -> tuple[Outcome, str | None]:
    """Run a command that meets a fault, then the same command again on a working disk.

    Returns:
        How the first command ended, and what is wrong with its end, its files or the second one.
    """
    work = prepared.fresh(folder)
    command = prepared.case.command
    how = (fault.error, fault.lasting, fault.deletes, fault.reads)
    outcome = server.run(command, work, at, *how)
    if not outcome.failed:  # the command has fewer events
        return outcome, None
    problem = outcome.problem() or damage(prepared, work)
    if outcome.status == 0 and problem is None:
        # What could not be deleted is left to the next command.
        found = content(work)
        problem = difference(prepared.after, {k: found.get(k) for k in prepared.after})
    if problem is None:
        problem = finish(server, prepared, work)
    return outcome, problem


def finish(server: Server, prepared: Prepared, work: Path) -> str | None:
    """Run the command again, and return how its result differs from that of a whole one."""
    again = server.run(prepared.case.command, work)
    if again.status != 0:
        return f"cannot be repeated: {again.output[-300:]}"
    return difference(prepared.after, content(work))
