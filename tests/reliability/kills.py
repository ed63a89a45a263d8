"""Commands that are killed with SIGKILL, and resumed."""

import random
from pathlib import Path

from reliability.faults import finish
from reliability.harness import Outcome, Prepared, Server, damage


def kill_at_event(
    server: Server, prepared: Prepared, at: int, folder: Path
) -> tuple[Outcome, str | None]:
    """Kill a command just before a file event, and run it again.

    Returns:
        How the killed command ended, and what is wrong with the result, if anything is.
    """
    work = prepared.fresh(folder)
    outcome = server.run(prepared.case.command, work, at)
    return outcome, damage(prepared, work) or finish(server, prepared, work)


def kill_at_moment(
    server: Server, prepared: Prepared, seconds: float, folder: Path
) -> tuple[Outcome, str | None]:
    """Kill a command after some time, wherever it is, and run it again."""
    work = prepared.fresh(folder)
    outcome = server.run(prepared.case.command, work, kill_after=seconds)
    return outcome, damage(prepared, work) or finish(server, prepared, work)


def random_events(prepared: Prepared, count: int, seed: int) -> list[int]:
    """Return different file events of a command, in order."""
    events = range(1, prepared.events + 1)
    return sorted(random.Random(seed).sample(events, min(count, len(events))))
