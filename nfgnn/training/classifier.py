"""Node classification in the manner of scikit-learn."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import FeatureScaling
from nfgnn.errors import UserError
from nfgnn.files import atomic_folder
from nfgnn.nn import NodeModel
from nfgnn.training import row_data
from nfgnn.training.config import RunConfig
from nfgnn.training.device import resolve_device as resolve_device
from nfgnn.training.fit import OnEpoch, fit
from nfgnn.training.history import History
from nfgnn.training.metrics import accuracy
from nfgnn.training.minibatch import fit_rows


class NodeClassifier:
    """A model of this library that learns the classes of nodes.

    Args:
        model: name of the model, see ``nfgnn models``.
        preset: ``"best"``, ``"paper"`` or ``"none"``: where hyper-parameters that are not given come from
            (:mod:`nfgnn.training.presets`, by dataset and protocol of the graph fitted).
        seed: decides initial weights and dropout.
        device: ``"auto"`` is a GPU where there is one.
        **settings: hyper-parameters of the model (``K``, ``rank``, ``basis``, ``dropout``, …) and of the training
            (``lr``, ``filter_lr``, ``weight_decay``, ``epochs``, ``features``, …).

    After ``fit``: ``model_`` (the module), ``config_``, ``history_``, ``scaling_``.

    Example:
        >>> from nfgnn import NodeClassifier, load_dataset, split
        >>> data = split(load_dataset("karate"), protocol="stratified", seed=0)
        >>> clf = NodeClassifier("NFGNN", K=4, epochs=50).fit(data)
        >>> clf.predict(data).shape
        torch.Size([34])
    """

    def __init__(
        self,
        model: str = "NFGNN",
        *,
        preset: str = "best",
        seed: int = 0,
        device: str = "auto",
        **settings: Any,
    ) -> None:
        self.model, self.preset, self.seed, self.device, self.settings = (
            model,
            preset,
            seed,
            device,
            settings,
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments, as scikit-learn asks for them."""
        return {
            "model": self.model,
            "preset": self.preset,
            "seed": self.seed,
            "device": self.device,
            **self.settings,
        }

    def set_params(self, **params: Any) -> "NodeClassifier":
        """Change arguments; takes effect with the next ``fit``."""
        for key, value in params.items():
            if key in ("model", "preset", "seed", "device"):
                setattr(self, key, value)
            else:
                self.settings[key] = value
        return self

    def fit(
        self, data: Data, on_epoch: OnEpoch | None = None, checkpoint: Path | None = None
    ) -> "NodeClassifier":
        """Learn from ``data.train_mask``, choose the epoch on ``data.val_mask``; torch's generator is left alone.

        Models that are trained on rows also take a store, ``split(Store.open(path).labels(), …)``; they write
        ``checkpoint`` now and then, and go on from it where it is there. Nodes of ``data.unobserved_mask`` and their
        edges are not seen.
        """
        data = row_data.seen_in_training(data)
        with self._random():
            self._begin(data)
            config = self.config_.training
            if row_data.by_rows(self.model_):
                task = row_data.row_task(self.model_, data, self.scaling_)
                self.history_: History = fit_rows(
                    self.model_, task, config, self.seed, on_epoch, checkpoint
                )
            else:
                self.history_ = fit(self.model_, self._prepare(data), config, on_epoch)
        return self

    def _begin(self, data: Data) -> None:
        """Everything up to training: hyper-parameters, scaling, a fresh model."""
        missing = [name for name in ("train_mask", "val_mask") if data.get(name) is None]
        if missing:
            raise UserError(
                f"the graph has no {' and no '.join(missing)}: make one with nfgnn.split(data, protocol, seed)"
            )
        self.config_ = row_data.resolve_config(
            data, self.model, self.settings, data.get("protocol"), self.preset
        )
        self.scaling_ = row_data.scaling_of(data, self.config_.training.features)
        self.class_names_: list[str] | None = data.get("class_names")
        self.feature_names_: list[str] | None = data.get("feature_names")
        torch.manual_seed(self.seed)
        self.model_: NodeModel = self._build(*row_data.sizes(data))

    def _random(self) -> AbstractContextManager[None]:
        """A context whose random numbers do not disturb torch's own generator."""
        return torch.random.fork_rng(devices=self._cuda_devices())

    def predict_proba(self, data: Data) -> Tensor:
        """Class probabilities of every node, ``[num_nodes, num_classes]``; ``data`` may be a graph never seen."""
        if self._by_rows(data):
            return self._for_rows(data, lambda rows: self.model_.forward_rows(rows).softmax(-1))  # type: ignore[operator]
        with torch.no_grad():
            logits: Tensor = self.model_.eval()(*self._inputs(data))
        return logits.softmax(-1).cpu()

    def predict(self, data: Data) -> Tensor:
        """The most probable class of every node."""
        return self.predict_proba(data).argmax(-1)

    def score(self, data: Data, mask: Tensor | None = None) -> float:
        """Accuracy on the nodes of ``mask``, by default ``data.test_mask``; nodes without a label do not count."""
        mask = data.test_mask if mask is None else mask
        nodes = mask & (data.y >= 0).cpu()
        if not bool(nodes.any()):
            raise UserError("there is no labelled node in the mask to score")
        return accuracy(self.predict_proba(data)[nodes], data.y[nodes].cpu())

    def coefficients(self, data: Data) -> Tensor:
        """Ψ: the filter coefficients of every node, ``[num_nodes, K + 1]``, in the basis of ``model_.prop``."""
        if self._by_rows(data):
            return self._for_rows(data, self.model_.row_coefficients)  # type: ignore[arg-type]
        with torch.no_grad():
            psi = self.model_.eval().coefficients(*self._inputs(data))
        return psi.detach().cpu()

    def response(self, data: Data, nodes: Any = None, points: int = 201) -> tuple[Tensor, Tensor]:
        """Frequencies λ in [0, λ_max] and the frequency response of every node in ``nodes`` (default: all) at them.

        Returns:
            λ ``[points]`` and one curve per node ``[len(nodes), points]``.
        """
        psi = self.coefficients(data)
        prop: Any = self.model_.prop
        t = torch.linspace(-1, 1, points, dtype=torch.float64)
        curves = psi.double() @ prop.basis.evaluate(t, prop.K).T
        chosen = slice(None) if nodes is None else torch.as_tensor(nodes)
        return (t + 1) * self.lambda_max(data) / 2, curves[chosen]

    def lambda_max(self, data: Data) -> float:
        """The largest graph frequency that the filter assumes for this graph."""
        prop: Any = self.model_.prop
        store = row_data.store_of(data)
        return float(
            prop.operator(*self._inputs(data)).lambda_max
            if store is None
            else store.manifest.lambda_max
        )

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to a new folder: ``classifier.json`` and ``weights.safetensors``, never a pickle."""
        self._check_fitted()
        with atomic_folder(Path(folder)) as target:
            self._write(target)

    def _write(self, target: Path) -> None:
        """The files of :meth:`save`, into a folder that is there."""
        from safetensors.torch import save_file

        tensors = {f"model.{k}": v.cpu().contiguous() for k, v in self.model_.state_dict().items()}
        for name in ("mean", "deviation"):
            if (value := getattr(self.scaling_, name)) is not None:
                tensors[f"scaling.{name}"] = value.cpu()
        save_file(tensors, target / "weights.safetensors")
        (target / "weights.safetensors").chmod(
            0o644
        )  # as all other files; it is made for its owner alone
        description = {
            "config": self.config_.to_dict(),
            "seed": self.seed,
            "scaling": self.scaling_.how,
            "num_features": self.num_features_,
            "num_classes": self.num_classes_,
            "num_nodes": self.num_nodes_,
            "class_names": self.class_names_,
            "feature_names": self.feature_names_,
        }
        (target / "classifier.json").write_text(json.dumps(description, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "NodeClassifier":
        """A model written by :meth:`save`, ready to predict."""
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            description = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
            tensors = load_file(folder / "weights.safetensors")
            config = RunConfig.from_dict(description["config"])
            self = cls(config.model, preset="none", seed=description["seed"], device=device)
            self.config_, self.history_ = config, History()
            self.class_names_, self.feature_names_ = (
                description["class_names"],
                description["feature_names"],
            )
            statistics = (tensors.get("scaling.mean"), tensors.get("scaling.deviation"))
            self.scaling_ = FeatureScaling(description["scaling"], *statistics)
            sizes = (description[f"num_{what}"] for what in ("features", "classes", "nodes"))
            self.model_ = self._build(*sizes)
            state = {
                k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")
            }
            self.model_.load_state_dict(state)
        except FileNotFoundError as error:
            raise UserError(
                f"{folder} is not a saved model: {Path(error.filename).name} is missing"
            ) from None
        except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise UserError(
                f"{folder} is not a saved model of this version, or it is damaged: {error}"
            ) from error
        return self

    def _build(self, num_features: int, num_classes: int, num_nodes: int) -> NodeModel:
        """A new model for a graph of this size; the size is kept."""
        self.num_features_, self.num_classes_, self.num_nodes_ = (
            num_features,
            num_classes,
            num_nodes,
        )
        return self.config_.build(num_features, num_classes, num_nodes).to(self._device())

    def _device(self) -> torch.device:
        return resolve_device(self.device)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise UserError("this NodeClassifier is not fitted yet: call fit(data) first")

    def _cuda_devices(self) -> list[int]:
        return list(range(torch.cuda.device_count())) if self._device().type == "cuda" else []

    def _prepare(self, data: Data) -> Data:
        """The graph with scaled features, on the device."""
        copy = Data(
            x=self.scaling_.apply(data.x),
            edge_index=data.edge_index,
            y=data.y,
            num_nodes=data.num_nodes,
        )
        for key in ("edge_weight", "train_mask", "val_mask"):
            if data.get(key) is not None:
                copy[key] = data[key]
        return copy.to(self._device())

    def _check(self, data: Data) -> None:
        """Refuse to predict before ``fit``, or on other features than those of training."""
        self._check_fitted()
        features, _, _ = row_data.sizes(data)
        if features != self.num_features_:
            raise UserError(
                f"the model was trained on {self.num_features_} features, this graph has {features}"
            )

    def _by_rows(self, data: Data) -> bool:
        self._check(data)
        return row_data.by_rows(self.model_)

    def _for_rows(self, data: Data, function: Callable[[Tensor], Tensor]) -> Tensor:
        source = row_data.row_source(self.model_.eval(), data, self.scaling_)  # type: ignore[arg-type]
        return row_data.for_all_rows(source, data.num_nodes, self._device(), function)

    def _inputs(self, data: Data) -> tuple[Tensor, Tensor, Tensor | None]:
        self._check(data)
        prepared = self._prepare(data)
        return prepared.x, prepared.edge_index, prepared.get("edge_weight")
