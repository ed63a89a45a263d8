"""Write ``fingerprints.txt``: ``python -m nfgnn.data.write_fingerprints DATA``."""

import argparse
from pathlib import Path

from nfgnn.data.download import is_available
from nfgnn.data.fingerprints import FILE, Size, content_hash, known_fingerprints
from nfgnn.data.load import load_dataset
from nfgnn.data.registry import REGISTRY
from nfgnn.files import atomic_write


def write_fingerprints(root: Path, file: Path = FILE) -> list[str]:
    """Write the fingerprints of all registered data sets whose raw files are below ``root``.

    Data sets that are not available keep the line that they have.

    Returns:
        The names of the data sets that were hashed.
    """
    lines = ["# python -m nfgnn.data.write_fingerprints DATA"]
    hashed = []
    known = known_fingerprints()
    for entry in REGISTRY.values():
        size, digest = known.get(entry.name, (None, ""))
        if entry.large_reader is None and is_available(entry, root):
            data = load_dataset(entry.name, root)
            size = Size.of(data)
            digest = content_hash(data)
            hashed.append(entry.name)
        if size is not None:
            lines.append(f"{digest} {size.nodes} {size.edges} {size.features} {entry.name}")
    atomic_write(file, "\n".join(lines) + "\n")
    return hashed


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("root", type=Path, help="folder of the raw data sets")
    print("hashed:", *write_fingerprints(parser.parse_args().root))


if __name__ == "__main__":
    _main()
