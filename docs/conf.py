"""Sphinx configuration. ``make docs`` builds the site; every warning is an error."""

import sys
from importlib.resources import files
from pathlib import Path

import nfgnn

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "nfgnn"
author = "The nfgnn authors"
copyright = "2026, The nfgnn authors"
release = nfgnn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "generated_content",
]
# Highlighting every source file takes as long as all the rest, so the test goes without.
if "without_sources" not in tags:  # noqa: F821 - Sphinx defines it
    extensions.append("sphinx.ext.viewcode")
exclude_patterns = ["_build"]

gallery_examples = "*.py"

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = f"nfgnn {release}"
html_css_files = ["site.css"]
# MathJax is part of the site, so that formulas need no network. Its SVG output needs no fonts.
mathjax = files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg.js"
html_static_path = ["_static", str(mathjax)]
mathjax_path = "tex-svg.js"

# Without this, every page copies the entries of all objects for its navigation.
toc_object_entries = False
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "notes_style")]
