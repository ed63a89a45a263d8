"""The HTML report is well-formed, self-contained and safe against names with markup."""

import re
from html.parser import HTMLParser
from pathlib import Path

from helpers.small_graphs import own_graph

from nfgnn.explain import analyze_graph, write_analysis


class Tags(HTMLParser):
    """Collect tags and attributes, and check that opened elements are closed."""

    void = frozenset({"meta", "br", "path", "use", "rect", "stop", "image", "circle", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


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
