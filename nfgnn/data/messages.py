"""Pieces of text that error messages and notes share."""


def first_line(error: BaseException, limit: int = 200) -> str:
    """Return the first line of an error's message, or the name of its class."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:limit]


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural: ``1 edge``, ``2,000 edges``."""
    plural = "s" if count > 1 else ""
    return f"{count:,} {noun}{plural}"


def quoted(name: str, limit: int = 60) -> str:
    """Return a name in quotation marks, shortened: that of a damaged file may be very long."""
    return repr(name if len(name) <= limit else f"{name[:limit]}…")


def few(names: list[str]) -> str:
    """Join names by commas, and shorten a long list."""
    if len(names) <= 6:
        return ", ".join(names)
    return f"{', '.join(names[:5])}, … ({len(names)} in all)"
