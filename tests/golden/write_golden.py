"""Write the golden files from the code as it is.

Command: ``python tests/golden/write_golden.py --root DIR``.

Only a change of numbers that is wanted is a reason to run this; its commit says why. The files
named ``*_v1`` were written by the first version and are never written again: they show that a
later version still reads them. ``--v1`` makes them, where they are missing.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.tools import HERE, Shell, write_golden
from golden.values import (
    ON_CPU,
    RUN_FOLDER,
    TEXAS_FULL,
    TEXAS_TIME,
    WITH_DATA,
    WITHOUT_DATA,
    Place,
    write_run,
)


def write_first_version(shell: Shell, folder: Path, root: Path) -> None:
    """The run folder and the records that later versions must read."""
    if not RUN_FOLDER.exists():
        write_run(shell, folder / "run")
        shutil.copytree(folder / "run", RUN_FOLDER, ignore=shutil.ignore_patterns("*.png"))
    if not (HERE / "records_v1.sqlite").exists():
        out = folder / "records"
        for item in (TEXAS_FULL, TEXAS_TIME):
            shell.run("reproduce", *item, *ON_CPU, "--root", str(root), "--out", str(out))
        for end in ("csv", "configs.json", "sqlite"):
            shutil.copy(out / f"records.{end}", HERE / f"records_v1.{end}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all golden files, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="Only these values.")
    parser.add_argument("--root", type=Path, required=True, help="Folder of the raw files.")
    parser.add_argument("--v1", action="store_true", help="Also make missing files of version 1.")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shell = Shell(folder)
        if options.v1:
            (folder / "v1").mkdir()
            write_first_version(shell, folder / "v1", root)
        for compute in (*WITHOUT_DATA, *WITH_DATA):
            name = compute.__name__
            if not options.names or name in options.names:
                (folder / name).mkdir()
                write_golden(name, compute(Place(shell, folder / name, root)))
                print(f"written: {name}.json", flush=True)
        shell.close()


if __name__ == "__main__":
    main()
