"""The HTML report is well-formed, self-contained and safe against names with markup."""

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from helpers.html_tags import Tags
from helpers.small_graphs import own_graph

from nfgnn.explain import analyze_graph, write_analysis


@pytest.fixture(scope="module")
def analysis() -> dict[str, Any]:
    return analyze_graph(own_graph([0, 0, 1, 1, 0, 0, 1, -1], name="<script>&$x^$図"))


@pytest.fixture(scope="module")
def page_file(analysis: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analysis")
    write_analysis(analysis, folder)
    return folder / "index.html"


def test_page_is_self_contained_and_escapes_names(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
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


def test_tiles_come_first_then_verdict_figures_and_numbers(
    analysis: dict[str, Any], page_file: Path
) -> None:
    # Without the elements that keep the words of a command in one piece.
    text = re.sub("</?span>", "", page_file.read_text(encoding="utf-8"))
    words = analysis["words"]
    parts = [
        *(f"<h2>{tile['label']}</h2>" for tile in words["tiles"]),
        words["summary"],
        escape(analysis["commands"][0]["command"]),
        "<h2>Figures</h2>",
        "<strong>Homophily.</strong>",
        "<h2>Numbers</h2>",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    # 4 of 7 labelled nodes are of class 0, the largest; 3 are of class 1.
    assert '<i style="width:100.0%"></i><span class="percent">4 (57.1&nbsp;%)' in text
    assert '<i style="width:75.0%"></i><span class="percent">3 (42.9&nbsp;%)' in text


def test_page_fits_the_screen_without_dead_space(page_file: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    # The empty space below the last element of every card.
    slack = page.evaluate(
        """[...document.querySelectorAll("figure, .tile, .numbers")].map(card =>
            card.getBoundingClientRect().bottom -
            card.lastElementChild.getBoundingClientRect().bottom)"""
    )
    assert len(slack) == 11  # 3 tiles, 4 figures, 4 tables
    assert max(slack) < 80
    page.close()
