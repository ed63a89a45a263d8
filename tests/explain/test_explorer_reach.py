"""The explorer for everybody: keyboard, phones, awkward names, models without filters, large graphs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.browser import opened
from helpers.explorer_page import click_node, facts, lonely, number, places, settle, text_boxes
from helpers.explorer_runs import NASTY, awkward_graph, synthetic_rows, train_run

from nfgnn.explain.explorer import explorer_rows, find_subject, write_page


def test_the_keyboard_is_enough(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file) as page:
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "overlay":
                break
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        first = page.locator("#node-title").text_content()
        assert first.startswith("person-")
        start = places(page, [int(re.findall(r"node (\d+)", first)[0])])[0]
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        second = page.locator("#node-title").text_content()
        assert places(page, [int(re.findall(r"node (\d+)", second)[0])])[0][0] > start[0]
        page.locator("#bins .bin").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        settle(page)
        assert facts(page, "#selection")["selected"].endswith("(h from 0.1 to 0.2)")
        settle(page)
        assert "h from 0.1" in page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.locator("#overlay").focus()
        page.keyboard.press("Escape")
        assert page.locator("#selection dt").count() == 0
        page.locator(".ego-node").first.focus()
        assert page.locator(".ego-node").first.get_attribute("aria-label").startswith("person-")
        page.keyboard.press("Enter")
        assert page.locator("#node-title").text_content() != second


@pytest.mark.parametrize("width", [1440, 768, 390])
def test_no_text_is_cut_off_or_written_over(browser: Any, explorer_file: Path, width: int) -> None:
    with opened(browser, explorer_file, width=width) as page:
        page.select_option("#colour", label="class")
        page.locator("#bins .bin").nth(7).click()
        page.fill("#query", "person-021")
        page.press("#query", "Enter")
        page.locator("summary").click()
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = text_boxes(page)
        assert len(boxes) > 60
        for left, _, right, _, text in boxes:
            assert left >= 0, text
            assert right <= width, text
        edges = np.array([box[:4] for box in boxes])
        wide = np.minimum(edges[:, None, 2], edges[:, 2]) - np.maximum(
            edges[:, None, 0], edges[:, 0]
        )
        tall = np.minimum(edges[:, None, 3], edges[:, 3]) - np.maximum(
            edges[:, None, 1], edges[:, 1]
        )
        over = np.argwhere(np.triu((wide > 1) & (tall > 3), 1))
        assert [(boxes[a][4], boxes[b][4]) for a, b in over] == []


def test_names_are_text_and_never_markup(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file) as page:
        page.select_option("#colour", label="class")
        assert any(
            text.startswith(NASTY) for text in page.locator("#legend button").all_text_contents()
        )
        assert page.locator("b").count() == 0
        assert page.locator("script").count() == 2


def test_a_model_without_a_filter_says_so(browser: Any, tmp_path: Path) -> None:
    data = awkward_graph()
    rows = explorer_rows(find_subject(train_run(tmp_path / "run", "MLP", data)), data)
    write_page(rows, tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        assert "MLP has no polynomial filter" in page.locator("#node").text_content()
        click_node(page, lonely(page, 160))
        assert "MLP has no polynomial filter" in page.locator("#node").text_content()
        assert page.locator("#node h3").all_text_contents() == ["Neighbours"]
        page.locator("#bins .bin").first.click()
        assert page.locator("#selection svg.chart").count() == 0


def test_twenty_thousand_nodes(browser: Any, tmp_path: Path) -> None:
    rows = synthetic_rows(20_000)
    write_page(rows, tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        node = int(
            np.linalg.norm(rows.layouts[0].place, axis=1).argmax()
        )  # at the rim, where it stands alone
        click_node(page, node)
        assert page.locator("#node-title").text_content() == f"Node {node}"
        assert number(facts(page, "#node")["local homophily h"]) == pytest.approx(
            rows.homophily[node], abs=6e-4
        )
        cells = [
            number(t)
            for t in page.locator("#coefficients tbody td:nth-child(2)").all_text_contents()
        ]
        np.testing.assert_allclose(cells, rows.runs[0].filters.psi[node], atol=2e-4)
        assert not page.locator("#notice").is_visible()


def test_a_large_graph_is_thinned_and_says_so(browser: Any, tmp_path: Path) -> None:
    rows = synthetic_rows(3000)
    sample = write_page(rows, tmp_path / "page.html", most_nodes=400)
    with opened(browser, tmp_path / "page.html") as page:
        assert "a random sample of 400 of 3,000 nodes" in page.locator("#notice").text_content()
        assert f"{(rows.homophily == 0).sum():,} nodes" in page.locator(
            "#bins .bin"
        ).first.get_attribute("aria-label")
        missing = next(i for i in range(3000) if i not in set(sample.nodes[:400].tolist()))
        page.fill("#query", str(missing))
        page.press("#query", "Enter")
        assert "There is no node" in page.locator("#found").text_content()
        node = int(sample.nodes[0])
        page.fill("#query", str(node))
        page.press("#query", "Enter")
        settle(page)
        around = sorted(set(rows.edge_index[1][rows.edge_index[0] == node].tolist()))
        names = [
            label.split(";")[0]
            for label in page.locator(".ego-node").evaluate_all(
                "n => n.map(g => g.getAttribute('aria-label'))"
            )
        ]
        assert sorted(names) == sorted(
            f"Node {j}: {rows.class_names[rows.label[j]]}" for j in around
        )
