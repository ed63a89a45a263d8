"""What is known about one dataset: where its raw files lie, how they are read, what is in them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Reader = Callable[["Entry", Path], Any]


@dataclass(frozen=True)
class Entry:
    """What we know about one dataset."""

    name: str
    title: str
    reader: Reader
    folder: str  # below the data root
    urls: dict[str, str]  # file in the folder → address; an archive unpacks into the folder
    nodes: int
    edges: int
    features: int
    classes: int
    source: str
    megabytes: float  # of the download, about
    metric: str = "accuracy"
    pyg: tuple[str, dict[str, Any]] | None = None  # class and arguments
    archive: bool = False
    measured: bool = False
    defect: str = ""
    licence: str = "not stated"
    files: tuple[str, ...] = ()  # what must be there, when it is not the keys of `urls`

    @property
    def required(self) -> tuple[str, ...]:
        """The raw files that must be present."""
        return self.files or tuple(self.urls)
