"""Names that options accept, read from the source of the registries.

Importing the registries would import torch, which takes seconds. Shell completion and the
validation of options need an answer at once, so the names are parsed from the source instead.
"""

import ast
import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_MODEL = re.compile(r"^@register_model\(.*?^class (\w+)", re.MULTILINE | re.DOTALL)


def _model_names() -> tuple[str, ...]:
    """Return the classes that carry the decorator ``register_model``."""
    files = sorted((_PACKAGE / "nn" / "models").glob("*.py"))
    found = [name for file in files for name in _MODEL.findall(file.read_text(encoding="utf-8"))]
    return tuple(sorted(found))


def _value(module: str, variable: str) -> ast.expr:
    """Return the expression that a module assigns to a variable."""
    tree = ast.parse((_PACKAGE / module).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        else:
            continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if variable in names and node.value is not None:
            return node.value
    raise LookupError(f"{module} does not define {variable}")


def _strings(module: str, variable: str) -> tuple[str, ...]:
    """Return the string keys of a dictionary, or the string values of a tuple."""
    value = _value(module, variable)
    if isinstance(value, ast.Dict):
        items = [key for key in value.keys if key is not None]
    elif isinstance(value, ast.Tuple):
        items = value.elts
    else:
        raise LookupError(f"{variable} in {module} is neither a dictionary nor a tuple")
    constants = [item.value for item in items if isinstance(item, ast.Constant)]
    return tuple(text for text in constants if isinstance(text, str))


def _dataset_names() -> tuple[str, ...]:
    """Return the first argument of every entry of the registry, and the built-in graphs."""
    registry = "data/registry.py"
    table = _value(registry, "_TABLE")
    entries = table.elts if isinstance(table, ast.List) else []
    names = []
    for entry in entries:
        if isinstance(entry, ast.Call):
            by_keyword = [k.value for k in entry.keywords if k.arg in ("name", "title")]
            first = (entry.args + by_keyword)[0]
            if isinstance(first, ast.Constant):
                names.append(str(first.value).lower())
    return (*names, *_strings(registry, "BUILT_IN"))


DATASETS = _dataset_names()
MODELS = _model_names()
PROTOCOLS = _strings("data/splits.py", "PROTOCOLS")
BASES = _strings("spectral/bases/__init__.py", "BASES")
SCALINGS = _strings("data/scaling.py", "SCALINGS")
DTYPES = _strings("store/file_format.py", "DTYPES")
ITEMS = _strings("paper/table_registry.py", "TABLES")
METRICS = _strings("training/metrics.py", "METRICS")
PRESETS = _strings("training/presets/__init__.py", "KINDS")
FIRST_REPORT_SEED = 1000
"""Settings are selected on smaller split seeds, results are reported on these."""
