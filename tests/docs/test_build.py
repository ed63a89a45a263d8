"""The site builds without warnings, needs no network, and shows what the package has."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import typer
from helpers.browser import launched

from nfgnn.cli import app
from nfgnn.nn import MODELS
from nfgnn.training.config import TrainingConfig

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = "filters_of_nodes"


class _Sources(HTMLParser):
    """Collects what a page loads; links to follow do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.found += [values.get("src") or "", values.get("srcset") or ""]
        if tag == "link":
            self.found.append(values.get("href") or "")


def test_the_site(tmp_path: Path) -> None:
    """One test for all of it, because the build takes time."""
    site = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    # One example is enough here: tests/test_examples.py runs all of them.
    command += ["-t", "without_sources", "-D", f"gallery_examples={EXAMPLE}.py"]
    folders = ["-d", str(tmp_path / "doctrees"), str(DOCS), str(site)]
    result = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    _check_that_nothing_is_loaded_from_elsewhere(site)
    _check_generated_pages(site)
    _check_the_gallery(site)
    _check_in_a_browser(site)


def _check_that_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        parser = _Sources()
        parser.feed(page.read_text(encoding="utf-8"))
        assert not [url for url in parser.found if re.match(r"(https?:)?//", url)], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", text), style


def _check_generated_pages(site: Path) -> None:
    commands = (site / "cli.html").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        assert f'id="nfgnn-{name}"' in commands
        section = commands.partition(f'id="nfgnn-{name}"')[2].partition("</section>")[0]
        options = [option for parameter in command.params for option in parameter.opts]
        for option in options:
            if option.startswith("--") and option != "--help":
                assert f">{option}<" in section or f"{option} " in section, (name, option)
    models = (site / "models.html").read_text(encoding="utf-8")
    for name in MODELS:
        section = models.partition(f'id="{name.lower()}"')[2].partition("</section>")[0]
        assert 'class="math notranslate' in section, f"{name} has no formula"
    settings = (site / "settings.html").read_text(encoding="utf-8")
    for name in TrainingConfig.__dataclass_fields__:
        assert f">{name}<" in settings


def _check_the_gallery(site: Path) -> None:
    page = (site / "examples.html").read_text(encoding="utf-8")
    assert "test accuracy" in page
    assert 'src="_images/filters.png"' in page


def _check_in_a_browser(site: Path) -> None:
    """No page is wider than a phone; formulas and the search need no network."""
    with launched() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
        page = context.new_page()
        for name in ("index", "gates", "models", "results", "cli", "examples"):
            page.goto((site / f"{name}.html").as_uri())
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 390, (name, width)
        page.goto((site / "concepts.html").as_uri())
        page.wait_for_selector("mjx-container svg", state="attached")
        page.goto((site / "search.html").as_uri() + "?q=agreement")
        page.wait_for_selector("#search-results a:has-text('Gates')")
        context.close()
