"""Gates: how :class:`~nfgnn.nn.NFConv` chooses the filter coefficients of a node.

A new gate is one small file with a subclass of :class:`Gate`, and one line in ``GATES``.
"""

from nfgnn import plugins
from nfgnn.nn.gates.agreement_gate import AgreementGate
from nfgnn.nn.gates.gate import ACTIVATIONS, Gate
from nfgnn.nn.gates.input_gate import InputGate
from nfgnn.nn.gates.published_gate import PublishedGate
from nfgnn.nn.gates.term_gate import TermGate

GATES: dict[str, type[Gate]] = {
    "term": TermGate,
    "input": InputGate,
    "published": PublishedGate,
    "agreement": AgreementGate,
}


def find_gate(name: str) -> type[Gate] | None:
    """Return a gate by its name, ``None`` if there is none.

    A name that is not in ``GATES`` is looked up in other packages: see :mod:`nfgnn.plugins`.
    """
    return plugins.find_class(plugins.GATES, name, GATES, Gate, "nfgnn.nn.Gate")


__all__ = [
    "ACTIVATIONS",
    "GATES",
    "AgreementGate",
    "Gate",
    "InputGate",
    "PublishedGate",
    "TermGate",
    "find_gate",
]
