"""The HTML report of a search is well-formed, self-contained and fits narrow screens."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.auto_results import auto_result
from helpers.html_tags import Tags

from nfgnn.explain.auto_page import search_page


def elements(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def test_page_is_self_contained_and_escapes_names() -> None:
    result = auto_result(
        dataset="<script>&図",
        classes=["<b>", "b", "c"],
        notes=("<img>",),
        command="nfgnn train '<script>' --preset x.toml",
    )
    text = search_page(result)
    tags = elements(text)
    assert not {"script", "img", "b"} & {tag for tag, _ in tags.seen}
    assert "&lt;script&gt;&amp;図" in text
    for tag, attributes in tags.seen:
        assert not {"src", "href"} & set(attributes), tag
    assert not re.search(r"url\(|@import", text)


def test_page_has_the_parts_of_the_report() -> None:
    result = auto_result()
    text = search_page(result)
    elements(text)
    text = re.sub("</?span>", "", text)
    for sentence in (*result.value.sentences[1:], result.command, "Accuracy by local homophily"):
        assert sentence.replace("'", "&#x27;") in text
    rows = re.findall(r"<tr>(.*?)</tr>", text)
    nfgnn = next(row for row in rows if "found by the search: rank=3" in row)
    assert "84.0 %" in nfgnn
    assert "80.0 to 88.0" in nfgnn
    # 5 entries, 3 families, 3 scores of the ensemble and of test nodes, 4 intervals, 3 classes,
    # 4 heads.
    assert len(rows) == 22
    assert "0.4–0.6" not in text  # an interval without nodes


def test_warnings_are_shown_below_the_scores() -> None:
    assert "Warning" not in search_page(auto_result())
    text = search_page(auto_result(warnings=("the model never predicts '<c>'",)))
    elements(text)
    warning = "Warning: the model never predicts &#x27;&lt;c&gt;&#x27;."
    assert text.index('class="verdict"') < text.index(warning) < text.index('class="tiles"')


def test_verdict_comes_first_then_tiles_leaderboard_and_figures() -> None:
    result = auto_result()
    text = search_page(result)
    parts = (
        '<p class="verdict">The best model, NFGNN, scores 84.0',
        '<div class="tiles">',
        "<span>nfgnn</span> <span>predict</span> <span>runs/survey</span>",
        "<h2>Leaderboard</h2>",
        "<h2>What features and edges contribute</h2>",
        "<h2>Accuracy by local homophily</h2>",
        "<h2>Classes</h2>",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    # Test scores of the best model, the ensemble and the constant prediction.
    for width in ("83.0", "84.5", "40.0"):
        assert f'<i style="width:{width}%"></i>' in text


def test_bars_are_proportional() -> None:
    text = search_page(auto_result())
    # The scale goes from the constant prediction, 40 %, to the highest limit, 89 %, with margins.
    width = 1.06 * 0.49
    low = 0.4 - 0.03 * 0.49
    expected = 100 * (0.84 - low) / width
    assert f'<i class="value" style="left:{expected:.1f}%"></i>' in text


def test_page_without_ensemble_test_nodes_edges_and_findings() -> None:
    result = auto_result(ensemble=None, ensemble_test=None, test=None, majority={})
    value = replace(result.value, intervals=(), sentences=result.value.sentences[:1])
    text = search_page(replace(result, value=value))
    elements(text)
    assert "local homophily" not in text
    assert "dashed line" not in text


@pytest.mark.parametrize("width", [390, 1440])
def test_page_fits_the_screen(tmp_path: Path, browser: Any, width: int) -> None:
    path = tmp_path / "auto.html"
    path.write_text(search_page(auto_result()), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()
