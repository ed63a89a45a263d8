"""Docstrings as plain text: formulas, markup and the descriptions of arguments."""

import pytest

from nfgnn import nn
from nfgnn.cli.docstring_text import arguments, plain_text, summary
from nfgnn.nn.models import MODELS


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        (
            r".. math:: Z = \sum_{k=0}^{K} γ_k \hat A^k, \qquad Y = B",
            "    Z = Σ_(k=0…K) γ_k Â^k\n    Y = B",
        ),
        (r"The share :math:`\frac{a + b}{c_{ij}}` is small.", "The share (a + b) / c_ij is small."),
        (r":math:`\mathrm{ReLU}\big(D^{-1/2} X^{(l)}\big)`", "ReLU(D^(-1/2) X^(l))"),
        (r":math:`\frac{x}{\sqrt{d_i d_j}}`", "x / √(d_i d_j)"),
        ("See :class:`~nfgnn.nn.NFConv` and\n``K``.", "See NFConv and K."),
        ("By `Luo et al. <address>`_.", "By Luo et al.."),
    ],
)
def test_markup(docstring: str, text: str) -> None:
    assert plain_text(docstring) == text.replace("Â", "A\u0302")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_models_have_no_markup_left(name: str) -> None:
    model = MODELS[name].model
    text = "\n".join([summary(model), *arguments(model, vars(nn)).values()])
    assert text
    assert "\\" not in text
    assert "`" not in text


def test_references_to_other_classes_are_resolved() -> None:
    meanings = arguments(MODELS["ScalablePolyGNN"].model, vars(nn))
    assert meanings["hidden_channels"] == "width of the MLP."
    assert meanings["K"].startswith("degree")
