"""Choose a mutation that fits a file."""

import random
from collections.abc import Mapping
from pathlib import Path

from .array_mutations import MAT, NPY, NPZ, PICKLE, SAFETENSORS, SPLITS, TENSORS, tensor_payload
from .byte_mutations import BYTE_MUTATIONS, mutate_bytes
from .path_mutations import PATH_MUTATIONS
from .text_mutations import BOMB, DATABASE, JSON, PARQUET, TABLE, TOML, Mutation

CONTENT: dict[str, Mapping[str, Mutation]] = {
    ".csv": TABLE,
    ".tsv": TABLE,
    ".txt": TABLE,
    ".gz": {**TABLE, **BOMB},
    ".json": JSON,
    ".toml": TOML,
    ".parquet": PARQUET,
    ".npz": NPZ,
    ".npy": NPY,
    ".pt": TENSORS,
    ".safetensors": SAFETENSORS,
    ".mat": MAT,
    ".sqlite": DATABASE,
    ".index": TABLE,
}
"""Mutations of the content of a well-formed file, by the ending of its name."""


def damage_file(rng: random.Random, path: Path) -> str:
    """Damage a file that nobody else writes, and return the name of the mutation."""
    name = rng.choice([*sorted(BYTE_MUTATIONS), "pipe", "folder", "missing", "payload"])
    if name in BYTE_MUTATIONS:
        mutate_bytes(rng, path, name)
    elif name == "payload":
        tensor_payload(rng, path)
    else:
        PATH_MUTATIONS[name](rng, path, path)
    return name


def mutate_file(rng: random.Random, path: Path, other: Path) -> str:
    """Mutate a file and return the name of the mutation."""
    content = CONTENT.get(path.suffix, {})
    if path.name.startswith("ind.") and path.suffix != ".index":
        content = PICKLE
    elif path.name.endswith("-splits.npy"):
        content = SPLITS
    share = rng.random()
    if content and share < 0.5:
        name = rng.choice(sorted(content))
        try:
            content[name](rng, path)
        except (ValueError, TypeError, OverflowError, OSError, RuntimeError) as error:
            # Not every hostile value can be written in every format.
            name = f"truncate ({type(error).__name__})"
            mutate_bytes(rng, path, "truncate")
    elif share < 0.82:
        name = rng.choice(sorted(BYTE_MUTATIONS))
        mutate_bytes(rng, path, name)
    else:
        name = rng.choice(sorted(PATH_MUTATIONS))
        PATH_MUTATIONS[name](rng, path, other)
    return name
