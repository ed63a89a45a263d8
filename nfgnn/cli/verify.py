"""``nfgnn verify``: compare the files of a store or a run folder with their checksums."""

from pathlib import Path
from typing import Annotated

import typer

from nfgnn.cli import options
from nfgnn.cli._print import print_json
from nfgnn.errors import UserError, printable
from nfgnn.object_store import is_remote

app = typer.Typer()


@app.command(
    epilog="Example:  nfgnn verify runs/texas-NFGNN-full-1a2b3c4d",
)
def verify(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="Store (folder or URL), run folder, or saved model.",
            callback=options.validate_url,
            show_default=False,
        ),
    ],
    import_: options.Import = None,
    json_: options.Json = False,
) -> None:
    """Verify the checksums of all files in a store or run folder.

    Exits with status 0 if all files are intact, otherwise with status 2.
    """
    from nfgnn.auto import is_auto_folder, verify_auto
    from nfgnn.store import is_store, verify_store
    from nfgnn.training import verify_run

    folder = Path(path)
    if not is_remote(path):
        path = str(folder)
        if not folder.is_dir():
            raise UserError(f"{path} is not a folder: pass a store or a run folder")
    if is_store(path):
        kind = "store"
        files, damaged = verify_store(path)
    elif is_remote(path):
        raise UserError(f"{path} is not a store: it has no manifest.json; check the URL")
    elif is_auto_folder(folder):
        kind = "run folder"
        files, damaged = verify_auto(folder)
    elif any((folder / name).is_file() for name in ("config.json", "classifier.json")):
        kind = "run folder"
        files, damaged = verify_run(folder)
    else:
        raise UserError(
            f"{path} is neither a store nor a run folder: it has no manifest.json, config.json or "
            "classifier.json"
        )
    if json_:
        listed = [{"file": name, "problem": problem} for name, problem in damaged.items()]
        print_json({"path": path, "kind": kind, "files": files, "damaged": listed})
    else:
        for name, problem in damaged.items():
            print(printable(f"{path}/{name}: {problem}"))
        print(printable(_conclusion(path, kind, files, len(damaged))))
    if damaged:
        raise typer.Exit(2)


def _conclusion(path: str, kind: str, files: int, damaged: int) -> str:
    if damaged:
        return f"{path}: {damaged} damaged; recreate the {kind}, or restore it from a copy"
    if not files:
        return f"{path}: readable; this {kind} predates checksums and cannot be verified further"
    return f"{path}: {files} files, all intact"
