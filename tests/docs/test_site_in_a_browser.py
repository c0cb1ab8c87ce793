"""Each page of the built site (`make docs`, which continuous integration runs first) as a browser shows it: light in a wide window, dark in a narrow one."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

SITE = Path(__file__).resolve().parents[2] / "out/site"
# The page for what is not found is for a server alone: its addresses begin at the root.
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if path.name != "404.html")

pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the site is not built: make docs"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the PATH: make setup-browser says how to get one"),
]

BROKEN_PICTURES = "[...document.images].filter((image) => !(image.complete && image.naturalWidth)).map((image) => image.src)"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SCHEME = "document.body.dataset.mdColorScheme"


@pytest.fixture(scope="module", params=[("light", 1280), ("dark", 420)], ids=["light, wide", "dark, narrow"])
def browser(request, tmp_path_factory):
    """A browser, which keeps the colours of the first page, and the name of the colours."""
    colours, width = request.param
    found = Browser(tmp_path_factory.mktemp("profile"))
    found.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    found.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    yield found, {"light": "default", "dark": "slate"}[colours]
    found.close()


@pytest.mark.parametrize("page", PAGES)
def test_page(browser, page: str, tmp_path: Path) -> None:
    shown, scheme = browser
    shown.told.clear()
    shown.call("Page.navigate", url=(SITE / page).as_uri())
    shown.until(f"document.readyState === 'complete' && location.pathname.endsWith({'/' + page!r})")
    assert shown.do("document.querySelector('h1').innerText.trim().length") > 0
    assert shown.do(SCHEME) == scheme
    # Pictures that are loaded when they come into view are loaded now.
    shown.do("document.images.length && [...document.images].forEach((image) => { image.loading = 'eager'; })")
    shown.until(f"{BROKEN_PICTURES}.length === 0")
    assert shown.do(OVERFLOW) <= 0, "a part of the page is cut off"
    assert len(shown.picture(tmp_path / "page.png")) > 10_000
    assert shown.told == []
