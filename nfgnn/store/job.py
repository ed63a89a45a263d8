"""A piece of work on disk: all that a process, here or on another machine, needs to know to do a part of it."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from nfgnn.npyfile import NpyFile
from nfgnn.spectral import Basis, resolve_basis
from nfgnn.store.manifest import write_json
from nfgnn.store.plan import Plan, Settings
from nfgnn.store.store import rows_per_block


@dataclass(frozen=True)
class Job:
    """The folder ``work`` inside a store that is being made, with its plan."""

    work: Path
    settings: Settings
    plan: Plan
    fingerprint: str

    def save(self) -> None:
        content = {
            "fingerprint": self.fingerprint,
            "settings": asdict(self.settings),
            "plan": asdict(self.plan),
        }
        write_json(self.work / "plan.json", content)

    @classmethod
    def load(cls, work: Path) -> "Job":
        content = json.loads((work / "plan.json").read_text(encoding="utf-8"))
        return cls(
            work, Settings(**content["settings"]), Plan(**content["plan"]), content["fingerprint"]
        )

    @property
    def graph(self) -> Path:
        return self.work / "graph"

    @property
    def basis(self) -> Basis:
        return resolve_basis(self.settings.basis)

    @property
    def mixes(self) -> bool:
        """Whether the basis' terms are combinations of those of its table."""
        return self.basis.mixing(self.settings.K) is not None

    @property
    def work_dtype(self) -> str:
        """Precision of the blocks: terms that are still to be combined are not rounded."""
        return "float32" if self.mixes else self.settings.dtype

    @property
    def block_rows(self) -> int:
        """Rows under one checksum, in the blocks and in the store."""
        return rows_per_block(self.settings.K, self.plan.num_features, self.settings.dtype)

    @cached_property
    def nodes(self) -> Tensor:
        """The nodes whose rows are kept."""
        with NpyFile.open(self.work / "nodes.npy") as file:
            return torch.from_numpy(file.read(0, len(file)))


def column_file(work: Path, block: int) -> Path:
    """Where the scaled features of a block of columns lie."""
    return work / f"x-{block:04d}.npy"


def block_folder(work: Path, block: int) -> Path:
    """Where the terms of a finished block of columns lie."""
    return work / f"block-{block:04d}"
