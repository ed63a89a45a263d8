"""Options that several commands share, with validation and shell completion.

Callbacks validate values while the command line is parsed, before a command imports torch or reads
a graph.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nfgnn import plugins
from nfgnn.cli import names
from nfgnn.errors import UserError, suggestion, unknown_name, writing
from nfgnn.files import expand_user
from nfgnn.object_store import check_url, is_remote

# NumPy's generators take seeds below 2**32; the last run of a command stays below it too.
MAX_SEED = 4_000_000_000
MAX_RUNS = 100_000

# Panels of the help text.
DATA = "Data"
MODEL = "Model and training"
EXECUTION = "Execution"
OUTPUT = "Output"


class Choice:
    """The names that an option accepts, in upper or lower case.

    Args:
        kind: what the names stand for, such as ``"model"``; used in error messages.
        choices: the names.
        group: entry point group of other packages whose names are also accepted.
    """

    def __init__(self, kind: str, choices: Sequence[str], group: str | None = None) -> None:
        self.kind = kind
        self.by_lower = {choice.lower(): choice for choice in choices}
        self.group = group

    def validate(self, given: str | None) -> str | None:
        """Return the name as it is registered; ``None``, an omitted option, is valid."""
        if given is None:
            return None
        name = self.by_lower.get(given.lower())
        if name is None and self.group is not None:
            # Other packages are only searched for names that this one does not have.
            if plugins.requested_imports():
                return given  # the names that these modules register are only known later
            name = self._plugins().get(given.lower())
        if name is None:
            choices = self.by_lower | self._plugins()
            raise unknown_name(self.kind, given, choices.values())
        return name

    def _plugins(self) -> dict[str, str]:
        """Return the names of other packages."""
        found = [] if self.group is None else plugins.plugin_names(self.group)
        return {name.lower(): name for name in found}

    def complete(self, incomplete: str) -> list[str]:
        """Return the names that start with what has been typed.

        Shells only accept completions that continue the typed letters, so a name is offered in
        lower case if its own case does not match.
        """
        by_lower = self.by_lower | self._plugins()
        matching = [name for name in by_lower.values() if name.startswith(incomplete)]
        return matching or [name for name in by_lower if name.startswith(incomplete.lower())]


MODELS = Choice("model", names.MODELS, plugins.MODELS)
DATASETS = Choice("data set", names.DATASETS)
PROTOCOLS = Choice("protocol", names.PROTOCOLS)
PRESETS = Choice("preset", names.PRESETS)
METRICS = Choice("metric", ("auto", *names.METRICS))
SELECTIONS = Choice("selection rule", ("auto", "loss", "metric"))
CLASS_WEIGHTS = Choice("class weight", ("none", "balanced"))
ENGINES = Choice("engine", ("local", "ray"))
DEVICES = Choice("device", ("auto", "cpu", "cuda"))
BASES = Choice("basis", names.BASES, plugins.BASES)


def validate_dataset(given: str | None) -> str | None:
    """Refuse a graph that is neither a registered name nor an existing file or folder."""
    if given is None or _is_registered(given):
        return given
    if is_remote(given):
        return validate_url(given)
    with writing(Path(given)):
        if expand_user(given).exists():
            return given
    hint = suggestion(given, names.DATASETS) or "; `nfgnn datasets` lists the names"
    raise UserError(f"'{given}' is neither a data set nor an existing file or folder{hint}")


def validate_url(given: str) -> str:
    """Refuse a URL with a password. Whether it exists is found out when it is read."""
    if is_remote(given):
        check_url(given)
    return given


def _is_registered(name: str) -> bool:
    """Whether a data set has this name, whatever its case, dashes and spaces."""
    letters = _letters(name)
    return any(letters == _letters(registered) for registered in names.DATASETS)


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def validate_root(given: Path | None) -> Path | None:
    """Refuse a data root in the home folder of an unknown user."""
    if given is not None:
        expand_user(given)
    return given


def validate_device(given: str) -> str:
    """Refuse an unknown kind of device. Only torch knows whether the device is available."""
    kind = given.partition(":")[0]
    # Other backends of torch are accepted, although they are not tested.
    if kind.lower() not in (*DEVICES.by_lower, "mps", "xpu"):
        hint = suggestion(kind, DEVICES.by_lower)
        raise UserError(f"unknown device '{given}': use auto, cpu or cuda{hint}")
    return given


def validate_basis(given: str) -> str:
    """Refuse an unknown basis; parameters may follow its name, as in ``jacobi(0.5, 1)``."""
    BASES.validate(given.partition("(")[0].strip())
    return given


def validate_preset(given: str) -> str:
    """Refuse a preset that is neither a kind nor an existing TOML file."""
    if not Path(given).suffix:
        if given.lower() not in PRESETS.by_lower:
            raise UserError(
                f"unknown preset '{given}': choose one of {', '.join(PRESETS.by_lower)}, or a "
                f".toml file{suggestion(given, PRESETS.by_lower)}"
            )
        return given.lower()
    with writing(Path(given)):
        if not expand_user(given).is_file():
            raise UserError(f"preset file {given} does not exist: check the path")
    return given


def import_modules(context: typer.Context, given: list[str] | None) -> list[str] | None:
    """Import the modules of ``--import``, unless the shell only asks for completions."""
    if given and not context.resilient_parsing:
        plugins.import_modules(given)
    return given


def check_output_folder(folder: Path | None) -> None:
    """Refuse a folder that cannot be created, because a file is in the way."""
    if folder is None:
        return
    # A path has lost the second slash of a URL.
    scheme = folder.parts[0] if folder.parts else ""
    if scheme.endswith(":") and len(scheme) > 2:
        raise UserError(
            f"cannot write {folder}: only stores are written to object storage; choose a local "
            "--out, and copy the folder afterwards"
        )
    for place in (folder, *folder.parents):
        if place.is_dir():
            return
        if place.exists():
            raise UserError(f"cannot create {folder}: {place} is a file; choose another --out")


def check_published_folder(folder: Path | None) -> None:
    """Refuse a folder that cannot be replaced as a whole, such as the current one."""
    if folder is not None and not folder.name:
        raise UserError(
            f"--out {folder} is not a new folder: choose one, such as {folder / 'results'}"
        )
    check_output_folder(folder)


def check_output_file(file: Path, *endings: str) -> None:
    """Refuse a file in a missing folder, or with an extension that is not in ``endings``."""
    if endings and file.suffix.lower() not in endings:
        raise UserError(f"{file} has an unsupported extension: use {' or '.join(endings)}")
    if not file.parent.is_dir():
        raise UserError(
            f"the folder {file.parent} does not exist: create it, or choose another path"
        )
    if file.is_dir():
        raise UserError(f"{file} is a folder: pass the path of a file")


def _dataset_argument(help_text: str) -> Any:
    return typer.Argument(
        metavar="DATASET",
        help=help_text,
        callback=validate_dataset,
        autocompletion=DATASETS.complete,
    )


Dataset = Annotated[
    str,
    _dataset_argument("Registered data set, or path or URL of your own graph (file or folder)."),
]
DatasetOrStore = Annotated[
    str,
    _dataset_argument(
        "Registered data set, or path or URL of your own graph (file or folder) or of a store."
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the raw data sets. Default: $NFGNN_DATA, then the cache directory.",
        callback=validate_root,
        rich_help_panel=DATA,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Assign a column of your own graph to a role: id, label, split, source, target or "
        "weight. drop=NAME excludes a column from the features; category=NAME treats a column "
        "as categorical. Repeatable.",
        rich_help_panel=DATA,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="PROTOCOL",
        help=f"How to split the nodes: {', '.join(names.PROTOCOLS)}. Default: full for a "
        "registered data set; for your own graph, the split in its files if there is one, "
        "otherwise stratified.",
        callback=PROTOCOLS.validate,
        autocompletion=PROTOCOLS.complete,
        rich_help_panel=DATA,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a hyper-parameter. Repeatable. `nfgnn models NAME` lists them.",
        rich_help_panel=MODEL,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="METRIC",
        help=f"Metric to report: {', '.join(names.METRICS)}. Default: the official metric of a "
        "registered data set; for your own graph, ROC-AUC if it has two classes and one of them "
        "has less than 30 % of the nodes, otherwise accuracy.",
        callback=METRICS.validate,
        autocompletion=METRICS.complete,
        rich_help_panel=MODEL,
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Validation score that selects the best epoch: loss or metric. Default: loss if "
        "the metric is accuracy, otherwise metric.",
        callback=SELECTIONS.validate,
        autocompletion=SELECTIONS.complete,
        rich_help_panel=MODEL,
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        metavar="WEIGHT",
        help="Class weights in the training loss: none, or balanced to weight rare classes more.",
        callback=CLASS_WEIGHTS.validate,
        autocompletion=CLASS_WEIGHTS.complete,
        rich_help_panel=MODEL,
    ),
]
RunSeed = Annotated[
    int | None,
    typer.Option(
        help="Seed of the run to load. Default: the seed with the best validation score.",
        rich_help_panel=MODEL,
    ),
]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import a Python module that registers your own models, bases or gates. This runs "
        "its code. Repeatable.",
        callback=import_modules,
        is_eager=True,
        rich_help_panel=MODEL,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE",
        help="Device to run on: auto, cpu, cuda or cuda:N.",
        callback=validate_device,
        autocompletion=DEVICES.complete,
        rich_help_panel=EXECUTION,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="ENGINE",
        help="Where to run: local, or ray for a Ray cluster.",
        callback=ENGINES.validate,
        autocompletion=ENGINES.complete,
        rich_help_panel=EXECUTION,
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        help="Address of a Ray cluster. Default: $RAY_ADDRESS, otherwise a new local cluster.",
        rich_help_panel=EXECUTION,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the result as one JSON object.", rich_help_panel=OUTPUT),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace existing output of nfgnn, even if its content differs.",
        rich_help_panel=OUTPUT,
    ),
]
RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Run folder written by `nfgnn train` or `nfgnn auto`."),
]
