"""The explorer page in a real browser: it shows the run's own numbers, to every user."""

import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.browser import opened
from helpers.colours import contrast, least_distance
from helpers.explorer_page import (
    click_node,
    colour_at,
    drawn_curves,
    facts,
    lonely,
    near,
    number,
    pixel_at,
    places,
    settle,
    text_boxes,
)
from helpers.explorer_runs import (
    NASTY,
    awkward_graph,
    synthetic_table,
    train_run,
    twelve_class_table,
)

from nfgnn.explain import build_node_table, select_runs, write_explorer
from nfgnn.explain.explorer import NodeTable, homophily_bins
from nfgnn.explain.explorer.node_table import PARTS

TEMPLATE = resources.files("nfgnn.explain.explorer") / "template"
PALETTE = {
    mode: re.findall("#[0-9a-f]{6}", colours)
    for mode, colours in re.findall(
        r"^  (light|dark): (\[.*\]),$", (TEMPLATE / "colours.js").read_text("utf-8"), re.MULTILINE
    )
}


def test_click_shows_the_node(browser: Any, explorer_file: Path, compared: NodeTable) -> None:
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
                else ", correct"
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


def test_curves_are_the_responses(browser: Any, explorer_file: Path, compared: NodeTable) -> None:
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
        page.locator("#found").get_by_role("button", name="person-003").click()
        assert page.locator("#node-title").text_content() == "person-003 (node 3)"
        page.fill("#query", "<i>nobody")
        page.press("#query", "Enter")
        assert page.locator("#found").text_content() == "There is no node “<i>nobody” on this page."


def test_rectangle_selects_the_nodes_inside(
    browser: Any, explorer_file: Path, compared: NodeTable
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
        assert page.locator("#selection-title").text_content() == "All nodes"


def test_zoom_move_and_parts(browser: Any, explorer_file: Path, compared: NodeTable) -> None:
    with opened(browser, explorer_file) as page:
        box, before = page.locator("#overlay").bounding_box(), places(page, range(160))
        middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        page.get_by_role("button", name="Zoom in").click()
        zoomed = places(page, range(160))
        np.testing.assert_allclose(zoomed - zoomed[0], 1.5 * (before - before[0]), atol=0.5)
        page.keyboard.down("Shift")
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + 30, middle[1] - 20, steps=3)
        page.mouse.up()
        page.keyboard.up("Shift")
        np.testing.assert_allclose(places(page, range(160)), zoomed + np.array([30, -20]), atol=0.5)
        page.get_by_role("button", name="Fit").click()
        page.select_option("#part", label="validation")
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=3)
        page.mouse.up()
        held_out = compared.part == PARTS.index("validation")
        assert facts(page, "#selection")["selected"].startswith(f"{held_out.sum()} nodes (")
        assert facts(page, "#selection")["test accuracy of NFGNN"] == "no test nodes"


def test_interval_selects_its_nodes(browser: Any, explorer_file: Path, compared: NodeTable) -> None:
    bins = homophily_bins(compared)
    with opened(browser, explorer_file) as page:
        for b, row in enumerate(bins):
            scores = [
                f"{run.name} {'–' if a is None else f'{100 * a:.1f} %'}"
                for run, a in zip(compared.runs, row["accuracy"])
            ]
            said = page.locator("#bins .bin").nth(b).get_attribute("aria-label")
            assert f"{row['nodes']} node" in said
            assert f"{row['tested']} tested: {', '.join(scores)}." in said
        fullest = max(range(10), key=lambda b: bins[b]["nodes"])
        page.locator("#bins .bin").nth(fullest).click()
        assert facts(page, "#selection")["selected"].startswith(
            f"{bins[fullest]['nodes']} nodes (h from"
        )


def test_colours_follow_the_choice(browser: Any, explorer_file: Path, compared: NodeTable) -> None:
    with opened(browser, explorer_file) as page:
        page.select_option("#layout", label="force-directed")
        page.select_option("#colour", label="class")
        settle(page)
        node = lonely(page, 160)
        light = [*PALETTE["light"][:3], "#878d94"]
        dark = [*PALETTE["dark"][:3], "#7d848b"]
        assert near(colour_at(page, node), light[compared.label[node]])
        page.select_option("#colour", label="part of the split")
        settle(page)
        assert near(colour_at(page, node), ["#878d94", *light][compared.part[node]])
        page.select_option("#colour", label="disagreement")
        first, second, known = compared.correct(0), compared.correct(1), compared.label >= 0
        agree = compared.runs[0].predicted == compared.runs[1].predicted
        counts = {
            "only NFGNN is correct": first & ~second,
            "only PolyGNN is correct": second & ~first,
            "both are wrong and disagree": ~first & ~second & known & ~agree,
            "class unknown, and they disagree": ~known & ~agree,
            "both are correct": first & second,
            "both predict the same wrong class": ~first & known & agree,
            "class unknown, and they agree": ~known & agree,
        }
        legend = page.locator("#legend button").all_text_contents()
        assert legend == [
            f"{name} ({nodes.sum()})" for name, nodes in counts.items() if nodes.any()
        ]
        page.get_by_role("button", name="only NFGNN is correct").click()
        assert facts(page, "#selection")["selected"].startswith(
            f"{counts['only NFGNN is correct'].sum()} nodes"
        )
        page.emulate_media(color_scheme="dark")
        page.select_option("#colour", label="class")
        page.get_by_role("button", name="Clear").click()
        settle(page)
        assert near(colour_at(page, node), dark[compared.label[node]])


def test_keyboard_suffices(browser: Any, explorer_file: Path) -> None:
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
        assert page.locator("#selection-title").text_content() == "All nodes"
        page.locator(".ego-node").first.focus()
        assert page.locator(".ego-node").first.get_attribute("aria-label").startswith("person-")
        page.keyboard.press("Enter")
        assert page.locator("#node-title").text_content() != second


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_text_is_cut_off_or_overlaps(browser: Any, explorer_file: Path, width: int) -> None:
    with opened(browser, explorer_file, width=width) as page:
        page.select_option("#colour", label="class")
        page.locator("#bins .bin").nth(7).click()
        page.fill("#query", "person-021")
        page.press("#query", "Enter")
        for summary in page.locator("summary").all():
            summary.click()
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


def test_long_names_of_runs_wrap(browser: Any, compared: NodeTable, tmp_path: Path) -> None:
    names = [f"{run.name} (an-uncommonly-long-name-of-a-run-folder)" for run in compared.runs]
    runs = [replace(run, name=name) for run, name in zip(compared.runs, names)]
    write_explorer(replace(compared, runs=runs), tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            narrow = "(values) => Math.min(...values.map((v) => v.getBoundingClientRect().width))"
            assert page.locator("#node dd").evaluate_all(narrow) > 100


def test_names_are_text_and_never_markup(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file) as page:
        page.select_option("#colour", label="class")
        assert any(
            text.startswith(NASTY) for text in page.locator("#legend button").all_text_contents()
        )
        assert page.locator("b").count() == 0
        assert page.locator("script").count() == 2


def test_model_without_filter(browser: Any, tmp_path: Path) -> None:
    data = awkward_graph()
    table = build_node_table(select_runs(train_run(tmp_path / "run", "MLP", data)), data)
    write_explorer(table, tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        assert "MLP has no polynomial filter" in page.locator("#node").text_content()
        click_node(page, lonely(page, 160))
        assert "MLP has no polynomial filter" in page.locator("#node").text_content()
        assert page.locator("#node h3").all_text_contents() == ["Neighbours"]
        page.locator("#bins .bin").first.click()
        assert page.locator("#selection svg.chart").count() == 0


def test_twenty_thousand_nodes(browser: Any, tmp_path: Path) -> None:
    table = synthetic_table(20_000)
    write_explorer(table, tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        node = int(
            np.linalg.norm(table.layouts[0].place, axis=1).argmax()
        )  # at the rim, where it stands alone
        click_node(page, node)
        assert page.locator("#node-title").text_content() == f"Node {node}"
        assert number(facts(page, "#node")["local homophily h"]) == pytest.approx(
            table.homophily[node], abs=6e-4
        )
        cells = [
            number(t)
            for t in page.locator("#coefficients tbody td:nth-child(2)").all_text_contents()
        ]
        np.testing.assert_allclose(cells, table.runs[0].filters.psi[node], atol=2e-4)
        assert not page.locator("#notice").is_visible()


def test_large_graph_is_sampled(browser: Any, tmp_path: Path) -> None:
    table = synthetic_table(3000)
    sample = write_explorer(table, tmp_path / "page.html", max_nodes=400)
    with opened(browser, tmp_path / "page.html") as page:
        assert "a sample of 400 of 3,000 nodes" in page.locator("#notice").text_content()
        assert f"{(table.homophily == 0).sum():,} nodes" in page.locator(
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
        around = sorted(set(table.edge_index[1][table.edge_index[0] == node].tolist()))
        names = [
            label.split(";")[0]
            for label in page.locator(".ego-node").evaluate_all(
                "n => n.map(g => g.getAttribute('aria-label'))"
            )
        ]
        assert sorted(names) == sorted(
            f"Node {j}: {table.class_names[table.label[j]]}" for j in around
        )


def test_starts_with_what_is_worth_seeing(browser: Any, tmp_path: Path) -> None:
    table = twelve_class_table()
    write_explorer(table, tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        settle(page)
        assert (
            page.locator("#insight")
            .text_content()
            .startswith("Nearly all nodes share one filter: 99.5\u00a0% of the responses")
        )
        assert page.locator("#layout option:checked").text_content() == "force-directed"
        # The most surprising node is shown, and the others can be clicked.
        assert page.locator("#node-kind").is_visible()
        assert page.locator("#node-title").text_content() == "Node 17"
        mistakes = page.locator(".surprise").nth(1).locator("button")
        wrong = np.flatnonzero(~table.correct(0) & (table.label >= 0))
        most = wrong[table.runs[0].confidence[wrong].argmax()]
        assert mistakes.first.text_content() == str(most)
        mistakes.first.click()
        assert page.locator("#node-title").text_content() == f"Node {most}"
        assert mistakes.first.get_attribute("aria-pressed") == "true"
        assert not page.locator("#node-kind").is_visible()
        # The node far away is at the right border, and the others fill the map.
        assert "1 node outside of the frame" in page.locator("#placed").text_content()
        width = page.locator("#overlay").bounding_box()["width"]
        place = places(page, range(200))
        assert place[199][0] == pytest.approx(width - 9, abs=1)
        assert np.ptp(place[:199, 0]) > 0.8 * width
        # The means of the classes coincide, so their differences are drawn.
        filters = table.runs[0].filters
        assert filters is not None
        assert "so the chart shows the differences" in (
            page.locator("#selection-body .coincide").text_content()
        )
        curves = drawn_curves(page, "#selection-body")
        for c in range(12):
            expected = filters.terms @ (filters.class_means[c] - filters.mean)
            np.testing.assert_allclose(curves[f"group {c}"], expected, atol=5e-4)
        page.locator("#selection-body .toggle input").uncheck()
        curves = drawn_curves(page, "#selection-body")
        expected = filters.terms @ filters.class_means[3]
        np.testing.assert_allclose(curves["group 3"], expected, atol=0.05)


def test_pointing_to_a_class_greys_the_others(browser: Any, tmp_path: Path) -> None:
    write_explorer(twelve_class_table(), tmp_path / "page.html")
    with opened(browser, tmp_path / "page.html") as page:
        entries = page.locator("#legend button")
        swatches = "(buttons) => buttons.map((b) => b.querySelector('canvas').toDataURL())"
        assert len(set(entries.evaluate_all(swatches))) == 13  # twelve classes, and unknown
        for pointed in (entries.nth(1), page.locator("#classes tbody tr").nth(1)):
            pointed.hover()
            settle(page)
            assert near(colour_at(page, 1 + 12 * 4), PALETTE["light"][1])
            for other in (2 + 12 * 4, 9 + 12 * 4):  # node 57 has the colour of class 1
                red, green, blue, opacity = pixel_at(page, other)
                assert max(red, green, blue) - min(red, green, blue) < 15
                assert 0 < opacity < 200
            faded = page.locator("#selection-body .keys .faded").all_text_contents()
            assert faded == [f"group {c}" for c in range(12) if c != 1]
        page.locator("#title").hover()
        settle(page)
        assert near(colour_at(page, 2 + 12 * 4), PALETTE["light"][2])
        assert page.locator(".faded").count() == 0


def test_disagreements_can_be_selected(
    browser: Any, explorer_file: Path, compared: NodeTable
) -> None:
    first, second = (run.predicted for run in compared.runs)
    differ = first != second
    with opened(browser, explorer_file) as page:
        assert page.locator("#colour option:checked").text_content() == "disagreement"
        share = facts(page, "#tiles")["runs disagree on"].removesuffix(" %")
        assert float(share) == pytest.approx(100 * differ.mean(), abs=0.051)
        page.get_by_role("button", name="on which the runs disagree").click()
        assert facts(page, "#selection")["selected"] == (
            f"{differ.sum()} nodes (the runs disagree)"
        )
        # All controls are on one row.
        boxes = [page.locator(f"#{name}").bounding_box() for name in ("layout", "part", "query")]
        assert max(box["y"] for box in boxes) - min(box["y"] for box in boxes) < 4


def test_phone(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file, width=390, height=844, touch=True) as page:
        assert page.locator("#hint").inner_text().startswith("Tap a node")
        page.locator("#overlay").scroll_into_view_if_needed()
        node = lonely(page, 160)
        box, (x, y) = page.locator("#overlay").bounding_box(), places(page, [node])[0]
        page.touchscreen.tap(box["x"] + x, box["y"] + y)
        settle(page)
        assert page.locator("#node-title").text_content().endswith(f"(node {node})")
        assert 0 <= page.locator("#node-title").bounding_box()["y"] < 120
        page.get_by_role("button", name="Back").click()
        settle(page)
        np.testing.assert_allclose(page.locator("#overlay").bounding_box()["y"], box["y"], atol=1)
        for summary in page.locator("summary").all():
            summary.tap()
        small = page.evaluate("""() => [...document.querySelectorAll(
          "button, select, input:not([type=checkbox]), summary, .toggle")].filter((target) => {
            const { width, height } = target.getBoundingClientRect();
            return height && Math.min(width, height) < 44;
          }).map((target) => target.outerHTML)""")
        assert small == []
        page.select_option("#interval", index=1)
        assert facts(page, "#selection")["selected"].endswith("(h from 0 to 0.1)")
        # Two fingers that move apart zoom.
        page.locator("#overlay").scroll_into_view_if_needed()
        box, before = page.locator("#overlay").bounding_box(), places(page, [node])[0]
        middle = np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
        touch = page.context.new_cdp_session(page)
        for kind, spread in (("touchStart", 30), ("touchMove", 45), ("touchMove", 60)):
            fingers = [{"x": middle[0] + side * spread, "y": middle[1]} for side in (-1, 1)]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        centre = np.array([box["width"], box["height"]]) / 2
        np.testing.assert_allclose(places(page, [node])[0], centre + 2 * (before - centre), atol=1)


def test_contrast_meets_wcag_aa() -> None:
    css = (TEMPLATE / "style.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    for mode, block in zip(("light", "dark"), blocks, strict=True):
        colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        for background in ("card", "page", "faint"):
            for text in ("ink", "soft"):
                assert contrast(colours[text], colours[background]) >= 4.5, (text, mode)
        for mark in ("first", "second", "mean", "focus", "edge"):
            assert contrast(colours[mark], colours["card"]) >= 3, (mark, mode)
        assert contrast(colours["first"], colours["card"]) >= 4.5
        for colour in PALETTE[mode]:
            assert contrast(colour, colours["card"]) >= 3, (colour, mode)
        assert least_distance(PALETTE[mode], "normal") > 25
        for vision in ("protanopia", "deuteranopia"):
            assert least_distance(PALETTE[mode], vision) > 15, (vision, mode)


def test_scale_of_quantities_stands_out(browser: Any, explorer_file: Path) -> None:
    with opened(browser, explorer_file) as page:
        page.select_option("#colour", label="local homophily h")
        for scheme, card in (("light", "#ffffff"), ("dark", "#1c1f24")):
            page.emulate_media(color_scheme=scheme)
            settle(page)
            pixels = page.evaluate("""() => {
              const bar = document.querySelector("#legend .scale canvas");
              return [...bar.getContext("2d").getImageData(0, 0, bar.width, 1).data];
            }""")
            for red, green, blue, _ in np.reshape(pixels, (-1, 4)):
                assert contrast(f"#{red:02x}{green:02x}{blue:02x}", card) >= 3
