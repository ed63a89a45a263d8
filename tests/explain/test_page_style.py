"""HTML reports."""

from nfgnn.explain.page_style import html_definitions, html_list, html_page


def test_text_is_escaped() -> None:
    assert html_list(["a < b", "c"]) == "<ul><li>a &lt; b</li><li>c</li></ul>"
    assert html_definitions({"<k>": "&"}) == "<dl><dt>&lt;k&gt;</dt><dd>&amp;</dd></dl>"
    page = html_page("<b>title", "<h1>body</h1>")
    assert "<title>&lt;b&gt;title</title>" in page
    assert "<h1>body</h1>" in page
    assert "prefers-color-scheme: dark" in page
