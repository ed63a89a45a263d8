"""Clicks on the explorer page, and readers of what it draws and writes."""

import re
from typing import Any

import numpy as np


def settle(page: Any) -> None:
    """Wait until everything has been drawn."""
    page.evaluate("""() => new Promise((go) => {
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go, 30)));
    })""")


def places(page: Any, nodes: Any) -> np.ndarray:
    """Return the positions of nodes in pixels of the map."""
    return np.array(
        page.evaluate("(nodes) => nodes.map(window.explorer.place)", [int(i) for i in nodes])
    )


def lonely(page: Any, n: int) -> int:
    """Return the node farthest from its nearest neighbour on the map, to click unambiguously."""
    place = places(page, range(n))
    distance = np.linalg.norm(place[:, None] - place, axis=2) + np.where(np.eye(n), np.inf, 0)
    return int(distance.min(1).argmax())


def click_node(page: Any, node: int) -> None:
    box, (x, y) = page.locator("#overlay").bounding_box(), places(page, [node])[0]
    page.mouse.click(box["x"] + x, box["y"] + y)
    settle(page)


def facts(page: Any, where: str) -> dict[str, str]:
    terms, values = (page.locator(f"{where} {tag}").all_text_contents() for tag in ("dt", "dd"))
    return dict(zip(terms, values, strict=True))


def drawn_curves(page: Any, where: str) -> dict[str, np.ndarray]:
    """Return the responses of a chart by name, read back from pixels with its own axis."""
    chart = page.locator(f"{where} svg.chart").first
    labels = chart.locator("text[text-anchor=end]")
    ticks = [
        (float(t.text_content().replace("−", "-")), float(t.get_attribute("y")) - 4)
        for t in labels.all()
    ]
    slope, start = np.polyfit([y for _, y in ticks], [value for value, _ in ticks], 1)
    paths = [
        np.array(re.findall(r"[ML][\d.-]+ ([\d.-]+)", p.get_attribute("d")), float)
        for p in chart.locator("path").all()
    ]
    names = page.locator(f"{where} .keys").first.locator(".key").all_text_contents()
    return {name: slope * path + start for name, path in zip(names, reversed(paths), strict=True)}


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def pixel_at(page: Any, node: int) -> list[int]:
    """Return red, green, blue and opacity of the map at a node."""
    x, y = places(page, [node])[0]
    script = """([x, y]) => {
      const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(document.getElementById("points"), -x, -y);
      return [...copy.getImageData(0, 0, 1, 1).data];
    }"""
    return page.evaluate(script, [round(x), round(y)])


def colour_at(page: Any, node: int) -> str:
    red, green, blue, alpha = pixel_at(page, node)
    assert alpha > 200
    return f"#{red:02x}{green:02x}{blue:02x}"


def near(colour: str, wanted: str) -> bool:
    parts = [[int(text[k : k + 2], 16) for k in (1, 3, 5)] for text in (colour, wanted)]
    return max(abs(a - b) for a, b in zip(*parts)) <= 8


def text_boxes(page: Any) -> list[Any]:
    """Return left, top, right, bottom and text of every visible line of text."""
    return page.evaluate("""() => {
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, parent = text.parentElement;
    const hidden = "script, style, noscript, option, title, [hidden], details:not([open]), .skip";
    if (parent.closest(hidden) || !text.textContent.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) {
      boxes.push([box.left, box.top, box.right, box.bottom, text.textContent]);
    }
  }
  return boxes;
}""")
