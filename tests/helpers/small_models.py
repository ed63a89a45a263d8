"""Trained models on a small graph, for the tests of figures."""

from nfgnn.data import mixed_graph
from nfgnn.paper.trained_models import TrainedModels
from nfgnn.training import Graph


class SmallModels(TrainedModels):
    """Every name stands for one small graph with nodes in all filter subsets."""

    def source(self, dataset: str) -> Graph:
        if dataset not in self._graphs:
            data = mixed_graph(120, degree=5, num_features=6, seed=2)
            self._graphs[dataset] = Graph.of(data)
        return self._graphs[dataset]
