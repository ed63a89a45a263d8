"""HTML reports."""

from importlib import resources

import pytest
from helpers.contrast import GRAPHIC, TEXT, contrast_ratio, css_colours

from nfgnn.explain.page_style import (
    Bar,
    Tile,
    html_commands,
    html_definitions,
    html_labelled_list,
    html_list,
    html_page,
    html_tiles,
)


def test_text_is_escaped() -> None:
    assert html_list(["a < b", "c"]) == "<ul><li>a &lt; b</li><li>c</li></ul>"
    assert html_definitions({"<k>": "&"}) == "<dl><dt>&lt;k&gt;</dt><dd>&amp;</dd></dl>"
    page = html_page("<b>title", "<h1>body</h1>")
    assert "<title>&lt;b&gt;title</title>" in page
    assert "<h1>body</h1>" in page
    assert "prefers-color-scheme: dark" in page
    assert html_labelled_list({"<k>": "2 %"}) == (
        '<ul class="labelled"><li><strong>&lt;k&gt;.</strong> 2&nbsp;%</li></ul>'
    )
    commands = html_commands([{"purpose": "Run <it>:", "command": "nfgnn auto 'a&b'"}])
    words = ("nfgnn", "auto", "&#x27;a&amp;b&#x27;")
    command = " ".join(f"<span>{word}</span>" for word in words)
    assert f"<p>Run &lt;it&gt;:</p><pre>{command}</pre>" in commands
    assert html_list(["ρ = 1 ± 2"]) == "<ul><li>ρ&nbsp;=&nbsp;1&nbsp;±&nbsp;2</li></ul>"
    assert html_list(["Use `a<b`."]) == "<ul><li>Use <code>a&lt;b</code>.</li></ul>"


def test_bars_of_a_tile_stay_inside_and_undefined_ones_are_left_out() -> None:
    bars = [Bar("<a>", 0.25, "both"), Bar("b", None, "links"), Bar("c", -0.5, "links")]
    html = html_tiles([Tile("Label", "25 %", "chance: 3 %", "Text.", bars)])
    assert "&lt;a&gt;" in html
    assert 'style="width:25.0%"' in html
    assert 'style="width:0.0%"' in html
    assert html.count('class="track') == 2
    assert html_tiles([]) == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    css = (resources.files("nfgnn.explain") / "report.css").read_text(encoding="utf-8")
    colours = css_colours(css, scheme)
    for background in ("paper", "card"):
        for text in ("ink", "soft"):
            assert contrast_ratio(colours[text], colours[background]) >= TEXT, (text, background)
        for mark in ("features", "links", "both", "all", "constant"):
            ratio = contrast_ratio(colours[mark], colours[background])
            assert ratio >= GRAPHIC, (mark, background)
    for mark in ("features", "links", "both", "constant"):
        assert contrast_ratio(colours[mark], colours["track"]) >= GRAPHIC, mark


def test_contrast_ratio_of_known_colours() -> None:
    assert contrast_ratio("#000000", "#ffffff") == pytest.approx(21)
    assert contrast_ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    css = ":root { --a: #111111; } @media (prefers-color-scheme: dark) { :root { --a: #222222; } }"
    assert css_colours(css, "light") == {"a": "#111111"}
    assert css_colours(css, "dark") == {"a": "#222222"}
