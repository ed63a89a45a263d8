"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """A mistake in a file, a value or an option.

    The message is one sentence or two that say what is wrong, where, and how to mend it. The command line prints
    it and ends with status 2; in Python it is an ordinary exception.
    """
