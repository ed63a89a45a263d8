"""The documentation builds without warnings."""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
# Without viewcode: highlighting every source file takes as long as all the rest.
EXTENSIONS = "myst_parser,sphinx.ext.autodoc,sphinx.ext.mathjax,sphinx.ext.napoleon"


def test_docs_build_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-D", f"extensions={EXTENSIONS}"]
    folders = ["-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "html")]
    result = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "html" / "api.html").is_file()
