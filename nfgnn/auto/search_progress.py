"""The progress of a search, whose number of runs is not known."""

from collections.abc import Callable

from nfgnn.progress import Progress


class SearchProgress(Progress):
    """Passes the state of single runs on to the display of a search.

    The display advances by the budget used, because the number of runs is not known.

    Args:
        display: what the user sees.
        status: completes a line about a run.
        done: returns how much of the budget is used.
    """

    def __init__(
        self, display: Progress, status: Callable[[str], str], done: Callable[[], float]
    ) -> None:
        super().__init__(quiet=True)
        self._display = display
        self._describe = status
        self._used = done

    def status(self, text: str, done: float | None = None) -> None:
        self._display.status(self._describe(text), self._used())

    def advance(self, amount: float, status: str, count: int = 1, plain: bool = True) -> None:
        self.status(status)
