"""The pairs of a format and a command that the fuzzer tries."""

import os
import random
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nfgnn.data import REGISTRY
from nfgnn.training import SETTINGS

from . import actions
from .actions import Action, command, predictions
from .hostile_values import file_name, hostile_number, hostile_text
from .mutate import mutate_file
from .place import Place
from .samples import FAST, RAW, published_hashes
from .seals import remove_seals, seal_folder, seal_store, seal_store_files

NO_PERMISSION = "no permission"


@dataclass
class Prepared:
    """The input of a case."""

    mutation: str
    names: list[str] = field(default_factory=list)
    """A refusal must contain one of these texts."""
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the case."""
    unprivileged: bool = False
    """Whether the case must run without the permissions of root."""


@dataclass(frozen=True)
class Target(ABC):
    """A format and a command.

    Args:
        format: what is mutated.
        command: what reads it.
        action: the call.
        weight: how often it is tried.
        protected: whether an accepted input must give the value of the unchanged sample.
        writes_input: whether the command may change its input.
        adds_files: whether the command may add files to its input.
    """

    format: str
    command: str
    action: Action
    weight: int = 1
    protected: bool = False
    writes_input: bool = False
    adds_files: bool = False

    @abstractmethod
    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        """Write the input of a case."""

    @abstractmethod
    def prepare_sample(self, place: Place, samples: Path) -> None:
        """Write the input without a mutation."""


@dataclass(frozen=True)
class FileTarget(Target):
    """One file of a sample is mutated.

    Args:
        sample: file or folder below a set of samples.
        files: pattern of the files that are mutated.
        before: changes the copy of the sample before its mutation.
        after: changes it after the mutation.
        also: other names of the input, such as that of a data set.
    """

    sample: str = ""
    files: str = "*"
    before: Callable[[Path], None] | None = None
    after: Callable[[Path], None] | None = None
    also: tuple[str, ...] = ()

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        copy = self._copy(place.input, samples)
        files = [copy]
        if copy.is_dir():
            files = [path for path in sorted(copy.rglob(self.files)) if path.is_file()]
        path = rng.choice(files)
        other = samples.with_name("two") / self.sample / path.relative_to(copy)
        name = mutate_file(rng, path, other)
        if self.after and copy.is_dir():
            self.after(copy)
        names = [path.name, copy.name, path.parent.name, *self.also]
        return Prepared(
            f"{name}: {path.relative_to(place.input)}", names, unprivileged=name == NO_PERMISSION
        )

    def prepare_sample(self, place: Place, samples: Path) -> None:
        self._copy(place.input, samples)

    def _copy(self, folder: Path, samples: Path) -> Path:
        source = samples / self.sample
        parts = Path(self.sample).parts
        copy = folder.joinpath(*parts[1:]) if len(parts) > 1 else folder / self.sample
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copyfile(source, copy)
        if self.before:
            self.before(copy)
        return copy


@dataclass(frozen=True)
class CacheTarget(FileTarget):
    """A file of the cache folder is mutated between two loads, which must give the same graph."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        self._copy(place.input, samples)
        return Prepared("cache", [], [str(rng.randrange(2**32))])


@dataclass(frozen=True)
class NameTarget(FileTarget):
    """The graph itself has a hostile name."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        copy = self._copy(place.input, samples)
        renamed = copy.with_name(file_name(rng) + copy.suffix)
        copy.rename(renamed)
        return Prepared(f"name {renamed.name[:60]!a}", [], [str(renamed)])


@dataclass(frozen=True)
class LabelTarget(FileTarget):
    """Classes, nodes and features of a valid table have hostile names."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        copy = self._copy(place.input, samples)
        nodes = copy / "nodes.csv"
        rows = [line.split(",") for line in nodes.read_text().splitlines()]
        texts = [_quoted(hostile_text(rng)) for _ in range(3)]
        for row in rows[1:]:
            row[1] = texts[int(row[1].strip('"')[-1])]
        if rng.random() < 0.3:
            rows[0][3] = _quoted(hostile_text(rng))
        nodes.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
        return Prepared(f"names {', '.join(texts)[:80]!a}", ["nodes.csv", "graph", "label"])


@dataclass(frozen=True)
class OptionTarget(Target):
    """An option has a hostile value.

    Args:
        options: the options, of which one is chosen.
    """

    options: tuple[str, ...] = ()

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        option = rng.choice(self.options)
        value = _option_value(rng)
        arguments = [option, value]
        if option in ("--set", "--column"):
            key = rng.choice([*SETTINGS, "unknown"]) if option == "--set" else "label"
            if key == "epochs":  # a large number is valid, and takes long
                value = rng.choice(["0", "-1", "nan", "inf", "x", "1.5", "[]", "true"])
            arguments = [option, rng.choice([f"{key}={value}"] * 9 + [value])]
        elif not option.startswith("-"):
            arguments = [value]
        key = arguments[-1].partition("=")[0]
        words = option.lstrip("-").replace("-", "_")
        names = [option, option.lstrip("-"), words, key[:20], value[:20], ascii(value)[1:20]]
        if self.format == "Python argument":
            names = [arguments[-1].partition("=")[0], "graph", "seed", "protocol"]
        return Prepared(" ".join(ascii(part) for part in arguments)[:100], names, arguments)

    def prepare_sample(self, place: Place, samples: Path) -> None:
        raise NotImplementedError("an option has no unchanged value")


@dataclass(frozen=True)
class RequestTarget(Target):
    """A client sends something to the server."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        seed = str(rng.randrange(2**32))
        return Prepared(f"request {seed}", [], [seed])

    def prepare_sample(self, place: Place, samples: Path) -> None:
        raise NotImplementedError("a request has no unchanged value")


@dataclass(frozen=True)
class EnvironmentTarget(Target):
    """An environment variable has a hostile value."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        variables = ("HOME", "XDG_CACHE_HOME", "TMPDIR", "NFGNN_DATA", "COLUMNS", "TERM", "LANG")
        name = rng.choice(variables)
        file = place.input / "file"
        file.write_text("x")
        paths = ["", "/", "/nonexistent/x", "/dev/null", str(file), str(file / "x"), "relative"]
        value = rng.choice([*paths, _option_value(rng)[:3000]])
        return Prepared(f"{name}={value[:60]!a}", environment={name: value})

    def prepare_sample(self, place: Place, samples: Path) -> None:
        raise NotImplementedError("a variable has no unchanged value")


@dataclass(frozen=True)
class ForeignTarget(FileTarget):
    """The output folder exists and holds files of the user, which must stay."""

    def prepare(self, rng: random.Random, place: Place, samples: Path) -> Prepared:
        name = rng.choice(sorted(path.name for path in (samples / self.sample).iterdir()))
        shutil.copytree(samples / self.sample / name, place.input / "output")
        overwrite = rng.choice([[], ["--overwrite"]])
        return Prepared(f"files of the user in a folder like {name!r}", ["output"], overwrite)


def _quoted(text: str) -> str:
    plain = text.encode(errors="replace").decode().replace("\x00", "?")[:300]
    return '"' + plain.replace('"', '""') + '"'


def _option_value(rng: random.Random) -> str:
    value = str(hostile_number(rng)) if rng.random() < 0.4 else hostile_text(rng)
    # An argument of a process has no NUL, and bytes that are not text are surrogates.
    return os.fsdecode(value.replace("\x00", "").encode(errors="replace"))


def all_targets(samples: Path) -> list[Target]:
    """Return all targets.

    Args:
        samples: the first set of samples.
    """
    return [
        *_graph_targets(),
        *_raw_targets(samples),
        *_run_targets(),
        *_search_targets(),
        *_store_targets(),
        *_serving_targets(),
        *_record_targets(),
        *_option_targets(),
        *_surrounding_targets(),
    ]


def _graph_targets() -> list[Target]:
    places = {
        "CSV": ("csv/graph", "graph"),
        "TSV": ("tsv/graph", "graph"),
        "Parquet": ("parquet/graph", "graph"),
        "npz": ("npz/graph.npz", "graph.npz"),
        "npz, CSR": ("npz-csr/graph.npz", "graph.npz"),
        "pt": ("pt/graph.pt", "graph.pt"),
        "safetensors": ("safetensors/graph.safetensors", "graph.safetensors"),
    }
    train = ("--runs", "1", "--workers", "1", *FAST, "--out", "OUT/run", "--json")
    targets: list[Target] = []
    for format_, (sample, name) in places.items():
        graph = f"INPUT/{name}"
        every = {
            "load_dataset": (actions.load_graph, 8),
            "open_large": (actions.open_blocks, 2),
            "datasets": (command("datasets", graph, "--json"), 2),
            "train": (command("train", graph, *train), 2),
            "precompute": (command("precompute", graph, "--out", "OUT/s", "--K", "2", "--json"), 1),
            "predict": (predictions("SAMPLES/run/run", graph), 1),
        }
        for name_, (action, weight) in every.items():
            targets.append(FileTarget(format_, name_, action, weight, sample=sample))
    analyze = command(
        "analyze", "INPUT/graph", "--out", "OUT/a", "--json", check=actions.check_pages
    )
    targets.append(FileTarget("CSV", "analyze", analyze, sample="csv/graph"))
    extends = predictions(
        "SAMPLES/store-run/run", "INPUT/new-nodes", "--extends", "SAMPLES/csv/graph"
    )
    targets.append(FileTarget("CSV", "predict --extends", extends, 4, sample="new-nodes"))
    tune = ("--trials", "1", "--seeds", "0", "--model", "MLP", "--set", "epochs=2", "--json")
    action = command("tune", "INPUT/graph", *tune, "--storage", "OUT/t.sqlite")
    targets.append(FileTarget("CSV", "tune", action, 1, sample="csv/graph"))
    named = {
        "datasets": (command("datasets"), 3),
        "train": (command("train", *train[:-1]), 1),
        "analyze": (command("analyze", check=actions.check_pages), 1),
        "precompute": (command("precompute", "--out", "OUT/s", "--K", "2"), 1),
        "verify": (command("verify"), 1),
    }
    for name_, (action, weight) in named.items():
        targets.append(NameTarget("name", name_, action, weight, sample="csv/graph"))
    labelled = {
        "datasets": (command("datasets", "INPUT/graph"), 3),
        "train, explore": (actions.train_and_explore, 2),
        "analyze": (command("analyze", "INPUT/graph", check=actions.check_pages), 1),
    }
    for name_, (action, weight) in labelled.items():
        targets.append(LabelTarget("class names", name_, action, weight, sample="csv/graph"))
    return targets


def _raw_targets(samples: Path) -> list[Target]:
    hashes = published_hashes(samples / "raw")
    targets: list[Target] = []
    for name in RAW:
        folder = REGISTRY[name].folder
        sample = f"raw/{folder}"
        group = f"raw {folder.split('/')[0]}"
        load = actions.load_named(name, None)
        named = {"sample": sample, "also": (name,)}
        targets.append(FileTarget(group, "load_dataset", load, 4, **named))
        pinned = actions.load_named(name, hashes)
        targets.append(FileTarget(f"{group}, published", "load_dataset", pinned, 1, True, **named))
        describe = command("datasets", name, "--root", "INPUT", "--json")
        targets.append(FileTarget(group, "datasets", describe, 1, **named))
        cached = actions.load_twice(name)
        targets.append(CacheTarget("cache", "load_dataset", cached, 1, sample=sample))
    return targets


def _surrounding_targets() -> list[Target]:
    """Return targets of what surrounds an input: presets, environment, existing output."""
    short = ("--runs", "1", "--workers", "1", "--set", "epochs=2")
    graph = "SAMPLES/csv/graph"
    preset = command("train", graph, *short, "--preset", "INPUT/mlp.toml", "--out", "OUT/run",
                     "--json")  # fmt: skip
    describe = command("datasets", graph, "--json")
    train = command("train", graph, *short, "--json")
    texas = command("datasets", "texas", "--json")
    targets: list[Target] = [
        FileTarget("preset file", "train", preset, 5, sample="preset/mlp.toml"),
        EnvironmentTarget("environment", "datasets", describe, 2),
        EnvironmentTarget("environment", "datasets", texas, 1),
        EnvironmentTarget("environment", "train", train, 2),
        OptionTarget("Python argument", "load_dataset", actions.load_object, 8, options=("x",)),
        OptionTarget("Python argument", "split", actions.split_with, 3, options=("seed",)),
    ]
    writing = {
        "train": command("train", graph, *short, "--out", "INPUT/output", "--json"),
        "precompute": command("precompute", graph, "--K", "2", "--out", "INPUT/output", "--json"),
        "analyze": command("analyze", graph, "--out", "INPUT/output", "--json"),
        "datasets": command("datasets", "--template", "INPUT/output"),
        "save": actions.save_model,
    }
    for name, action in writing.items():
        targets.append(
            ForeignTarget("existing output", name, action, 2, adds_files=True, sample="foreign")
        )
    return targets


def _run_targets() -> list[Target]:
    graph = "SAMPLES/csv/graph"
    explore = command(
        "explore", "INPUT/run", "-o", "OUT/e.html", "--json", check=actions.check_pages
    )
    resume = ("train", graph, "--runs", "2", "--workers", "1", *FAST, "--out", "INPUT/run")
    verify = command("verify", "INPUT/run", "--json")
    every = {
        "predict": (predictions("INPUT/run", graph), 3),
        "load_run": (actions.load_run_model, 3),
        "explore": (explore, 1),
    }
    targets: list[Target] = []
    for name, (action, weight) in every.items():
        for state, before, after in (
            ("run folder", None, None),
            ("run folder, resealed", None, seal_folder),
            ("run folder, old", remove_seals, None),
        ):
            target = FileTarget(
                state,
                name,
                action,
                weight,
                protected=state == "run folder",
                sample="run/run",
                files="*[!g]",
                before=before,
                after=after,
            )
            targets.append(target)
    more = [
        FileTarget("run folder", "verify", verify, 3, True, sample="run/run", files="*[!g]"),
        FileTarget("run folder, resealed", "verify", verify, 2, sample="run/run",
                   after=seal_folder),
        FileTarget("run folder, old", "verify", verify, 2, sample="run/run", before=remove_seals),
        FileTarget("run folder", "train", command(*resume, "--json"), 1, writes_input=True,
                   sample="run/run", files="*[!g]"),
        FileTarget("saved model", "NodeClassifier.load", actions.load_model, 4, True,
                   sample="model/model"),
        FileTarget("saved model, resealed", "NodeClassifier.load", actions.load_model, 8,
                   sample="model/model", after=seal_folder),
        FileTarget("saved model, old", "NodeClassifier.load", actions.load_model, 4,
                   sample="model/model", before=remove_seals),
        FileTarget("saved model", "verify", command("verify", "INPUT/model", "--json"), 2, True,
                   sample="model/model"),
    ]  # fmt: skip
    return targets + more


def _search_targets() -> list[Target]:
    """The folder of a search is a run folder with an ensemble."""
    actions_by_name = {
        "predict": predictions("INPUT/auto", "SAMPLES/csv/graph"),
        "verify": command("verify", "INPUT/auto", "--json"),
        "AutoNodeClassifier.load": actions.load_search,
    }
    targets: list[Target] = []
    for name, action in actions_by_name.items():
        targets += [
            FileTarget("search folder", name, action, 2, True, sample="auto/auto", files="*[!g]"),
            FileTarget("search folder, resealed", name, action, 3, sample="auto/auto",
                       files="*[!g]", after=seal_folder),
        ]  # fmt: skip
    auto = command("auto", "SAMPLES/csv/graph", "--portfolio", "INPUT/portfolio.toml",
                   "--max-runs", "2", "--workers", "1", "--out", "OUT/run", "--json")  # fmt: skip
    targets.append(FileTarget("portfolio file", "auto", auto, 3, sample="auto/portfolio.toml"))
    return targets


def _store_targets() -> list[Target]:
    train = ("--runs", "1", "--workers", "1", "--set", "epochs=2", "--out", "OUT/run", "--json")
    again = ("precompute", "SAMPLES/csv/graph", "--K", "2", "--rows", "all", "--sketch", "3",
             "--out", "INPUT/store")  # fmt: skip
    extends = ("SAMPLES/store-run/run", "SAMPLES/new-nodes", "--extends", "INPUT/store")
    every = {
        "Store.open": (actions.open_store, 4),
        "train": (command("train", "INPUT/store", *train), 2),
        "verify": (command("verify", "INPUT/store", "--json"), 2),
        "predict --extends": (predictions(*extends), 1),
    }
    targets: list[Target] = []
    for name, (action, weight) in every.items():
        for state, before, after in (
            ("store", None, None),
            ("store, resealed", None, seal_store),
            ("store, old", remove_seals, None),
        ):
            target = FileTarget(
                state,
                name,
                action,
                weight,
                protected=state == "store",
                sample="store/store",
                before=before,
                after=after,
            )
            targets.append(target)
    action = command(*again, "--json")
    targets.append(
        FileTarget("store", "precompute", action, 2, writes_input=True, sample="store/store")
    )
    return targets


def _serving_targets() -> list[Target]:
    """The store of a server, with its graph and ids, and the requests of clients."""
    extends = ("SAMPLES/served-run/run", "SAMPLES/named-nodes", "--extends", "INPUT/store")
    every = {
        "StorePredictor": (actions.predict_new_nodes, 3),
        "predict --extends": (predictions(*extends), 1),
        "verify": (command("verify", "INPUT/store", "--json"), 1),
    }
    targets: list[Target] = []
    for name, (action, weight) in every.items():
        for state, before, after in (
            ("served store", None, None),
            ("served store, resealed", None, seal_store_files),
            ("served store, old", remove_seals, None),
        ):
            target = FileTarget(
                state,
                name,
                action,
                weight,
                protected=state == "served store",
                sample="served/store",
                before=before,
                after=after,
            )
            targets.append(target)
    targets.append(RequestTarget("served request", "serve", actions.answer_request, 9))
    return targets


def _record_targets() -> list[Target]:
    tune = ("--trials", "1", "--seeds", "0", "--model", "MLP", "--set", "epochs=2", "--json")
    storage = command("tune", "SAMPLES/csv/graph", *tune, "--storage", "INPUT/database/runs.sqlite")
    tables = command("reproduce", "full", "--datasets", "texas", "--models", "MLP",
                     "--from-records", "--out", "INPUT/results", "--json")  # fmt: skip
    search = command("tune", "--presets", "--from-records", "--missing", "--results",
                     "INPUT/search/search.parquet", "--json")  # fmt: skip
    database = {"sample": "database", "writes_input": True}
    return [
        FileTarget("database", "Records", actions.read_records, 4, **database),
        FileTarget("database", "tune", storage, 2, **database),
        FileTarget("records", "reproduce", tables, 2, sample="results", writes_input=True),
        FileTarget("records", "merge_records", actions.merge("runs.parquet"), 2, sample="records",
                   files="*.parquet"),
        FileTarget("records", "merge_records", actions.merge("runs.csv"), 2, sample="records",
                   files="runs.c*"),
        FileTarget("records", "merge_records", actions.merge("runs.json"), 2, sample="records",
                   files="runs.json"),
        FileTarget("search results", "SearchResults", actions.read_search_results, 2,
                   sample="search"),
        FileTarget("search results", "tune --presets", search, 1, sample="search"),
    ]  # fmt: skip


def _option_targets() -> list[Target]:
    short = ("--runs", "1", "--workers", "1", "--set", "epochs=2")
    train = command("train", "karate", *short, "--out", "OUT/run", "--json")
    plain = command("train", "karate", *short)
    precompute = command("precompute", "karate", "--out", "OUT/s", "--json")
    tune = command("tune", "karate", "--trials", "1", "--model", "MLP", "--set", "epochs=2",
                   "--storage", "OUT/t.sqlite", "--json")  # fmt: skip
    predict = command("predict", "SAMPLES/run/run", "SAMPLES/csv/graph", "-o", "OUT/p.csv")
    explore = command("explore", "SAMPLES/run/run", "-o", "OUT/e.html", "--json")
    auto = command("auto", "karate", "--portfolio", "SAMPLES/auto/portfolio.toml", "--workers",
                   "1", "--max-runs", "2", "--out", "OUT/run", "--json")  # fmt: skip
    reproduce = command("reproduce", "full", "--from-records", "--json", "--out", "OUT/r")
    every: list[tuple[str, Action, int, tuple[str, ...]]] = [
        ("train", train, 16, ("--set",)),
        ("train", train, 4, ("--protocol", "--preset", "--device", "--model", "--metric",
                             "--column", "--root", "--engine")),
        ("train", plain, 3, ("--out", "--seed")),
        ("train", command("train", *short, "--out", "OUT/run", "--json"), 2, ("DATASET",)),
        ("precompute", precompute, 5, ("--K", "--memory", "--lambda-max", "--basis", "--dtype",
                                       "--rows", "--features", "--device", "--column", "--root")),
        ("precompute", command("precompute", "karate", "--K", "2"), 1, ("--out",)),
        ("tune", tune, 4, ("--seeds", "--set", "--protocol", "--metric", "--device", "--preset",
                           "--rounds", "--cells", "--families")),
        ("tune", tune, 1, ("--storage", "--out")),
        ("predict", predict, 3, ("--seed", "--column", "--extends", "--device", "-o", "--root")),
        ("explore", explore, 2, ("--seed", "--nodes", "--with", "--dataset", "-o", "--column")),
        ("auto", auto, 2, ("--metric", "--protocol", "--portfolio", "--device", "--seed",
                           "--column", "--time", "--max-runs")),
        ("analyze", command("analyze", "--json"), 1, ("DATASET",)),
        ("datasets", command("datasets", "--json"), 2, ("NAME",)),
        ("datasets", command("datasets"), 1, ("--template", "--root")),
        ("models", command("models", "--json"), 1, ("NAME",)),
        ("verify", command("verify"), 1, ("PATH",)),
        ("reproduce", reproduce, 2, ("--datasets", "--models", "--preset", "--seed", "--root")),
        ("reproduce", command("reproduce", "--from-records", "--json"), 1, ("ITEM",)),
    ]  # fmt: skip
    return [
        OptionTarget("option", name, action, weight, options=options)
        for name, action, weight, options in every
    ] + [OptionTarget("Python argument", "NodeClassifier", actions.fit_with_setting, 8,
                      options=("--set",))]  # fmt: skip
