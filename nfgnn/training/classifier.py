"""Node classification in the style of scikit-learn."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.checksums import (
    SUMS,
    damaged_files,
    read_checksums,
    refuse_damaged_files,
    write_checksums,
)
from nfgnn.data import FeatureScaling, TableEncoding, names_of, sparse_if_faster
from nfgnn.errors import DivergedError, UserError
from nfgnn.existing_output import refuse_replacement
from nfgnn.files import atomic_folder, refuse_foreign_files
from nfgnn.nn import NodeModel, Scalable
from nfgnn.nn.conv import PolynomialFilter
from nfgnn.plugins import UnknownPluginError
from nfgnn.store import stream_seed
from nfgnn.training import inputs
from nfgnn.training.config import RunConfig, TrainingConfig
from nfgnn.training.dead_runs import is_dead
from nfgnn.training.device import resolve_device
from nfgnn.training.history import History, OnEpoch
from nfgnn.training.mask_split import single_graph
from nfgnn.training.metrics import resolve_metric
from nfgnn.training.minibatch import fit_rows
from nfgnn.training.model_files import (
    FILES,
    MARKER,
    REMEDY,
    at_most_twice,
    check_names,
    read_description,
    read_weights,
)
from nfgnn.training.model_size import CheckedAllocation
from nfgnn.training.partition_batches import check_partitions
from nfgnn.training.presets import read_preset_file
from nfgnn.training.scoring import score_nodes
from nfgnn.training.sklearn_tags import classifier_tags
from nfgnn.training.tensor_files import save_tensors
from nfgnn.training.whole_graph import fit

if TYPE_CHECKING:
    from sklearn.utils import Tags

_GENERATORS_IN_USE = threading.RLock()
_ARGUMENTS = ("model", "preset", "seed", "device")
_SCALING = "scaling."
"""Prefix of the tensors of the feature scaling."""


class NodeClassifier:
    """A model of this library that learns the classes of nodes.

    Args:
        model: name of the model, see ``nfgnn models``.
        preset: ``"best"``, ``"paper"`` or ``"none"``: the source of hyper-parameters that are not
            given (:mod:`nfgnn.training.presets`, by dataset and protocol of the fitted graph); or
            the path of a preset file (``.toml``).
        seed: seed of the initial weights and of dropout.
        device: ``"auto"`` uses a GPU if one is available.
        **settings: hyper-parameters of the model (``K``, ``rank``, ``basis``, ``dropout``, …) and
            of the training (``lr``, ``filter_lr``, ``weight_decay``, ``epochs``, ``metric``,
            ``select``, ``class_weight``, …; see :class:`TrainingConfig`).

    Attributes after ``fit``: ``model_`` (the module), ``config_``, ``history_``, ``scaling_``,
    ``classes_``, and ``feature_encoding_`` for a table with gaps, text or dates (pass it to
    ``load_dataset`` for another table). It can be cloned, searched
    (:class:`~nfgnn.training.MaskSplit`) and put into containers as an estimator of scikit-learn.

    Example:
        >>> from nfgnn import NodeClassifier, load_dataset, split
        >>> data = split(load_dataset("karate"), protocol="stratified", seed=0)
        >>> clf = NodeClassifier("NFGNN", K=4, epochs=50).fit(data)
        >>> clf.predict(data).shape
        torch.Size([34])
    """

    config_: RunConfig
    model_: NodeModel
    history_: History
    scaling_: FeatureScaling
    class_names_: list[str] | None
    feature_names_: list[str] | None
    feature_encoding_: TableEncoding | None = None

    def __init__(
        self,
        model: str = "NFGNN",
        *,
        preset: str = "best",
        seed: int = 0,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        self.model = model
        self.preset = preset
        self.seed = seed
        self.device = device
        self.settings = settings
        self._config: RunConfig | None = None
        self._fitted = False

    @classmethod
    def from_config(cls, config: RunConfig, seed: int, device: str = "auto") -> "NodeClassifier":
        """Return a classifier with exactly this configuration."""
        self = cls(config.model, preset="none", seed=seed, device=device)
        self.settings = config.settings()
        self._config = config
        return self

    @classmethod
    def from_preset(
        cls, path: str | Path, *, seed: int = 0, device: str = "auto", **settings: Any
    ) -> "NodeClassifier":
        """Return a classifier with the model and the settings of a preset file.

        Args:
            path: a TOML file, as ``nfgnn tune --out FILE.toml`` writes it. It must name its model.
            seed, device: as for the constructor.
            **settings: settings that override those of the file.
        """
        file = read_preset_file(path)
        if file.model is None:
            raise UserError(
                f'{path} does not name its model: add a line such as model = "NFGNN" at its top, '
                "or pass the file as NodeClassifier(model, preset=path)"
            )
        return cls(file.model, preset=str(path), seed=seed, device=device, **settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all arguments."""
        return {
            "model": self.model,
            "preset": self.preset,
            "seed": self.seed,
            "device": self.device,
            **self.settings,
        }

    def set_params(self, **params: Any) -> "NodeClassifier":
        """Change arguments; takes effect with the next ``fit``.

        Settings that the model does not have, and values that are not valid, are refused.
        """
        arguments = {key: value for key, value in params.items() if key in _ARGUMENTS}
        settings = {key: value for key, value in params.items() if key not in _ARGUMENTS}
        model = arguments.get("model", self.model)
        RunConfig.resolve(model, self.settings | settings, None, None, "none")
        self._config = None  # settings of `from_config` are resolved again with the new values
        vars(self).update(arguments)
        self.settings |= settings
        return self

    def __repr__(self) -> str:
        """Return the constructor with the arguments that differ from the defaults."""
        defaults = NodeClassifier().get_params()
        changed = []
        for key, value in self.get_params().items():
            if key not in defaults or value != defaults[key]:
                changed.append(f"{key}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> "Tags":
        return classifier_tags()

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted

    @property
    def classes_(self) -> Tensor:
        """The classes that ``predict`` returns: the numbers that ``class_names_`` belong to."""
        self.check_fitted()
        return torch.arange(self.num_classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of features that the model was trained on."""
        self.check_fitted()
        return self.num_features_

    def fit(
        self,
        data: Data | Sequence[Data],
        on_epoch: OnEpoch | None = None,
        checkpoint: Path | None = None,
    ) -> "NodeClassifier":
        """Learn from ``data.train_mask`` and select the epoch on ``data.val_mask``.

        Nodes of ``data.unobserved_mask`` and their edges are not seen. Torch's global generator is
        left as it was. A run that never rises above chance is restarted with other weights, at
        most ``restarts`` times (default: 1). ``history_.restarts`` counts the restarts, and
        ``history_.dead`` tells whether the last one failed too.

        Args:
            data: a graph with masks, or one that is split by its default protocol with the seed
                of the classifier (:func:`nfgnn.data.default_protocol`). Models that are trained on
                rows also accept a store, ``split(Store.open(path).labels(), …)``. Of a list, which
                a search of scikit-learn passes, the first graph is taken.
            on_epoch: called with the history after every epoch.
            checkpoint: file that mini-batch training writes from time to time and resumes from.
        """
        data = inputs.training_graph(inputs.with_split(single_graph(data), self.seed))
        with self.random_state():
            self.prepare_fit(data)
            restarts = self.config_.training.restarts
            for restart in range(restarts + 1):
                if restart > 0:
                    self.initialise(data, restart)
                try:
                    history = self._train(data, restart, on_epoch, checkpoint)
                except DivergedError:
                    inputs.check_finite_features(data)
                    if restart == restarts:
                        raise
                    continue
                self.finish_fit(data, restart, history)
                if not history.dead:
                    break
        return self

    def _train(
        self, data: Data, restart: int, on_epoch: OnEpoch | None, checkpoint: Path | None
    ) -> History:
        """Train the present weights."""
        config = self.training_config(data)
        check_partitions(self.model_, data.num_nodes, config)
        if not inputs.is_row_model(self.model_):
            scaled = self.scaled(data)
            scaled.x = sparse_if_faster(scaled.x)
            if config.partitions:
                scaled.part = inputs.graph_parts(data, config.partitions)
            return fit(self.model_, scaled, config, on_epoch)
        task = inputs.row_task(self.model_, data, self.scaling_)
        seed = self.start_seed(restart)
        if checkpoint is not None and restart > 0:
            # A resumed call finds the dead training in the first file and gets here again.
            checkpoint = checkpoint.with_suffix(f".restart-{restart}{checkpoint.suffix}")
        return fit_rows(self.model_, task, config, seed, on_epoch, checkpoint)

    def training_config(self, data: Data) -> TrainingConfig:
        """Return the settings of the training with the name of the graph's metric.

        The trainers only see tensors, from which they could not tell the official metric.
        """
        training = self.config_.training
        metric = resolve_metric(training.metric, data)
        return replace(training, metric=metric.name)

    def prepare_fit(self, data: Data) -> None:
        """Resolve the configuration, fit the scaling and build a model with fresh weights."""
        self._fitted = False
        missing = [name for name in ("train_mask", "val_mask") if data.get(name) is None]
        if missing:
            raise UserError(
                f"the graph has no {' and no '.join(missing)}: create the masks with "
                "nfgnn.split(data, protocol, seed)"
            )
        if self._config is not None:
            self.config_ = self._config
        else:
            protocol = data.get("protocol")
            self.config_ = inputs.resolve_config(
                data, self.model, self.settings, protocol, self.preset
            )
        self.scaling_ = inputs.fit_scaling(data, self.config_.training.features)
        self.class_names_ = names_of(data, "class_names")
        self.feature_names_ = inputs.checked_feature_names(data)
        self.feature_encoding_ = data.get("feature_encoding")
        self.initialise(data)

    def initialise(self, data: Data, restart: int = 0) -> None:
        """Build a model with fresh weights.

        Args:
            data: the graph.
            restart: 0 for the first weights, n for those after n dead trainings.
        """
        torch.manual_seed(self.start_seed(restart))
        self._build(*inputs.sizes(data))

    def start_seed(self, restart: int) -> int:
        """Return the seed of weights and dropout of the first training or of a restart."""
        return self.seed if restart == 0 else stream_seed(self.seed, restart)

    def finish_fit(self, data: Data, restart: int, history: History) -> None:
        """Keep the history of a training, and whether it is dead."""
        history.restarts = restart
        history.dead = is_dead(history, data, self.config_.training)
        self.history_ = history
        self._fitted = True

    @contextmanager
    def random_state(self) -> Iterator[None]:
        """Return a context that restores torch's generators when it ends.

        Torch has one generator per device for the whole process, so only one thread at a time can
        be in the context. That keeps fits in several threads reproducible.
        """
        devices = []
        if resolve_device(self.device).type == "cuda":
            devices = list(range(torch.cuda.device_count()))
        with _GENERATORS_IN_USE, torch.random.fork_rng(devices=devices):
            yield

    def predict_proba(self, data: Data) -> Tensor:
        """Return the class probabilities of every node, ``[num_nodes, num_classes]``.

        ``data`` may be a graph that the model has never seen.
        """
        shares = self._probabilities(data)
        if not bool(shares.isfinite().all()):
            raise UserError(
                "the model returns probabilities that are not numbers: check the features and edge "
                "weights of the graph for very large values; if they are right, train the model "
                "again, because weights.safetensors of a saved one may be damaged"
            )
        return shares

    def _probabilities(self, data: Data) -> Tensor:
        data = self._aligned(data)
        model = self._checked_model(data)
        if inputs.is_row_model(model):
            return self._map_rows(model, data, lambda rows: model.forward_rows(rows).softmax(-1))

        def probabilities(*graph: Any) -> Tensor:
            logits: Tensor = model(*graph)
            return logits.softmax(-1)

        model.eval()
        return self._on_whole_graph(data, probabilities)

    def predict(self, data: Data) -> Tensor:
        """Return the most probable class of every node."""
        return self.predict_proba(data).argmax(-1)

    def score(
        self,
        data: Data | Sequence[Data],
        mask: Tensor | None = None,
        metric: str | None = None,
    ) -> float:
        """Return the metric on the labelled nodes of ``mask``.

        Args:
            data: the graph. Of a list, which a search of scikit-learn passes, the first one.
            mask: the nodes to score. The default is ``data.test_mask``, or the test nodes of the
                split that :meth:`fit` makes of a graph without masks.
            metric: name of a metric. The default is the setting ``metric``, which is automatically
                the official metric of the graph: see :func:`nfgnn.training.resolve_metric`.

        Returns:
            A greater score is better: losses are negated, as by the scorers of scikit-learn.
        """
        self.check_fitted()
        metric = metric or self.config_.training.metric
        return score_nodes(self, single_graph(data), mask, metric)

    def coefficients(self, data: Data) -> Tensor:
        """Return Ψ, the filter coefficients of every node, ``[num_nodes, K + 1]``.

        They are given in the basis of ``model_.prop``.
        """
        data = self._aligned(data)
        model = self._checked_model(data)
        if inputs.is_row_model(model):
            return self._map_rows(model, data, model.row_coefficients)
        return self._on_whole_graph(data, model.eval().coefficients)

    def response(self, data: Data, nodes: Any = None, points: int = 201) -> tuple[Tensor, Tensor]:
        """Return the frequency response of the filters of ``nodes`` (default: all nodes).

        Returns:
            Frequencies λ in [0, λ_max], ``[points]``, and one curve per node,
            ``[len(nodes), points]``.
        """
        data = self._aligned(data)
        psi = self.coefficients(data)
        prop: Any = self.model_.filter
        t = torch.linspace(-1, 1, points, dtype=torch.float64)
        curves = psi.double() @ prop.basis.evaluate(t, prop.K).T
        if nodes is not None:
            try:
                selected = torch.as_tensor(nodes)
                # An empty list would become a tensor of float32.
                curves = curves[selected if selected.numel() else selected.long()]
            except (IndexError, TypeError, ValueError, RuntimeError):
                raise UserError(
                    f"nodes must hold indices from 0 to {len(curves) - 1}, or one boolean per node"
                ) from None
        return (t + 1) * self.lambda_max(data) / 2, curves

    def lambda_max(self, data: Data) -> float:
        """Return the largest graph frequency that the filter assumes for this graph."""
        data = self._aligned(data)
        prop = self.model_.filter
        if not isinstance(prop, PolynomialFilter):
            raise UserError(
                f"{self.config_.model} has no polynomial filter at its output, so it assumes no "
                "largest frequency"
            )
        store = inputs.store_of(data)
        if store is not None:
            return float(store.manifest.lambda_max)
        x, edge_index, edge_weight = self._model_inputs(data)
        return prop.operator(x, edge_index, edge_weight).lambda_max

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Write the fitted model to a folder.

        The files are ``classifier.json``, ``weights.safetensors`` and their checksums. A folder
        with other files is not replaced.

        Args:
            folder: the folder to write.
            overwrite: replace another model that was saved there.
        """
        self.check_fitted()
        folder = Path(folder)
        refuse_foreign_files(folder, (*FILES, SUMS).__contains__, "a saved model")
        exists = folder.exists() and any(folder.iterdir())
        if exists:
            read_description(folder)
        with atomic_folder(folder) as target:
            self.write_files(target)
            write_checksums(target, FILES)
            if exists:
                intact = not damaged_files(folder)
                same = intact and read_checksums(folder) == read_checksums(target)
                refuse_replacement(folder, "a model", ours=True, same=same, overwrite=overwrite)

    def write_files(self, folder: Path) -> None:
        """Write the files of :meth:`save` into an existing folder, without checksums."""
        state = self.model_.state_dict()
        tensors = {f"model.{key}": value.cpu().contiguous() for key, value in state.items()}
        for key, value in self.scaling_.tensors().items():
            tensors[f"{_SCALING}{key}"] = value.cpu().contiguous()
        save_tensors(tensors, folder / "weights.safetensors")
        description = {
            **MARKER,
            "config": self.config_.to_dict(),
            "seed": int(self.seed),
            "scaling": self.scaling_.how,
            "num_features": self.num_features_,
            "num_classes": self.num_classes_,
            "num_nodes": self.num_nodes_,
            "class_names": self.class_names_,
            "feature_names": self.feature_names_,
        }
        if self.feature_encoding_ is not None:
            description["feature_encoding"] = self.feature_encoding_.to_json()
        text = json.dumps(description, indent=1)
        (folder / "classifier.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "NodeClassifier":
        """Load a model that :meth:`save` has written, and verify its checksums."""
        folder = Path(folder)
        description = read_description(folder)
        if "kind" in description or (folder / SUMS).exists():
            refuse_damaged_files(folder, FILES, REMEDY)
        tensors = read_weights(folder / "weights.safetensors")
        try:
            config = RunConfig.from_dict(description["config"])
            self = cls.from_config(config, description["seed"], device)
            self.config_ = config
            self.history_ = History()
            self.class_names_ = description["class_names"]
            self.feature_names_ = description["feature_names"]
            encoding = description.get("feature_encoding")
            if encoding is not None:
                self.feature_encoding_ = TableEncoding.from_json(encoding)
            fitted = {
                key.removeprefix(_SCALING): value
                for key, value in tensors.items()
                if key.startswith(_SCALING)
            }
            self.scaling_ = FeatureScaling.from_tensors(description["scaling"], fitted)
            prefix = "model."
            state = {
                key.removeprefix(prefix): value
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
            sizes = [description[name] for name in ("num_features", "num_classes", "num_nodes")]
            check_names(description)
            self.scaling_.check(sizes[0])
            with CheckedAllocation(at_most_twice(state)):
                self._build(*sizes)
            self.model_.load_state_dict(state)
            self._fitted = True
        except UnknownPluginError as error:
            raise UserError(
                f"{folder}: this model uses the {error.kind} '{error.name}', which is not part of "
                "nfgnn: pass --import with the module that registers it, or import it in Python"
            ) from error
        except (ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
            raise UserError(
                f"{folder} is not a saved model of this version, or it is damaged: {error}; "
                f"{REMEDY}"
            ) from error
        return self

    def _build(self, num_features: int, num_classes: int, num_nodes: int) -> None:
        """Build the model for a graph of this size."""
        self.num_features_ = num_features
        self.num_classes_ = num_classes
        self.num_nodes_ = num_nodes
        model = self.config_.build(num_features, num_classes, num_nodes)
        self.model_ = model.to(resolve_device(self.device))

    def check_fitted(self) -> None:
        """Raise an error unless the classifier is fitted."""
        if not self._fitted:
            raise UserError("this NodeClassifier is not fitted yet: call fit(data) first")

    def scaled(self, data: Data, device: str | None = None) -> Data:
        """Return the graph with scaled features, by default on the device of the model."""
        # Node ids, names and the like would only be copied to the device for nothing.
        copy = Data(
            x=self.scaling_.apply(data.x),
            edge_index=data.edge_index,
            y=data.y,
            num_nodes=data.num_nodes,
        )
        for key in ("edge_weight", "train_mask", "val_mask", "num_classes"):
            if data.get(key) is not None:
                copy[key] = data[key]
        return copy.to(resolve_device(device or self.device))

    def _aligned(self, data: Data) -> Data:
        """Return the graph with its features in the order of training, if they have names."""
        self.check_fitted()
        if self.feature_encoding_ not in (None, data.get("feature_encoding")):
            raise UserError(
                "the columns of this table are not encoded as those that the model was trained on: "
                "load it with load_dataset(…, encoding=classifier.feature_encoding_)"
            )
        return inputs.align_features(data, self.feature_names_)

    def _checked_model(self, data: Data) -> NodeModel:
        """Return the model, unless it is not fitted or the graph has other features."""
        self.check_fitted()
        store = inputs.store_of(data)
        if store is not None and not inputs.is_row_model(self.model_):
            raise UserError(
                f"{store.origin} is a store, which holds terms and no edges, but "
                f"{self.config_.model} needs the graph: pass the graph itself"
            )
        inputs.check_num_features(data, self.num_features_)
        return self.model_

    def _map_rows(
        self, model: Scalable, data: Data, function: Callable[[Tensor], Tensor]
    ) -> Tensor:
        source = inputs.row_source(model.eval(), data, self.scaling_)
        device = resolve_device(self.device)
        return inputs.map_rows(source, data.num_nodes, device, function)

    def _on_whole_graph(self, data: Data, function: Callable[..., Tensor]) -> Tensor:
        """Return what the model or one of its methods computes of a graph, on the CPU.

        A model that was trained on parts of a graph may not fit into the memory of the GPU with the
        whole graph. It is then applied on the CPU.
        """
        try:
            with torch.no_grad():
                return function(*self._model_inputs(data)).detach().cpu()
        except torch.OutOfMemoryError:
            if not self.config_.training.partitions:
                raise
        self.model_.to("cpu")
        try:
            with torch.no_grad():
                return function(*self._model_inputs(data, "cpu")).detach()
        finally:
            self.model_.to(resolve_device(self.device))

    def _model_inputs(
        self, data: Data, device: str | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        self._checked_model(data)
        scaled = self.scaled(data, device)
        return scaled.x, scaled.edge_index, scaled.get("edge_weight")
