"""Predictions for nodes that were added to a graph after training."""

import copy

import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.data import names_of
from nfgnn.errors import UserError
from nfgnn.spectral import scaled_laplacian
from nfgnn.store import NewNodes, parts_of_new_nodes, terms_of_new_nodes
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.inputs import align_features, check_num_features, is_row_model


def predict_new_nodes(classifier: NodeClassifier, graph: Data, new: Data) -> Tensor:
    """Return the class probabilities of new nodes, ``[m, num_classes]``.

    Only the K-hop neighbourhood of the new nodes is read. The result equals
    :meth:`NodeClassifier.predict_proba` on the graph with the new nodes in it.

    Args:
        classifier: of a model that is trained on rows (``ScalableNFGNN``, …).
        graph: the existing graph, with features as they were before scaling.
        new: ``x``, ``edge_index`` (each edge once; indices from ``graph.num_nodes`` on are the new
            nodes) and, for a weighted graph, ``edge_weight``: see
            :func:`nfgnn.data.load_new_nodes`. Without ``feature_names``, the features are in the
            order of the graph's.
    """
    classifier.check_fitted()
    model = classifier.model_
    scaling = classifier.scaling_
    if not names_of(new, "feature_names"):
        new = copy.copy(new)
        new.feature_names = names_of(graph, "feature_names")
    graph = align_features(graph, classifier.feature_names_)
    new = align_features(new, classifier.feature_names_)
    for part in (graph, new):
        check_num_features(part, classifier.num_features_)
    if not is_row_model(model):
        raise UserError(
            f"{classifier.config_.model} needs the whole graph: predict on the extended graph, or "
            "train a Scalable… model"
        )
    prop = model.prop
    if isinstance(prop.lambda_max, str):
        raise UserError(
            "lambda_max = 'estimate' depends on the whole graph: set lambda_max to a number and "
            "train again"
        )
    existing = scaled_laplacian(graph.edge_index, graph.get("edge_weight"), graph.num_nodes)
    added = NewNodes(scaling.apply(new.x), new.edge_index, new.get("edge_weight"))

    def features(nodes: Tensor) -> Tensor:
        return scaling.apply(_rows(graph.x, nodes))

    terms = terms_of_new_nodes(
        existing,
        features,
        added,
        prop.basis,
        prop.K,
        prop.self_loops,
        prop.lambda_max,
    )
    if model.parts.columns:
        parts = parts_of_new_nodes(existing, features, added, model.parts)
        terms = torch.cat([terms.flatten(1), parts], 1)
    device = next(model.parameters()).device
    with torch.no_grad():
        return model.eval().forward_rows(terms.to(device)).softmax(-1).cpu()


def _rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Return rows of a dense or sparse matrix as a dense matrix."""
    if x.layout == torch.strided:
        return x[nodes]
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    matrix = sparse.csr_array(parts, shape=tuple(x.shape))
    return torch.from_numpy(matrix[nodes.numpy()].toarray())
