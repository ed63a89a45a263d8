"""A fitted ensemble: trained models, their weights and temperatures, and the files of them all.

``ensemble.json`` lists the members, ``member-1/``, ``member-2/``, … hold their models as
:class:`~nfgnn.training.NodeClassifier` writes them, and ``SHA256SUMS`` has the checksums.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from nfgnn.auto.ensemble import LARGEST_TEMPERATURE, mix
from nfgnn.auto.json_values import from_json, to_json
from nfgnn.checksums import SUMS, refuse_damaged_files, write_checksums
from nfgnn.data import TableEncoding
from nfgnn.errors import UserError
from nfgnn.json_text import json_text
from nfgnn.nn import NodeModel
from nfgnn.training import NodeClassifier

FILE = "ensemble.json"
_MARKER = {"kind": "nfgnn ensemble", "format": 1}
_MODEL_FILES = ("classifier.json", "weights.safetensors")
_MOST_BYTES = 2**26
"""A leaderboard of thousands of configurations takes a few MB."""
_MOST_MEMBERS = 1000
REMEDY = "search again with `nfgnn auto`, or restore the folder from a copy"


@dataclass(frozen=True)
class FittedMember:
    """A trained model of an ensemble."""

    name: str
    """Of its entry in the leaderboard. Runs of several splits share the name."""
    weight: float
    temperature: float
    classifier: NodeClassifier


@dataclass(frozen=True)
class _MemberFile:
    """A member in ``ensemble.json``."""

    name: str
    weight: float
    temperature: float

    def check(self) -> None:
        """Raise a ValueError for numbers that no selection returns."""
        if not 0 < self.weight <= 1:
            raise ValueError(f"the weight of {self.name} is not between 0 and 1")
        _check_temperature(self.temperature)


@dataclass(frozen=True)
class _EnsembleFile:
    """The content of ``ensemble.json``."""

    members: tuple[_MemberFile, ...]
    temperature: float

    def check(self) -> None:
        """Raise a ValueError for values that no selection returns."""
        _check_temperature(self.temperature)
        if not 1 <= len(self.members) <= _MOST_MEMBERS:
            raise ValueError(f"an ensemble has 1 to {_MOST_MEMBERS} members")
        for member in self.members:
            member.check()
        if not math.isclose(sum(member.weight for member in self.members), 1, abs_tol=1e-6):
            raise ValueError("the weights of the members do not add up to 1")


def _check_temperature(temperature: float) -> None:
    limit = 1.01 * LARGEST_TEMPERATURE
    if not 1 / limit <= temperature <= limit:
        raise ValueError(f"a temperature is not between {1 / limit:.3g} and {limit:.3g}")


class EnsembleClassifier:
    """The weighted mean of the calibrated probabilities of trained models.

    Args:
        members: the models. They were trained on the same graph.
        temperature: calibrates the mean.
    """

    model = "ensemble"

    def __init__(self, members: Sequence[FittedMember], temperature: float) -> None:
        self.members = tuple(members)
        self.temperature = temperature

    @property
    def seed(self) -> int:
        """The seed of the split that the members were trained on."""
        return self.members[0].classifier.seed

    @property
    def num_classes_(self) -> int:
        """Number of classes."""
        return self.members[0].classifier.num_classes_

    @property
    def class_names_(self) -> list[str] | None:
        """Names of the classes."""
        return self.members[0].classifier.class_names_

    @property
    def feature_names_(self) -> list[str] | None:
        """Names of the features that the members were trained with."""
        return self.members[0].classifier.feature_names_

    @property
    def feature_encoding_(self) -> TableEncoding | None:
        """How the columns of the table of nodes were encoded."""
        return self.members[0].classifier.feature_encoding_

    def members_for(self, data: Data) -> tuple[FittedMember, ...]:
        """Return the members that can predict a graph.

        Those with weights of their own for every node only know the graph that they were trained
        on. If there are no others, all are returned, and ``predict_proba`` says so.
        """
        if data.num_nodes == self.members[0].classifier.num_nodes_:
            return self.members
        transferable = [m for m in self.members if not _has_node_weights(m.classifier)]
        return tuple(transferable) or self.members

    def predict_proba(self, data: Data) -> Tensor:
        """Return the class probabilities of every node, ``[num_nodes, num_classes]``."""
        members = self.members_for(data)
        total = sum(member.weight for member in members)
        predictions = [
            (member.classifier.predict_proba(data), member.weight / total, member.temperature)
            for member in members
        ]
        return mix(predictions, self.temperature).float()

    def predict(self, data: Data) -> Tensor:
        """Return the most probable class of every node."""
        return self.predict_proba(data).argmax(-1)

    def write_files(self, folder: Path) -> None:
        """Write the ensemble into an existing, empty folder."""
        sums = []
        for number, member in enumerate(self.members, start=1):
            target = folder / _member_folder(number)
            target.mkdir()
            member.classifier.write_files(target)
            write_checksums(target, _MODEL_FILES)
            sums.append(f"{target.name}/{SUMS}")
        members = [_MemberFile(m.name, m.weight, m.temperature) for m in self.members]
        content = to_json(_EnsembleFile(tuple(members), self.temperature))
        text = json_text({**_MARKER, **content}, indent=1)
        (folder / FILE).write_text(text, encoding="utf-8")
        write_checksums(folder, [FILE, *sums])

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> "EnsembleClassifier":
        """Load what :meth:`write_files` has written, and verify its checksums."""
        path = folder / FILE
        if not path.is_file():
            raise UserError(f"{folder} holds no ensemble: {FILE} is missing; {REMEDY}")
        refuse_damaged_files(folder, [FILE], REMEDY)
        content = read_object(path)
        try:
            described = from_json(_EnsembleFile, content)
            described.check()
            if content.get("kind") != _MARKER["kind"]:
                raise ValueError("it does not describe an ensemble")
        except (ValueError, OverflowError) as error:
            raise UserError(f"{path} is damaged: {error}; {REMEDY}") from None
        members = []
        for number, file in enumerate(described.members, start=1):
            classifier = NodeClassifier.load(folder / _member_folder(number), device)
            members.append(FittedMember(file.name, file.weight, file.temperature, classifier))
        classes = [(m.classifier.num_classes_, m.classifier.class_names_) for m in members]
        if any(other != classes[0] for other in classes):
            raise UserError(f"{folder}: its members have different classes; {REMEDY}")
        return cls(members, described.temperature)


def _has_node_weights(classifier: NodeClassifier) -> bool:
    modules = classifier.model_.modules()
    return any(isinstance(module, NodeModel) and module.weights_per_node for module in modules)


def _member_folder(number: int) -> str:
    return f"member-{number}"


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object that a search has written."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}; {REMEDY}") from None
    return content
