"""Collect the errors of one source, so that a user corrects them at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nfgnn.errors import UserError

_SHOWN = 10


class SeveralErrors(UserError):
    """Several errors of one source as a numbered list.

    Args:
        messages: the messages of the errors.
    """

    def __init__(self, messages: Sequence[str]) -> None:
        self.messages = list(messages)
        lines = [f"{i}. {text}" for i, text in enumerate(self.messages[:_SHOWN], start=1)]
        if len(self.messages) > _SHOWN:
            lines.append(f"… and {len(self.messages) - _SHOWN} more")
        title = f"{len(self.messages)} errors:"
        super().__init__(title)
        self.args = ("\n".join([title, *lines]),)  # a message is one line otherwise


class Problems:
    """The errors that were found so far."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Keep the error of this block for :meth:`raise_all`."""
        try:
            yield
        except SeveralErrors as error:
            self.messages += error.messages
        except UserError as error:
            self.messages.append(str(error))

    def raise_all(self) -> None:
        """Raise what was collected as one error."""
        if len(self.messages) == 1:
            raise UserError(self.messages[0])
        if self.messages:
            raise SeveralErrors(self.messages)
