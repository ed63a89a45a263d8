"""The explorer in a real browser: what is shown is what the run's arrays say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.browser import opened
from helpers.explorer_page import (
    click_node,
    colour_at,
    drawn_curves,
    facts,
    lonely,
    near,
    number,
    places,
    settle,
)

from nfgnn.explain.explorer import homophily_bins
from nfgnn.explain.explorer.rows import PARTS, ExplorerRows


def test_a_click_shows_the_node(browser: Any, explorer_file: Path, compared: ExplorerRows) -> None:
    with opened(browser, explorer_file) as page:
        node = lonely(page, 160)
        click_node(page, node)
        assert page.locator("#node-title").text_content() == f"person-{node:03d} (node {node})"
        shown = facts(page, "#node")
        names = [*compared.class_names, "unknown"]
        assert shown["class"] == names[compared.label[node]]
        for run, columns in enumerate(compared.runs):
            said = f"{names[columns.predicted[node]]} ({100 * columns.confidence[node]:.1f} %)"
            verdict = (
                ""
                if compared.label[node] < 0
                else ", right"
                if compared.correct(run)[node]
                else ", wrong"
            )
            assert shown[f"predicted by {columns.name}"] == said + verdict
        assert shown["part of the split"] == PARTS[compared.part[node]]
        assert shown["neighbours"] == str(compared.degree[node])
        assert number(shown["label entropy S"]) == pytest.approx(compared.entropy[node], abs=6e-4)
        cells = page.locator("#coefficients tbody tr")
        table = [[number(t) for t in row.locator("td").all_text_contents()] for row in cells.all()]
        psi = [columns.filters.psi for columns in compared.runs if columns.filters]
        np.testing.assert_allclose(
            table, np.stack([psi[0][node], psi[1][node], psi[0].mean(0)], 1), atol=2e-4
        )


def test_the_curves_are_the_responses(
    browser: Any, explorer_file: Path, compared: ExplorerRows
) -> None:
    node = int(np.flatnonzero(compared.label == 1)[0])
    with opened(browser, explorer_file) as page:
        page.fill("#query", f"person-{node:03d}")
        page.press("#query", "Enter")
        settle(page)
        curves = drawn_curves(page, "#node")
        ours, other = (run.filters for run in compared.runs)
        assert ours is not None
        assert other is not None
        expected = {
            "this node": ours.terms @ ours.psi[node],
            "PolyGNN: one filter for all": other.terms @ other.psi[0],
            "mean of music": ours.terms @ ours.class_means[1],
        }
        assert set(curves) == set(expected)
        for name, curve in expected.items():
            np.testing.assert_allclose(curves[name], curve, atol=0.006 * np.abs(curve).max())
        page.get_by_label("difference from “PolyGNN: one filter for all”").check()
        base = expected["PolyGNN: one filter for all"]
        largest = max(np.abs(curve - base).max() for curve in expected.values())
        for name, curve in drawn_curves(page, "#node").items():
            np.testing.assert_allclose(curve, expected[name] - base, atol=0.006 * largest)


def test_search(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file) as page:
        for query, title in (
            ("person-017", "person-017 (node 17)"),
            ("#42", "person-042 (node 42)"),
        ):
            page.fill("#query", query)
            page.press("#query", "Enter")
            assert page.locator("#node-title").text_content() == title
        page.fill("#query", "son-00")
        page.get_by_role("button", name="Go").click()
        assert page.locator("#found button").all_text_contents() == [
            f"person-00{i}" for i in range(8)
        ]
        page.get_by_role("button", name="person-003").click()
        assert page.locator("#node-title").text_content() == "person-003 (node 3)"
        page.fill("#query", "<i>nobody")
        page.press("#query", "Enter")
        assert page.locator("#found").text_content() == "There is no node “<i>nobody” on this page."


def test_a_brush_selects_what_lies_inside(
    browser: Any, explorer_file: Path, compared: ExplorerRows
) -> None:
    with opened(browser, explorer_file) as page:
        box, place = page.locator("#overlay").bounding_box(), places(page, range(160))
        low, high = (
            np.array([box["width"] * 0.3, box["height"] * 0.25]),
            np.array([box["width"] * 0.6, box["height"] * 0.7]),
        )
        page.mouse.move(box["x"] + low[0], box["y"] + low[1])
        page.mouse.down()
        page.mouse.move(box["x"] + high[0], box["y"] + high[1], steps=4)
        page.mouse.up()
        settle(page)
        inside = ((place >= low) & (place <= high)).all(1)
        assert 5 < inside.sum() < 155
        shown = facts(page, "#selection")
        assert shown["selected"] == f"{inside.sum()} nodes (rectangle on the map)"
        tested = inside & (compared.part == PARTS.index("test"))
        for run, columns in enumerate(compared.runs):
            score = (
                f"{100 * compared.correct(run)[tested].mean():.1f} % of {tested.sum()} test nodes"
            )
            assert shown[f"test accuracy of {columns.name}"] == score
        assert number(shown["mean homophily h"]) == pytest.approx(
            np.nanmean(compared.homophily[inside]), abs=6e-4
        )
        assert number(shown["mean entropy S"]) == pytest.approx(
            np.nanmean(compared.entropy[inside]), abs=6e-4
        )
        filters = compared.runs[0].filters
        assert filters is not None
        curve = filters.terms @ filters.psi[inside].mean(0)
        drawn = drawn_curves(page, "#selection-body")["mean of the selection, NFGNN"]
        np.testing.assert_allclose(drawn, curve, atol=0.006 * np.abs(curve).max())
        page.get_by_role("button", name="Next node").click()
        assert (
            page.locator("#node-title")
            .text_content()
            .endswith(f"(node {np.flatnonzero(inside)[0]})")
        )
        page.get_by_role("button", name="Clear").click()
        assert page.locator("#selection dt").count() == 0


def test_zoom_move_and_parts(browser: Any, explorer_file: Path, compared: ExplorerRows) -> None:
    with opened(browser, explorer_file) as page:
        box, before = page.locator("#overlay").bounding_box(), places(page, range(160))
        middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        page.get_by_role("button", name="Zoom in").click()
        page.keyboard.down("Shift")
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + 30, middle[1] - 20, steps=3)
        page.mouse.up()
        page.keyboard.up("Shift")
        centre = np.array([box["width"], box["height"]]) / 2
        expected = centre + 1.5 * (before - centre) + [30, -20]
        np.testing.assert_allclose(places(page, range(160)), expected, atol=0.5)
        page.get_by_role("button", name="Fit").click()
        page.select_option("#part", label="validation")
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=3)
        page.mouse.up()
        held_out = compared.part == PARTS.index("validation")
        assert facts(page, "#selection")["selected"].startswith(f"{held_out.sum()} nodes (")
        assert facts(page, "#selection")["test accuracy of NFGNN"] == "no test nodes"


def test_an_interval_selects_its_nodes(
    browser: Any, explorer_file: Path, compared: ExplorerRows
) -> None:
    table = homophily_bins(compared)
    with opened(browser, explorer_file) as page:
        for b, row in enumerate(table):
            scores = [
                f"{run.name} {'–' if a is None else f'{100 * a:.1f} %'}"
                for run, a in zip(compared.runs, row["accuracy"])
            ]
            said = page.locator("#bins .bin").nth(b).get_attribute("aria-label")
            assert f"{row['nodes']} node" in said
            assert f"{row['tested']} tested: {', '.join(scores)}." in said
        fullest = max(range(10), key=lambda b: table[b]["nodes"])
        page.locator("#bins .bin").nth(fullest).click()
        assert facts(page, "#selection")["selected"].startswith(
            f"{table[fullest]['nodes']} nodes (h from"
        )


def test_colours_follow_the_choice(
    browser: Any, explorer_file: Path, compared: ExplorerRows
) -> None:
    with opened(browser, explorer_file) as page:
        page.select_option("#layout", label="links")
        page.select_option("#colour", label="class")
        settle(page)
        node = lonely(page, 160)
        palette = ["#0072b2", "#e69f00", "#009e73", "#a9adb2"]
        assert near(colour_at(page, node), palette[compared.label[node]])
        page.select_option("#colour", label="part of the split")
        settle(page)
        assert near(colour_at(page, node), ["#a9adb2", *palette][compared.part[node]])
        page.select_option("#colour", label="comparison of both")
        first, second, known = compared.correct(0), compared.correct(1), compared.label >= 0
        counts = {
            "only NFGNN is right": first & ~second,
            "only PolyGNN is right": second & ~first,
            "both are right": first & second,
            "both are wrong": ~first & ~second & known,
            "class unknown": ~known,
        }
        legend = page.locator("#legend button").all_text_contents()
        assert legend == [
            f"{name} ({nodes.sum()})" for name, nodes in counts.items() if nodes.any()
        ]
        page.get_by_role("button", name="both are wrong").click()
        assert facts(page, "#selection")["selected"].startswith(
            f"{counts['both are wrong'].sum()} nodes"
        )
        page.emulate_media(color_scheme="dark")
        page.select_option("#colour", label="class")
        page.get_by_role("button", name="Clear").click()
        settle(page)
        assert near(colour_at(page, node), [*palette[:3], "#6b7178"][compared.label[node]])
