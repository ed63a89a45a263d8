"""Gates of :class:`~nfgnn.nn.SpectralConv`: coefficients of every node, order and head.

A head is a group of neighbouring channels. The coefficients multiply the K + 1 terms before the
linear maps. Unlike the gates of :class:`~nfgnn.nn.NFConv`, they only weigh the orders
against each other: the filter itself lies in the weights, of which each order has its own. At the
start all coefficients are about 1, so the layer starts as the global filter.

To add a gate, derive it from :class:`HeadGate` in a file of this folder and list it in
:data:`HEAD_GATES`.
"""

from nfgnn import plugins
from nfgnn.nn.head_gates.agreement_head_gate import AgreementHeadGate
from nfgnn.nn.head_gates.attention_head_gate import AttentionHeadGate
from nfgnn.nn.head_gates.cluster_head_gate import ClusterHeadGate
from nfgnn.nn.head_gates.head_gate import HeadGate
from nfgnn.nn.head_gates.term_head_gate import TermHeadGate

HEAD_GATES: dict[str, type[HeadGate]] = {
    "term": TermHeadGate,
    "agreement": AgreementHeadGate,
    "attention": AttentionHeadGate,
    "cluster": ClusterHeadGate,
}
"""The gates by name. ``"none"`` stands for no gate."""


def find_head_gate(name: str) -> type[HeadGate] | None:
    """Return a gate by its name, ``None`` if there is none.

    A name that is not in :data:`HEAD_GATES` is looked up in other packages: see
    :mod:`nfgnn.plugins`.
    """
    return plugins.find_class(plugins.HEAD_GATES, name, HEAD_GATES, HeadGate, "nfgnn.nn.HeadGate")


__all__ = [
    "HEAD_GATES",
    "AgreementHeadGate",
    "AttentionHeadGate",
    "ClusterHeadGate",
    "HeadGate",
    "TermHeadGate",
    "find_head_gate",
]
