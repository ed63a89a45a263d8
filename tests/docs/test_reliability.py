"""Every test that docs/reliability.md names exists."""

import ast
import re

from test_readme import REPOSITORY

PAGE = REPOSITORY / "docs" / "reliability.md"


def test_every_promise_has_a_test() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| .*[.] \|", line)]
    assert len(rows) >= 40
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for file, name in named:
            tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
            functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert not name or name in functions, row
