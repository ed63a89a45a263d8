"""The best model for a graph, in the style of scikit-learn."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.auto.auto import run_auto
from nfgnn.auto.ensemble_classifier import EnsembleClassifier
from nfgnn.auto.result import AutoResult, LeaderboardEntry
from nfgnn.auto.run_files import load_predictor, read_result, verify_auto
from nfgnn.checksums import SUMS, read_checksums
from nfgnn.data import TableEncoding, default_protocol
from nfgnn.errors import UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import atomic_folder
from nfgnn.nn import check_counts
from nfgnn.progress import Progress, parse_duration
from nfgnn.training import (
    MASKS,
    Graph,
    NodeClassifier,
    classifier_tags,
    holds_run_folder,
    load_run,
    score_nodes,
    single_graph,
    with_boolean_masks,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags

_FILES = ("*", "seed-*/*", "ensemble/*", "ensemble/member-*/*")


class AutoNodeClassifier:
    """Search the best model for a graph and predict with it, or with an ensemble of models.

    Configurations are compared on validation nodes only. The test nodes are scored once, at the
    end. See ``nfgnn auto``, which does the same.

    Args:
        time: budget of :meth:`fit`: seconds, or a text such as ``"30s"``, ``"5m"`` or ``"1h"``.
        max_runs: number of trainings, in place of the time. It makes the result reproducible.
        metric: what models are compared by; by default the metric of the graph, see
            :func:`nfgnn.training.resolve_metric`.
        seed: seed of the split, of the models and of the search.
        device: ``"auto"`` uses a GPU if one is available.
        workers: number of processes on a CPU; by default one per core. On Ray, most runs at a time.
        portfolio: file with the configurations that are tried first; by default those that ship.
        single: predict with the best single model, without an ensemble.
        verbose: print the best score so far and the time left.
        engine: where to train: ``"local"``, or ``"ray"`` for a Ray cluster.
        ray_address: address of a Ray cluster; by default ``$RAY_ADDRESS``, otherwise a new local
            cluster.

    Attributes after ``fit``: ``result_`` (everything that was found), ``leaderboard_``, ``best_``
    (the best single model, a :class:`~nfgnn.NodeClassifier`), ``ensemble_`` (``None`` with
    ``single``), ``classes_``, ``class_names_``.

    Example:
        >>> from nfgnn import AutoNodeClassifier, load_dataset, split
        >>> data = split(load_dataset("texas"), seed=0)                   # doctest: +SKIP
        >>> clf = AutoNodeClassifier(time="1m").fit(data)                 # doctest: +SKIP
        >>> clf.score(data, data.test_mask)                               # doctest: +SKIP
    """

    result_: AutoResult
    best_: NodeClassifier
    ensemble_: EnsembleClassifier | None

    def __init__(
        self,
        time: str | float | None = "5m",
        *,
        max_runs: int | None = None,
        metric: str | None = None,
        seed: int = 0,
        device: str = "auto",
        workers: int | None = None,
        portfolio: str | Path | None = None,
        single: bool = False,
        verbose: bool = False,
        engine: str = "local",
        ray_address: str | None = None,
    ) -> None:
        self.time = time
        self.max_runs = max_runs
        self.metric = metric
        self.seed = seed
        self.device = device
        self.workers = workers
        self.portfolio = portfolio
        self.single = single
        self.verbose = verbose
        self.engine = engine
        self.ray_address = ray_address
        # The files of the run folder. They are kept in memory, so that a classifier can be pickled
        # and saved at any time.
        self._files: dict[str, bytes] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all arguments."""
        return {name: vars(self)[name] for name in _DEFAULTS}

    def set_params(self, **params: Any) -> "AutoNodeClassifier":
        """Change arguments; takes effect with the next ``fit``."""
        unknown = [name for name in params if name not in _DEFAULTS]
        if unknown:
            raise UserError(
                f"AutoNodeClassifier has no argument '{unknown[0]}': choose one of "
                f"{', '.join(_DEFAULTS)}"
            )
        vars(self).update(params)
        return self

    def __repr__(self) -> str:
        """Return the constructor with the arguments that differ from the defaults."""
        given = self.get_params().items()
        changed = [f"{name}={value!r}" for name, value in given if value != _DEFAULTS[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> "Tags":
        return classifier_tags()

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self._files)

    @property
    def leaderboard_(self) -> tuple[LeaderboardEntry, ...]:
        """All configurations that were trained to the end, the best first."""
        self._check_fitted()
        return self.result_.leaderboard

    @property
    def classes_(self) -> Tensor:
        """The classes that ``predict`` returns: the numbers that ``class_names_`` belong to."""
        return torch.arange(self.num_classes_)

    @property
    def num_classes_(self) -> int:
        """Number of classes."""
        return self._predictor().num_classes_

    @property
    def class_names_(self) -> list[str] | None:
        """Names of the classes."""
        return self._predictor().class_names_

    @property
    def feature_names_(self) -> list[str] | None:
        """Names of the features that the models were trained with."""
        return self._predictor().feature_names_

    @property
    def feature_encoding_(self) -> TableEncoding | None:
        """How the columns of a table were encoded; for ``load_dataset`` of another table."""
        return self._predictor().feature_encoding_

    @property
    def n_features_in_(self) -> int:
        """Number of features that the models were trained on."""
        self._check_fitted()
        return self.best_.num_features_

    def fit(self, data: Data | Sequence[Data]) -> "AutoNodeClassifier":
        """Search the best model for a graph.

        Args:
            data: a graph with the masks of one split, or one that is split by its default protocol
                with the seed of the classifier. Of a list, which a search of scikit-learn passes,
                the first graph is taken.
        """
        graph = with_boolean_masks(single_graph(data))
        time = None
        if self.max_runs is not None:
            check_counts(max_runs=self.max_runs)
        elif self.time is not None:
            time = parse_duration(self.time)
        with (
            tempfile.TemporaryDirectory(prefix="nfgnn-auto-") as folder,
            Progress("auto", quiet=not self.verbose) as progress,
        ):
            run = Path(folder) / "run"
            run_auto(
                Graph.of(graph),
                _protocol(graph),
                self.seed,
                time=time,
                max_runs=self.max_runs,
                metric=self.metric,
                device=self.device,
                workers=self.workers,
                folder=run,
                source=None,
                portfolio=None if self.portfolio is None else Path(self.portfolio),
                single=self.single,
                resume=False,
                overwrite=False,
                progress=progress,
                engine=self.engine,
                ray_address=self.ray_address,
            )
            self._read(run)
        return self

    def predict_proba(self, data: Data) -> Tensor:
        """Return the class probabilities of every node, ``[num_nodes, num_classes]``."""
        return self._predictor().predict_proba(data)

    def predict(self, data: Data) -> Tensor:
        """Return the most probable class of every node."""
        return self.predict_proba(data).argmax(-1)

    def score(
        self, data: Data | Sequence[Data], mask: Tensor | None = None, metric: str | None = None
    ) -> float:
        """Return the metric on the labelled nodes of ``mask``; a greater score is better.

        Args:
            data: the graph. Of a list, which a search of scikit-learn passes, the first one.
            mask: the nodes to score; by default the test nodes.
            metric: name of a metric; by default the one of the search.
        """
        self._check_fitted()
        return score_nodes(self, single_graph(data), mask, metric or self.result_.metric)

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the run folder of the search, as ``nfgnn auto --out`` does.

        Args:
            folder: the folder to write. Only a run folder is ever replaced.
            overwrite: replace another result that was saved there.
        """
        self._check_fitted()
        folder = Path(folder)
        if holds_run_folder(folder):
            same = not verify_auto(folder)[1] and _checksums(folder) == self._files[SUMS]
            refuse_replacement(folder, "a run folder", ours=True, same=same, overwrite=overwrite)
        with atomic_folder(folder) as target:
            for name, content in self._files.items():
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "AutoNodeClassifier":
        """Load what :meth:`save` or ``nfgnn auto`` has written, and verify its checksums."""
        folder = Path(folder)
        result = read_result(folder)
        self = cls(
            result.time_limit,
            metric=result.metric,
            seed=result.seed,
            device=device,
            single=result.ensemble is None,
        )
        self._read(folder)
        return self

    def _read(self, folder: Path) -> None:
        """Read the files of a run folder."""
        _, damaged = verify_auto(folder)
        for name, problem in damaged.items():
            raise UserError(f"{folder / name}: {problem}; restore the folder from a copy")
        self.result_ = read_result(folder)
        self.best_ = load_run(folder, self.result_.seed, self.device)
        predictor = load_predictor(folder, device=self.device)
        self.ensemble_ = predictor if isinstance(predictor, EnsembleClassifier) else None
        self._files = _listed_files(folder)

    def _predictor(self) -> NodeClassifier | EnsembleClassifier:
        self._check_fitted()
        return self.ensemble_ or self.best_

    def _check_fitted(self) -> None:
        if not self._files:
            raise UserError("this AutoNodeClassifier is not fitted yet: call fit(data) first")


_DEFAULTS: Mapping[str, Any] = {
    name: value for name, value in vars(AutoNodeClassifier()).items() if name != "_files"
}


def _protocol(data: Data) -> str:
    """Return the protocol of a graph: ``"public"`` keeps the masks of one split."""
    if data.get("unobserved_mask") is not None:
        raise UserError(
            "the split has unobserved nodes (protocol 'inductive'), which a search cannot hide "
            "from its models: split the graph with another protocol"
        )
    given = [data[name] for name in MASKS if data.get(name) is not None]
    if len(given) == len(MASKS) and all(mask.dim() == 1 for mask in given):
        return "public"
    return default_protocol(data)


def _listed_files(folder: Path) -> dict[str, bytes]:
    """Return the content of the files of a run folder that have a checksum, by their names."""
    listed = {SUMS, *read_checksums(folder)}
    found = {}
    for pattern in _FILES:
        for path in folder.glob(pattern):
            name = str(path.relative_to(folder))
            if path.is_file() and ("/" in name or name in listed):
                found[name] = path.read_bytes()
    return found


def _checksums(folder: Path) -> bytes:
    return (folder / SUMS).read_bytes()
