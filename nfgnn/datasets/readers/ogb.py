from pathlib import Path
from typing import Any


def read_ogb(entry: Any, folder: Path) -> Any: ...


def read_ogb_mapped(entry: Any, folder: Path) -> Any: ...
