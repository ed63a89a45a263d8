"""Fill pages with content that is generated from the package when the site is built.

A page names what it needs in a comment on a line of its own, such as
``<!-- generated: commands -->``. The comment is replaced by Markdown before the page is parsed.
"""

import re
from pathlib import Path

from command_reference import commands
from example_gallery import examples
from metric_reference import metrics
from model_reference import models
from setting_reference import settings
from sphinx.application import Sphinx

PLACEHOLDER = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
GENERATORS = {
    "commands": commands,
    "metrics": metrics,
    "models": models,
    "settings": settings,
}


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("gallery_examples", "*.py", "env", str)
    app.connect("source-read", _fill_page)
    return {"parallel_read_safe": False}


def _fill_page(app: Sphinx, page: str, source: list[str]) -> None:
    def generated(match: re.Match[str]) -> str:
        name = match[1]
        if name == "examples":
            return examples(app, Path(app.env.doc2path(page)).parent)
        return GENERATORS[name]()

    source[0] = PLACEHOLDER.sub(generated, source[0])
