"""A real browser without a screen, and pages made of records in it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from ci_agent.json_types import JsonObject
from ci_agent.reports.html import render_html

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<!--<script>&lt;b&gt; `x` $data ${data} {{x}} ]]> ::error::x ##[error]x\r\n"
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202egnp.exe\u202c \u2028 \x00"
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(names)}")
    expect.set_options(timeout=60_000)  # a browser on a machine that does other things as well
    with sync_playwright() as playwright:
        # Chromium's own sandbox refuses to run as root; the page is ours.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments, timeout=100_000)
        yield browser
        browser.close()


@dataclass
class Viewer:
    browser: Browser
    folder: Path
    pages: list[Page] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What the console, failed scripts and the content policy said; and every request but that for the page itself."""

    def open(self, document: JsonObject, fragment: str = "", **options: Any) -> Page:
        file = self.folder / f"page-{len(self.pages)}.html"
        file.write_text(render_html(document), encoding="utf-8")
        page = self.browser.new_page(**({"viewport": {"width": 1280, "height": 800}} | options))
        page.set_default_timeout(60_000)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url, file))
        page.goto(f"{file.as_uri()}{fragment}")
        self.pages.append(page)
        return page

    def _note(self, url: str, file: Path) -> None:
        if url.split("#", maxsplit=1)[0] != file.as_uri():
            self.complaints.append(f"request for {url}")


@pytest.fixture
def viewer(browser: Browser, tmp_path: Path) -> Iterator[Viewer]:
    """Opens records; afterwards nothing may have been complained of."""
    made = Viewer(browser, tmp_path)
    yield made
    for page in made.pages:
        page.close()
    assert made.complaints == []


@pytest.fixture
def hostile() -> str:
    return HOSTILE
