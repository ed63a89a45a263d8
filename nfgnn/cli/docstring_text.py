"""The plain text of a docstring, for ``nfgnn models NAME``, which prints to a terminal."""

import inspect
import re
from collections.abc import Mapping

# LaTeX commands that the docstrings use, as Unicode. Escaped braces become ⟦ and ⟧ until the
# grouping braces are resolved.
_LATEX = (
    (r"\\(?:mathrm|text)\{([^{}]*)\}", r"\1"),
    (r"\\(?:mathbf|Big|big)\s*", ""),
    (r"\\hat\s*(\w)", "\\1\u0302"),
    (r"\\tilde\s*(\w)", "\\1\u0303"),
    (r"\\sum_\{([^{}]*)\}\^\{?(\w)\}?", r"Σ_{\1…\2}"),
    (r"\\sum", "Σ"),
    (r"\\binom\{([^{}]*)\}\{([^{}]*)\}", r" binom(\1, \2)"),
    (r"\\frac(\w)(\w)", r"\1/\2"),
    (r"\\sqrt\s*(\w)", r"√\1"),
    (r"\\tanh", "tanh"),
    (r"\\,", " "),
    (r"\\\{", "⟦"),
    (r"\\\}", "⟧"),
)
_EQUATION_END = re.compile(r",?\s*\\q?quad\s*")
_ARGUMENT = re.compile(r"    (\w[\w, ]*?)(?: \([^)]*\))?: ")
_REFERENCE = re.compile(r"see (\w+)\.\s*")


def plain_text(docstring: str) -> str:
    """Return a docstring without markup, with one line per paragraph and per equation."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(docstring))
    return "\n\n".join(_block(block) for block in blocks)


def summary(documented: type) -> str:
    """Return the text of a class up to the list of its arguments."""
    before, _, _ = (inspect.getdoc(documented) or "").partition("\nArgs:")
    return plain_text(before)


def arguments(documented: type, namespace: Mapping[str, object]) -> dict[str, str]:
    """Return the description of every argument of a class, including those of its base classes.

    Args:
        documented: the class.
        namespace: classes by name, to resolve a description such as "see NFConv".
    """
    found: dict[str, str] = {}
    for base in reversed(documented.__mro__):
        found |= _own_arguments(base.__doc__ or "")
    return {name: _resolved(name, text, namespace) for name, text in found.items()}


def _resolved(name: str, text: str, namespace: Mapping[str, object]) -> str:
    """Replace a reference to another class by what that class says about an argument."""
    reference = _REFERENCE.match(text)
    if reference is None:
        return text
    other = namespace.get(reference[1])
    if not isinstance(other, type):
        return text
    described = _own_arguments(other.__doc__ or "").get(name, "")
    described = _resolved(name, described, namespace)
    return f"{described} {text[reference.end() :]}".strip()


def _own_arguments(docstring: str) -> dict[str, str]:
    """Return the arguments that a docstring lists, without their types and defaults."""
    _, _, after = inspect.cleandoc(docstring).partition("\nArgs:\n")
    section, _, _ = after.partition("\n\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        start = _ARGUMENT.match(line)
        if start is not None:
            names = start[1].split(", ")
            line = line[start.end() :]
        for name in names:
            found[name] = f"{found.get(name, '')} {line.strip()}"
    return {name: _without_default(_inline(text)) for name, text in found.items()}


def _without_default(text: str) -> str:
    return re.sub(r"\(default:[^)]*\)", "", text).strip()


def _block(block: str) -> str:
    """Return a paragraph or a formula without markup. Formulas are indented."""
    if not block.startswith((".. math::", " ")):
        return " ".join(_inline(block).split())
    formula = " ".join(block.removeprefix(".. math::").split())
    equations = [_formula(equation) for equation in _EQUATION_END.split(formula)]
    return "\n".join(f"    {equation}" for equation in equations if equation)


def _inline(text: str) -> str:
    """Remove roles, links and literal marks from a paragraph."""
    text = re.sub(r":math:`([^`]+)`", lambda role: _formula(role[1]), text)
    text = re.sub(r"`([^`<]+?)\s*<[^>]*>`_", r"\1", text)
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?([^`]+)`", r"\1", text)
    return text.replace("``", "")


def _formula(latex: str) -> str:
    """Return a formula as text, such as ``Z = Σ_(k=0…K) γ_k X^(k)``."""
    text = latex
    for pattern, replacement in _LATEX:
        text = re.sub(pattern, replacement, text)
    # Groups are nested, so they are resolved from the inside out.
    before = ""
    while text != before:
        before = text
        text = re.sub(r"([_^])\{(\w+|\([^(){}]*\))\}", r"\1\2", text)
        text = re.sub(r"([_^])\{([^{}]*)\}", r"\1(\2)", text)
        text = re.sub(r"\\sqrt\s*\{([^{}]*)\}", r"√(\1)", text)
        text = re.sub(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", _fraction, text)
    return " ".join(text.replace("⟦", "{").replace("⟧", "}").split())


def _fraction(parts: re.Match[str]) -> str:
    return f"{_parenthesised(parts[1])} / {_parenthesised(parts[2])}"


def _parenthesised(term: str) -> str:
    """Return a term in parentheses, unless it is a single factor."""
    outside = re.sub(r"\([^()]*\)", "", term)
    return f"({term})" if " " in outside else term
