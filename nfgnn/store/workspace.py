"""The folder ``work`` inside an unfinished store, which holds the state of a precompute job.

It contains the plan, the graph, the scaled features and the finished column blocks: everything that
a process, on this machine or another, needs to compute a block.
"""

import json
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from nfgnn.errors import UserError
from nfgnn.npyfile import NpyFile
from nfgnn.spectral import Basis, resolve_basis
from nfgnn.store.file_format import rows_per_checksum, write_json
from nfgnn.store.plan import Plan, Settings

_NAMES = re.compile(
    r"graph|(x|block)-\d+\b.*|nodes\.npy|(sketch|two_hop(-\d+)?|degree|agreement)\.(npy|part)"
    r"|(plan|scaling|assembled)\.json|\..*\.partial"
)


@dataclass(frozen=True)
class Workspace:
    """An unfinished job and its files.

    Args:
        folder: the folder ``work`` inside the store.
        settings: what is computed.
        plan: how the work is divided.
        fingerprint: hash of the graph and the settings.
    """

    folder: Path
    settings: Settings
    plan: Plan
    fingerprint: str

    def save(self) -> None:
        """Write ``plan.json``, from which :meth:`load` restores the workspace."""
        content = {
            "fingerprint": self.fingerprint,
            "settings": asdict(self.settings),
            "plan": asdict(self.plan),
        }
        write_json(self.plan_file(self.folder), content)

    @classmethod
    def load(cls, folder: Path) -> "Workspace":
        """Open an existing workspace."""
        path = cls.plan_file(folder)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            settings = Settings(**content["settings"])
            return cls(folder, settings, Plan(**content["plan"]), content["fingerprint"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path}: is damaged ({error}), so the work cannot be resumed; choose another --out"
            ) from None

    @staticmethod
    def has_name(name: str) -> bool:
        """Whether a workspace contains files or folders of this name."""
        return bool(_NAMES.fullmatch(name))

    @staticmethod
    def plan_file(folder: Path) -> Path:
        """Path of the saved plan. It exists exactly if there is work to resume."""
        return folder / "plan.json"

    @property
    def graph(self) -> Path:
        """Folder of the adjacency matrix, see :mod:`nfgnn.store.disk_laplacian`."""
        return self.folder / "graph"

    def features_file(self, block: int) -> Path:
        """Path of the scaled features of a column block."""
        return self.folder / f"x-{block:04d}.npy"

    def part_file(self, name: str) -> Path:
        """Path of a part of the stored rows besides the terms."""
        return self.folder / f"{name}.npy"

    def block_folder(self, block: int) -> Path:
        """Folder of the terms of a finished column block."""
        return self.folder / f"block-{block:04d}"

    def missing_blocks(self) -> list[int]:
        """Return the numbers of the column blocks that are not finished."""
        return [b for b in range(self.plan.blocks) if not self.block_folder(b).is_dir()]

    @property
    def basis(self) -> Basis:
        return resolve_basis(self.settings.basis)

    @property
    def needs_mixing(self) -> bool:
        """Whether the terms of the basis are combinations of the terms of its recurrence."""
        return self.basis.mixing(self.settings.K) is not None

    @property
    def block_dtype(self) -> str:
        """Number type of the blocks. Terms that are still to be mixed are not rounded."""
        return "float32" if self.needs_mixing else self.settings.dtype

    @property
    def block_rows(self) -> int:
        """Rows per checksum, in the blocks and in the store."""
        return rows_per_checksum(self.settings.K, self.plan.num_features, self.settings.dtype)

    @property
    def nodes_file(self) -> Path:
        return self.folder / "nodes.npy"

    @cached_property
    def nodes(self) -> Tensor:
        """The nodes whose rows are stored."""
        with NpyFile.open(self.nodes_file) as file:
            return torch.from_numpy(file.read_all())
