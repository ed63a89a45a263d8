"""A real browser for the tests of pages: Chromium without a network, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def launched() -> Iterator[Any]:
    """Yield the browser; without one, skip the tests, or fail in continuous integration."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        missing = "chromium is not installed: run `make browser`, which needs apt-get"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any,
    path: Path,
    width: int = 1440,
    height: int = 900,
    scheme: str = "light",
    touch: bool = False,
) -> Iterator[Any]:
    """Open a page from disk; messages on the console and network requests are errors."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        offline=True,
        has_touch=touch,
        is_mobile=touch,
        reduced_motion="reduce",
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.resolve().as_uri())
    page.wait_for_function("window.explorer && document.querySelector('#bins .bin')")
    yield page
    asked = [url for url in asked if not url.startswith(("file:", "data:"))]
    assert not complaints + asked, complaints + asked
    context.close()
