"""Predict the classes of new nodes with a model and a store that stay open.

:class:`StorePredictor` attaches new nodes to the graph of a store and applies a model to them;
:class:`PredictionServer` offers it over HTTP.
"""

from nfgnn.serving.http_server import PredictionServer
from nfgnn.serving.store_predictor import NewNode, NodePrediction, StorePredictor, serves

__all__ = ["NewNode", "NodePrediction", "PredictionServer", "StorePredictor", "serves"]
