"""The HTML report is well-formed, self-contained and safe against names with markup."""

import re
from pathlib import Path

from helpers.html_tags import Tags
from helpers.small_graphs import own_graph

from nfgnn.explain import analyze_graph, write_analysis


def test_page_is_self_contained_and_escapes_names(tmp_path: Path) -> None:
    analysis = analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1], name="<script>&$x^$図"))
    write_analysis(analysis, tmp_path)
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "&lt;script&gt;&amp;$x^$図" in text
    for tag, attributes in tags.seen:
        for key in ("src", "href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith("#"), tag
    assert not re.search(r"url\((?!#)|@import", text)
    assert (
        "meta",
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    ) in tags.seen
    assert "prefers-color-scheme: dark" in text
    assert "currentColor" in text  # the ink follows the scheme
    assert sum(tag == "svg" for tag, _ in tags.seen) == 3
    ids = [attributes["id"] for _, attributes in tags.seen if "id" in attributes]
    assert all(i.startswith(("m", "p", "h")) for i in ids)  # only what is referred to
