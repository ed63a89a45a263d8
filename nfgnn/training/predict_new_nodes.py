"""Predictions for nodes that were not there when the terms were computed."""

import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from nfgnn.errors import UserError
from nfgnn.spectral import scaled_laplacian
from nfgnn.store import NewNodes, terms_of_new_nodes
from nfgnn.training.classifier import NodeClassifier
from nfgnn.training.inputs import is_row_model


def predict_new_nodes(classifier: NodeClassifier, graph: Data, new: Data) -> Tensor:
    """Class probabilities ``[m, num_classes]`` of new nodes, by looking at K links around them only.

    Equal to :meth:`NodeClassifier.predict_proba` on the graph with the new nodes in it.

    Args:
        classifier: of a model that works on rows (``ScalableNFGNN``, …).
        graph: the known graph, with its features as they were before scaling.
        new: ``x``, ``edge_index`` (each link once; numbers from ``graph.num_nodes`` on are the new nodes) and, where
            the graph has weights, ``edge_weight``: see :func:`nfgnn.data.load_new_nodes`.
    """
    model, scaling = classifier.model_, classifier.scaling_
    if not is_row_model(model):
        raise UserError(
            f"{classifier.config_.model} looks at whole graphs: predict on the extended one, or train a Scalable… model"
        )
    prop = model.prop
    if isinstance(prop.lambda_max, str):
        raise UserError(
            "lambda_max = 'estimate' is a property of a whole graph: train with a number"
        )
    existing = scaled_laplacian(graph.edge_index, graph.get("edge_weight"), graph.num_nodes)
    added = NewNodes(scaling.apply(new.x), new.edge_index, new.get("edge_weight"))
    terms = terms_of_new_nodes(
        existing,
        lambda nodes: scaling.apply(_rows(graph.x, nodes)),
        added,
        prop.basis,
        prop.K,
        prop.self_loops,
        prop.lambda_max,
    )
    device = next(model.parameters()).device
    with torch.no_grad():
        return model.eval().forward_rows(terms.to(device)).softmax(-1).cpu()


def _rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Some rows of a matrix, dense or CSR, as a dense one."""
    if x.layout == torch.strided:
        return x[nodes]
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return torch.from_numpy(sparse.csr_array(parts, shape=tuple(x.shape))[nodes.numpy()].toarray())
