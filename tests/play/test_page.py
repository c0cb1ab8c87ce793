"""The page in a real browser: what one sees, by pointer and by keyboard alone, light and dark, wide and narrow.

Without a Chromium these tests are skipped; CEPHEID_CHROMIUM names one that is not on the PATH. CEPHEID_SCREENSHOTS names a folder for the pictures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import CHROMIUM, POOR_CONTRAST, Browser

from cepheid.play.links import MARK, write_link

pytest.importorskip("starlette", reason="starlette, of the extra `play`, is not installed")
pytest.importorskip("uvicorn", reason="uvicorn, of the extra `play`, is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is found: `make setup-browser` says how to get one"),
]

SERVE = "from cepheid.play.server import serve; serve(None, port=0, browser=False, say=lambda address: print(address, flush=True))"

HELD = {
    "query": "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN 10",
    "source": {"format": "line", "text": "A1(v=1) A2(v=5) C3(v=9) B4(v=3) B20(v=9)"},
}


@pytest.fixture(scope="module")
def address() -> str:
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    """The page with the events of HELD."""
    browser.told.clear()
    browser.open(with_fragment(address, HELD))
    yield browser
    assert browser.told == [], "the console of the page has errors"


def with_fragment(address: str, held: dict) -> str:
    return address + MARK + write_link(held).partition(MARK)[2]


def text(page: Browser, selector: str) -> list[str]:
    return page.do(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.textContent)")


def focused(page: Browser) -> str:
    return page.do("document.activeElement.id || document.activeElement.closest('[id]')?.id || ''")


def test_a_link_is_a_query_with_its_matches(page: Browser) -> None:
    assert page.do("document.querySelector('#query').value") == HELD["query"]
    assert text(page, "#matches-count") == ["1"]
    assert text(page, "#matches-table tbody .chip") == ["0", "3"]
    assert text(page, "#events-count") == ["5"]
    assert text(page, "#painted .t-keyword")[:2] == ["SELECT", "WHERE"]
    assert page.do("document.querySelector('#painted').textContent.trimEnd()") == HELD["query"]
    assert page.do("document.querySelectorAll('#timeline .match circle').length") == 2


def test_a_match_under_the_pointer_lights_its_events_and_an_event_its_matches(page: Browser) -> None:
    page.point("#matches-table tbody tr")
    assert page.do("[...document.querySelectorAll('#events-table tr.lit')].map((tr) => tr.dataset.row)") == ["0", "3"]
    assert text(page, "#events-table .badge") == ["a", "b"]
    page.point("#events-table tr[data-row='3']")
    assert page.do("[...document.querySelectorAll('#matches-table tr.lit')].map((tr) => tr.dataset.match)") == ["0"]
    page.point("#timeline .match")
    assert page.do("document.querySelectorAll('#events-table tr.lit').length") == 2
    page.point("h1")
    assert page.do("document.querySelectorAll('.lit').length") == 0


def test_an_error_is_underlined_where_it_is_while_one_types(page: Browser) -> None:
    page.do("document.querySelector('#query').select()")
    page.type("SELECT * -- \N{GRINNING FACE}\nWHRE A AS a")
    page.settle()
    assert text(page, "#painted .wrong") == ["WHRE"]
    assert any("did you mean WHERE?" in each for each in text(page, "#problems .problem"))
    assert page.do("document.querySelector('#query').getAttribute('aria-invalid')") == "true"
    page.do("document.querySelector('#problems button').click()")
    selected = "(() => { const q = document.querySelector('#query'); return q.value.slice(q.selectionStart, q.selectionEnd); })()"
    assert page.do(selected) == "WHRE"
    page.type("WHERE")
    page.settle()
    assert text(page, "#painted .wrong") == []
    assert text(page, "#matches-count") == ["2"]


def test_controls_rewrite_the_text(page: Browser) -> None:
    change = "((id, value) => { const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event('change')); })"
    for control, value in (("strategy", "MAX"), ("window", "30"), ("limit", "1")):
        page.do(f"{change}({control!r}, {value!r})")
        page.settle()
    assert (
        page.do("document.querySelector('#query').value")
        == HELD["query"].replace("SELECT *", "SELECT MAX *").replace("10", "30") + "\nLIMIT 1"
    )
    page.until("document.querySelector('#matches-count').textContent === '2'")


def test_the_whole_page_can_be_used_by_keyboard_alone(page: Browser) -> None:
    page.key("Tab")
    assert focused(page) == "skip"
    page.key("Enter")
    assert focused(page) == "query"
    reached = []
    for _ in range(25):
        page.key("Tab")
        reached.append(focused(page))
        if reached[-1] == "tab-matches":
            break
    assert [each for each in reached if each in {"strategy", "window", "limit"}] == ["strategy", "window", "limit"]
    assert {"as-table", "as-text", "open-file", "type-column", "time-column", "ended", "events-table", "tab-matches"} <= set(reached)
    page.key("ArrowRight")
    assert focused(page) == "tab-automaton"
    page.settle()
    while focused(page) != "step":
        page.key("Tab")
    for _ in range(4):
        page.key("ArrowRight")
    assert "After row 3" in text(page, "#step-text")[0]
    assert "a match ends here" in text(page, "#step-text")[0]
    assert page.do("document.querySelector('tr.current').dataset.row") == "3"
    assert page.do("document.querySelectorAll('#drawing .ends').length") == 1
    while focused(page) != "events-table":
        page.key("Tab", shift=True)
    page.key("ArrowDown")
    assert page.do("document.activeElement.dataset.row") == "1"


def test_a_state_of_a_group_tells_the_rounds_that_are_live(browser: Browser, address: str) -> None:
    held = {"query": "SELECT * WHERE (A ; B){5}", "source": {"format": "line", "text": "A1 B2 A3 B4 A5"}}
    browser.told.clear()
    browser.open(with_fragment(f"{address}&tab=automaton&step=3", held))
    browser.until("document.querySelector('#drawing .live')")
    assert "wait in states 1 (round 1 of 5), 2 (after round 1 of 5), 3 (round 2 of 5)" in text(browser, "#step-text")[0]
    assert text(browser, "#drawing .state.live > title")[0] == "states 1, 3, 5, 7, 9 in the rounds; live: round 1 of 5, round 2 of 5"
    assert text(browser, "#drawing .item.live > title") == ["between two rounds: states 2, 4, 6, 8; live: after round 1 of 5"]
    assert browser.told == []


def test_the_state_of_the_page_is_in_its_address(page: Browser, address: str) -> None:
    page.do("document.querySelector('#query').select()")
    page.type("SELECT * WHERE C AS c")
    page.settle()
    page.until("location.hash.length > 10")
    page.do("new Promise((done) => setTimeout(done, 900))")
    kept = page.do("location.href")
    page.open(kept)
    assert page.do("document.querySelector('#query').value") == "SELECT * WHERE C AS c"
    assert text(page, "#matches-count") == ["1"]


def test_text_of_events_is_read_as_it_is_written(page: Browser) -> None:
    page.do("document.querySelector('#as-text').click(); document.querySelector('#source').select()")
    page.do("document.querySelector('#source').focus()")
    page.type("A1(v=1) B2(v=2) B3(v=3)")
    page.settle()
    page.until("document.querySelector('#events-count').textContent === '3'")
    page.until("document.querySelector('#matches-count').textContent === '2'")
    page.type(" B4(")
    page.until("document.querySelector('#events-notes .error')")
    assert "not an event" in text(page, "#events-notes .problem.error")[0]


def test_explanation_and_programs_are_shown(page: Browser) -> None:
    page.do("document.querySelector('#tab-explain').click()")
    page.settle()
    assert "a match is " in text(page, "#pane-explain p")[0].lower()
    assert "engine" in text(page, "#pane-explain dt")
    page.do("document.querySelector('#tab-code').click()")
    page.settle()
    assert "query.run(events" in text(page, "#pane-code pre")[0]
    assert "SparkSession" in text(page, "#pane-code pre")[1]


def test_picked_events_are_told_why_they_are_no_match(page: Browser) -> None:
    page.do("[0, 4].forEach((row) => document.querySelector(`[data-row='${row}'] input`).click())")
    page.do("document.querySelector('#why').click()")
    page.until("document.querySelector('#why-answer pre')")
    assert "WITHIN 10" in text(page, "#why-answer pre")[0]
    assert text(page, "#why-answer h3") == ["Why is there no match with rows 0, 4?"]


def test_what_events_hold_is_text(page: Browser, address: str) -> None:
    odd = "<img src=x onerror=alert(1)>"
    page.open(
        with_fragment(address, {"query": "SELECT * WHERE A AS a", "source": {"format": "csv", "text": f"type,ts,{odd}\nA,1,{odd}\n"}})
    )
    assert odd in text(page, "#events-table td")
    assert page.do("document.querySelectorAll('main img').length") == 0


def test_a_wrong_token_is_said(browser: Browser, address: str) -> None:
    browser.call("Page.navigate", url=address[:-3] + "abc")
    browser.until("document.body && document.body.textContent.includes('cepheid play')")
    browser.told.clear()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 900, 420])
def test_nothing_is_cut_and_words_can_be_read(browser: Browser, address: str, tmp_path: Path, width: int, dark: bool) -> None:
    folder = Path(os.environ.get("CEPHEID_SCREENSHOTS") or tmp_path)
    for tab in ("matches", "automaton", "explain", "code"):
        browser.open(f"{address}&tab={tab}&step=4", width=width, height=860 if width > 1000 else 1400, dark=dark)
        data = browser.picture(folder / f"{tab}-{width}-{'dark' if dark else 'light'}.png")
        assert len(data) > 20_000
        assert browser.do("document.documentElement.scrollWidth <= innerWidth")
        outside = "[...document.querySelectorAll('button, select, input, textarea')].filter((each) => each.offsetParent && !each.closest('.scroll, .tabs')).filter((each) => { const b = each.getBoundingClientRect(); return b.left < 0 || b.right > (each.closest('.panel')?.getBoundingClientRect().right ?? innerWidth); }).map((each) => each.id)"
        assert browser.do(outside) == ["skip"] or browser.do(outside) == []
        assert browser.do(POOR_CONTRAST) == []
