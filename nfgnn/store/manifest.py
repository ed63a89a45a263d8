"""``manifest.json``: the description of a store."""

import hashlib
import json
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from nfgnn.data import TableEncoding
from nfgnn.errors import UserError, system_error
from nfgnn.spectral import RowParts, resolve_basis
from nfgnn.store.file_format import DTYPES, make_scaling, write_json
from nfgnn.store.source import MASKS
from nfgnn.store.stored_graph import GRAPH_FILES
from nfgnn.store.stored_ids import ID_FILES

FORMAT = 3
"""Format 2 adds ids, the graph and the sketch, format 3 the other parts of rows. Stores without
them have format 1. Names and encoding of the features do not change the format, because readers
that do not know them ignore them."""
KIND = "nfgnn store"
_CHECKSUM = "checksum"
_OPTIONAL = ("feature_scaling", "feature_names", "feature_encoding")
_PARTS: dict[str, Any] = {
    "sketch": 0,
    "sketch_samples": [],
    "two_hop": 0,
    "degree": False,
    "agreement": False,
    "part_samples": {},
}
"""Fields of parts of the rows, which a manifest omits where they have these values."""
_TYPES: dict[Any, tuple[type, ...]] = {
    int: (int,),
    bool: (bool,),
    float: (int, float),
    str: (str,),
}
"""What JSON may hold for a field of this type."""
FILE = "manifest.json"
WORK = "work"
"""Folder inside a store that exists only until the store is complete."""


@dataclass(frozen=True)
class Manifest:
    """Everything that is needed to use a store and to verify its files.

    ``basis``, ``K``, ``self_loops``, ``lambda_max`` and the scaling of the features define a model
    that is trained on the terms. The terms of new nodes are computed with the same settings.
    """

    dataset: str
    num_nodes: int
    """Nodes of the graph; rows are stored for ``num_rows`` of them."""
    num_rows: int
    num_features: int
    num_classes: int
    K: int
    basis: str
    self_loops: bool
    lambda_max: float
    features: str
    """Scaling of the features: a name in :data:`nfgnn.data.SCALINGS`, never ``auto``."""
    feature_mean: list[float] | None
    feature_deviation: list[float] | None
    dtype: str
    class_names: list[str]
    metric: str
    masks: list[str]
    """Those of ``train_mask``, ``val_mask`` and ``test_mask`` that the dataset provides."""
    source: str
    """Name or path that the graph was read from."""
    fingerprint: str
    """Hash of the graph and of the settings that determine the terms."""
    block_rows: int
    """Rows of ``terms.npy`` per checksum."""
    checksums: dict[str, list[str]]
    """For each file, the checksums of its blocks (array data without the header)."""
    feature_scaling: dict[str, list[Any]] | None = None
    """Further tensors of a scaling that treats columns by their kind; omitted without them."""
    samples: list[str] = field(default_factory=list)
    """For each block of ``terms.npy``, the checksum of a sample of it; none in older stores."""
    registered_name: str = ""
    """The registered data set that the graph is; empty for a graph of the user."""
    feature_names: list[str] | None = None
    """Names of the features; omitted without them. Older stores without a graph have none."""
    feature_encoding: list[dict[str, Any]] | None = None
    """How columns of the users' tables become features; omitted for plain numbers."""
    sketch: int = 0
    """Columns of ``sketch.npy``; 0 in a store without a sketch."""
    sketch_samples: list[str] = field(default_factory=list)
    """The ``samples`` of ``sketch.npy``."""
    two_hop: int = 0
    """Columns of ``two_hop.npy``; 0 in a store without two-hop neighbours."""
    degree: bool = False
    """Whether there is ``degree.npy``."""
    agreement: bool = False
    """Whether there is ``agreement.npy``."""
    part_samples: dict[str, list[str]] = field(default_factory=dict)
    """The ``samples`` of the files of these three parts."""
    format: int = 1
    kind: str = KIND

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the terms: rows, K + 1, features."""
        return self.num_rows, self.K + 1, self.num_features

    @property
    def row_parts(self) -> dict[str, tuple[int, ...]]:
        """The files that hold the parts of the rows, and the shapes of these files."""
        parts: dict[str, tuple[int, ...]] = {"terms": self.shape}
        for name, columns in self.parts.columns.items():
            parts[name] = (self.num_rows, columns)
        return parts

    @property
    def parts(self) -> RowParts:
        """The parts of a row besides the terms."""
        return RowParts(self.sketch, self.two_hop, self.degree, self.agreement)

    def samples_of(self, name: str) -> list[str]:
        """Return the ``samples`` of the file of a part."""
        known = {"terms": self.samples, "sketch": self.sketch_samples, **self.part_samples}
        return known[name]

    def save(self, folder: Path) -> None:
        """Write the manifest. It is written last: a store with a manifest is complete."""
        content = asdict(self)
        for name in _OPTIONAL:
            if content[name] is None:
                del content[name]
        for name in _PARTS:
            if not content[name]:
                del content[name]
        write_json(folder / FILE, {**content, _CHECKSUM: _digest(content)})

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a store; raise :class:`UserError` if the store is not usable."""
        path = folder / FILE
        if not path.is_file():
            if (folder / WORK).is_dir():
                raise UserError(
                    f"{folder} is an unfinished store: run the same `nfgnn precompute` command "
                    "again to complete it"
                )
            if (folder / "terms.npy").is_file():
                raise UserError(
                    f"{path}: is missing, or not a file; precompute the store again, or restore "
                    "the file from a copy"
                )
            raise UserError(
                f"{folder} is not a store: it has no {FILE}. "
                f"Create a store with `nfgnn precompute DATASET --out {folder}`"
            )
        try:
            content = path.read_bytes()
        except OSError as error:
            raise system_error(error, path) from None
        return cls.parse(content, str(path))

    @classmethod
    def parse(cls, text: bytes, where: str) -> "Manifest":
        """Return a manifest from the content of its file, whose path or URL is ``where``."""
        try:
            content = json.loads(text.decode())
            version = content["format"]
            if version in range(1, FORMAT + 1):
                return cls._parse(content)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _damaged(where, error) from None
        raise UserError(
            f"{where}: the store has format {version}, but this version of nfgnn reads formats "
            f"1 to {FORMAT}; precompute the store again"
        )

    @classmethod
    def _parse(cls, content: dict[str, Any]) -> "Manifest":
        """Return a manifest from JSON; raise :class:`ValueError` if it cannot be right."""
        expected = content.pop(_CHECKSUM, None)
        # Older stores have neither a checksum nor a kind.
        if (expected is not None or "kind" in content) and expected != _digest(content):
            raise ValueError("its checksum differs")
        # In older stores the name of the graph selects the preset, as it did then.
        old = {"samples": [], "kind": KIND, "registered_name": content["dataset"]}
        absent: dict[str, Any] = {**dict.fromkeys(_OPTIONAL), **deepcopy(_PARTS)}
        content = {**absent, **old, **content}
        manifest = cls(**{item.name: content[item.name] for item in fields(cls)})
        for item in fields(cls):
            allowed = _TYPES.get(item.type, (object,))
            if not isinstance(content[item.name], allowed):
                raise ValueError(f"{item.name} = {content[item.name]!r} has the wrong type")
        manifest._validate()
        return manifest

    @property
    def has_ids(self) -> bool:
        """Whether the ids of the nodes are not their numbers."""
        return set(ID_FILES) <= self.checksums.keys()

    @property
    def has_graph(self) -> bool:
        """Whether new nodes can be attached to the store."""
        return GRAPH_FILES[0] in self.checksums

    def _possible_files(self) -> list[set[str]]:
        """Return the sets of arrays that a store can consist of."""
        rows = {*self.row_parts, "nodes", "y", *self.masks}
        possible = []
        for graph in ((), GRAPH_FILES, GRAPH_FILES[:-1]):
            possible += [rows.union(graph), rows.union(graph, ID_FILES)]
        return possible

    def _validate(self) -> None:
        """Raise :class:`ValueError` for values that no store has."""
        sizes = (self.num_rows, self.num_features, self.num_classes, self.block_rows)
        blocks = -(-self.num_rows // max(1, self.block_rows))
        checks = {
            "kind": self.kind == KIND,
            "sizes": min(sizes) > 0 and self.K >= 0 and self.num_nodes >= self.num_rows,
            "dtype": self.dtype in DTYPES,
            "basis": _is_basis(self.basis),
            "masks": set(self.masks) <= set(MASKS),
            "class_names": len(set(map(str, self.class_names))) == self.num_classes
            and all(isinstance(name, str) for name in self.class_names),
            "sketch": self.sketch == 0 or (self.sketch > 0 and self.format >= 2),
            "two_hop": self.two_hop >= 0,
            "format": self.format == FORMAT or not set(self.parts.columns) - {"sketch"},
            "checksums": set(self.checksums) in self._possible_files()
            and all(isinstance(found, list) for found in self.checksums.values())
            and all(len(self.checksums[part]) == blocks for part in self.row_parts),
            "graph": not self.has_graph or self.num_rows == self.num_nodes,
            "features": _are_features(self),
            "scaling": _is_scaling(self),
            "samples": isinstance(self.samples, list) and len(self.samples) in (0, blocks),
            "sketch_samples": isinstance(self.sketch_samples, list)
            and len(self.sketch_samples) == (blocks if self.sketch else 0),
            "part_samples": isinstance(self.part_samples, dict)
            and set(self.part_samples) == set(self.parts.columns) - {"sketch"}
            and all(
                isinstance(found, list) and len(found) == blocks
                for found in self.part_samples.values()
            ),
        }
        wrong = [name for name, right in checks.items() if not right]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not valid for a store")


def _damaged(where: str, error: Exception) -> UserError:
    return UserError(
        f"{where}: is damaged ({type(error).__name__}: {error}); precompute the store again"
    )


def _are_features(manifest: Manifest) -> bool:
    """Whether the names and the encoding of the features are possible."""
    names = manifest.feature_names
    if names is not None and not (isinstance(names, list) and all(map(_is_text, names))):
        return False
    if manifest.feature_encoding is None:
        return True
    try:
        TableEncoding.from_json(manifest.feature_encoding)
    except (TypeError, KeyError, ValueError):
        return False
    return True


def _is_scaling(manifest: Manifest) -> bool:
    """Whether the statistics of the scaling fit the features."""
    values = (manifest.feature_mean, manifest.feature_deviation, manifest.feature_scaling)
    try:
        make_scaling(manifest.features, *values).check(manifest.num_features)
    except (RuntimeError, TypeError, ValueError, AttributeError, OverflowError):
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_basis(name: str) -> bool:
    try:
        resolve_basis(name)
    except ValueError:
        return False
    return True


def _digest(content: dict[str, Any]) -> str:
    """Return the checksum of a manifest, which does not depend on the layout of its JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
