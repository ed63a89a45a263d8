"""The oracle of the study of node gates: coefficients by the true local pattern of a node."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nfgnn.nn import HeadGate, NodeModel, SpectralConv
from nfgnn.paper.studies.node_gate_plan import NONE
from nfgnn.spectral import ScaledLaplacian
from nfgnn.training import NodeClassifier, RunConfig, RunSpec

ORACLE = "oracle"
_PATTERNS = 3


class OracleHeadGate(HeadGate):
    """One set of coefficients for every true local pattern, all 1 at the start."""

    def __init__(self, channels: int, K: int, heads: int, num_nodes: int) -> None:
        super().__init__(channels, K, heads)
        self.weight = nn.Parameter(torch.empty(_PATTERNS, K + 1, heads))
        self.pattern: Tensor
        self.register_buffer("pattern", torch.zeros(num_nodes, dtype=torch.long), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)

    def forward(
        self, terms: Sequence[Tensor], operator: ScaledLaplacian, batch: Tensor | None = None
    ) -> Tensor:
        return self.weight[self.pattern]


class OracleConfig(RunConfig):
    """The configuration of the oracle, whose gate no user can choose."""

    @classmethod
    def of(cls, config: RunConfig) -> "OracleConfig":
        """Return the oracle with the settings of a network without a gate."""
        return cls(config.model, {**config.hyper, "gate": ORACLE}, config.training)

    def build(self, num_features: int, num_classes: int, num_nodes: int | None = None) -> NodeModel:
        assert num_nodes is not None
        plain = RunConfig(self.model, {**self.hyper, "gate": NONE}, self.training)
        model = plain.build(num_features, num_classes, num_nodes)
        for conv in _convolutions(model):
            heads = self.hyper["heads"]
            conv.gate = OracleHeadGate(conv.in_channels, conv.K, heads, num_nodes)
        return model


class OracleClassifier(NodeClassifier):
    """A network whose gates know the pattern of every node."""

    def initialise(self, data: Data, restart: int = 0) -> None:
        super().initialise(data, restart)
        for conv in _convolutions(self.model_):
            gate = conv.gate
            assert isinstance(gate, OracleHeadGate)
            gate.pattern = data.pattern.to(gate.weight.device)


class OracleSpec(RunSpec):
    """A run of the oracle."""

    @classmethod
    def of(cls, spec: RunSpec) -> "OracleSpec":
        """Return the oracle's run with the settings of a network without a gate."""
        return cls(spec.graph, spec.protocol, spec.seed, OracleConfig.of(spec.config))

    def classifier(self, device: str) -> NodeClassifier:
        return OracleClassifier.from_config(self.config, self.seed, device)


def _convolutions(model: nn.Module) -> list[SpectralConv]:
    return [module for module in model.modules() if isinstance(module, SpectralConv)]
