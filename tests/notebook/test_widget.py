"""The widget of `Query.explore`: what Python sees of it, and what one sees in a real browser, with a model as anywidget gives one.

Without a Chromium the tests of the browser are skipped; CEPHEID_SCREENSHOTS names a folder for the pictures.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from browser import CHROMIUM, POOR_CONTRAST, Browser

import cepheid
from cepheid.errors import BindError, InputError, LimitError, SchemaError, SetupError
from cepheid.notebook import exploring
from cepheid.play import answers, limits, steps, tables
from cepheid.testing import events
from cepheid.testing.generators import random_query

anywidget = pytest.importorskip("anywidget", reason="anywidget, of the extra `notebook`, is not installed")

RISE = cepheid.query("SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v WITHIN 10")
FLEET = cepheid.query("SELECT MAX * WHERE FAIL+ AS fail ; OK AS ok FILTER fail[user != 'root'] PARTITION BY user WITHIN 5 minutes")
START = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)
LOGINS = [
    {
        "type": "OK" if number % 5 == 4 else "FAIL",
        "ts": START + dt.timedelta(seconds=40 * number),
        "user": ("ann", "bob", "root")[number % 3],
        "ip": f"10.0.0.{number}",
    }
    for number in range(40)
]
LINE = "A1(v=1) A2(v=5) C3(v=9) B4(v=3) B20(v=9) A21(v=1) B22(v=2)"


def shown(query: cepheid.Query, given: object, **how: object) -> dict:
    """As the notebook gets it: through JSON."""
    return json.loads(json.dumps(query.explore(given, **how)._shown, allow_nan=False))


def rows_of(widget_shown: dict) -> list[list[int | None]]:
    return [[mark["row"] for mark in match["marks"]] for match in widget_shown["found"]["matches"]]


# ---------------------------------------------------------------------------------------------------------------------- Python


def test_it_is_a_widget_with_the_matches_and_the_steps() -> None:
    widget = RISE.explore(events(LINE))
    assert isinstance(widget, anywidget.AnyWidget)
    found = shown(RISE, events(LINE))
    assert rows_of(found) == [[0, 3], [5, 6]]
    assert [step["row"] for step in found["machine"]["steps"]] == list(range(7))
    assert [step["ends"] for step in found["machine"]["steps"]] == [False, False, False, True, False, False, True]
    assert found["machine"]["note"] == ""
    assert found["notes"] == []


def test_where_one_is_can_be_read_observed_and_set() -> None:
    widget = RISE.explore(events(LINE))
    assert (widget.position, widget.match, widget.row, widget.states) == (0, None, None, ())
    told = []
    widget.observe(lambda change: told.append((change["name"], change["new"])), ["position", "match"])
    widget.position, widget.match = 4, 1
    assert told == [("position", 4), ("match", 1)]
    assert widget.row == 3
    assert widget.states == tuple(shown(RISE, events(LINE))["machine"]["steps"][3]["states"])
    widget.match = None
    assert {"position", "match", "_shown", "_esm", "_css"} <= set(widget.keys)


@pytest.mark.parametrize(("name", "value"), [("position", -1), ("position", 8), ("match", 2), ("match", -1)])
def test_what_there_is_not_cannot_be_set(name: str, value: int) -> None:
    widget = RISE.explore(events(LINE))
    with pytest.raises(InputError, match=f"{name}={value}"):
        setattr(widget, name, value)
    assert (widget.position, widget.match) == (0, None)


def test_events_come_as_for_run(tmp_path: Path) -> None:
    rows = events(LINE)
    table = pa.Table.from_pylist(rows)
    whole = shown(RISE, rows)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    for given in (table, table.to_reader(max_chunksize=2), columns):
        assert shown(RISE, given) == whole
    renamed = table.rename_columns(["kind", "at", "v"])
    assert rows_of(shown(RISE, renamed, type="kind", time="at")) == rows_of(whole)


def test_sorted_and_cut_events_keep_the_rows_of_the_input() -> None:
    rows = events(LINE)[::-1]
    with pytest.raises(InputError, match="not in the order of their times"):
        RISE.explore(rows)
    found = shown(RISE, rows, sort=True)
    assert rows_of(found) == [[6, 3], [1, 0]]
    assert [step["row"] for step in found["machine"]["steps"]] == [6, 5, 4, 3, 2, 1, 0]
    assert any("they are sorted" in note for note in found["notes"])
    cut = shown(RISE, rows, sort=True, until=4)
    assert rows_of(cut) == [[6, 3]]
    assert [step["row"] for step in cut["machine"]["steps"]] == [6, 5, 4, 3]
    assert cut["table"]["count"] == 7


def test_until_the_end_decides_absences() -> None:
    query = cepheid.query("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 10")
    assert any("undecided matches: 1" in note for note in shown(query, events("A1"))["notes"])
    assert rows_of(shown(query, events("A1"), until="end")) == [[0]]


def test_order_and_null_keys_are_those_of_run() -> None:
    rows = [{"type": "B", "ts": 1, "n": 2, "k": None}, {"type": "A", "ts": 1, "n": 1, "k": None}]
    query = cepheid.query("SELECT * WHERE A ; B PARTITION BY k")
    dropped = shown(query, rows, order=["n"])
    assert rows_of(dropped) == []
    assert any("events without a key" in note for note in dropped["notes"])
    assert [step["states"] for step in dropped["machine"]["steps"]] == [[], []]
    found = shown(query, rows, order="n", null_keys="group")
    assert rows_of(found) == [[1, 0]]
    assert [(step["row"], step["ends"]) for step in found["machine"]["steps"]] == [(1, False), (0, True)]


def test_streams_are_counted_one_after_the_other() -> None:
    query = cepheid.query("SELECT * FROM up, down WHERE up AS a ; down AS b")
    streams = {"down": [{"ts": 2}, {"ts": 4}], "up": pa.Table.from_pylist([{"ts": 1}, {"ts": 3}]).to_reader()}
    found = shown(query, streams)
    assert rows_of(found) == [[0, 2], [1, 3], [0, 3]]
    assert [step["row"] for step in found["machine"]["steps"]] == [0, 2, 1, 3]
    assert any("one stream after the other" in note for note in found["notes"])
    assert (
        found["table"]["rows"][2][found["table"]["columns"].index(next(c for c in found["table"]["columns"] if c["name"] == "ts"))] == "2"
    )


def test_events_that_definitions_make_have_steps_without_a_row() -> None:
    query = cepheid.query("EVENT Up(w) AS (SELECT a.v AS w WHERE A AS a ; B AS b) SELECT * WHERE Up AS u ; C AS c")
    widget = query.explore(events("A1(v=1) B2(v=2) C3(v=3)"))
    made = [step["made"] for step in widget._shown["machine"]["steps"]]
    assert "Up" in made
    widget.position = made.index("Up") + 1
    assert widget.row is None


def test_limits_are_named_and_nothing_is_cut_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = events("A1 A2 A3 B4")
    query = cepheid.query("SELECT * WHERE A+ ; B")
    monkeypatch.setattr(answers, "MAX_SHOWN_MATCHES", 2)
    monkeypatch.setattr(tables, "MAX_SHOWN_EVENTS", 3)
    monkeypatch.setattr(steps, "MAX_STEPS", 3)
    found = shown(query, rows)
    assert (found["found"]["count"], found["found"]["listed"], len(found["table"]["rows"])) == ("7", 2, 3)
    for said in ("the first 2 of 7 matches are listed", "the first 3 of 4 events are shown; all are evaluated"):
        assert any(said in note for note in found["notes"])
    assert "MAX_STEPS" in found["machine"]["refused"]
    with pytest.raises(InputError, match="position=1"):
        query.explore(rows).position = 1
    monkeypatch.setattr(limits, "MAX_EVENTS", 3)
    read = []

    def batches() -> object:
        for row in rows * 5:
            read.append(row)
            yield pa.RecordBatch.from_pylist([row])

    schema = pa.Table.from_pylist(rows).schema
    for given in (rows, pa.RecordBatchReader.from_batches(schema, batches()), {"x": rows[:2], "y": rows[2:]}):
        with pytest.raises(LimitError, match="MAX_EVENTS"):
            query.explore(given)
    assert len(read) < 6, "a reader is read no further than the limit"


def test_matches_that_no_list_holds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_LISTED_BYTES", 5000)
    found = shown(cepheid.query("SELECT * WHERE A+ ; B"), events(" ".join(f"A{time}" for time in range(40)) + " B40"))
    assert found["found"]["count"] == f"{2**40 - 1:,}"
    assert any("MAX_LISTED_BYTES" in note for note in found["notes"])


def test_errors_are_those_of_run() -> None:
    with pytest.raises(BindError):
        cepheid.query("SELECT * WHERE A AS a FILTER a.nothing > 1").explore(events("A1"))
    with pytest.raises(SchemaError):
        RISE.explore([])
    with pytest.raises(InputError):
        RISE.explore(3)
    with pytest.raises(InputError, match="null_keys"):
        RISE.explore(events("A1(v=1)"), null_keys="all")


def test_an_automaton_that_cannot_be_drawn_is_said() -> None:
    found = shown(cepheid.query("SELECT * WHERE A{120} AS a WITHIN 500"), events("A1 A2"))
    assert found["machine"]["svg"] == "" or found["machine"]["steps"]
    big = cepheid.query("SELECT * WHERE " + " ; ".join(f"T{number}" for number in range(120)))
    assert "MAX_DRAWN" in shown(big, events("A1 A2"))["machine"]["refused"]


@pytest.mark.parametrize(
    "rows",
    [
        [{"type": "A", "v": float("nan")}, {"type": "B", "v": float("inf")}],
        [{"type": "A", "ts": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "s": "</script>\ud83d\ude00 \x00"}],
        [{"type": "A", "ts": 2**62, "deep": {"a": [1, None]}, "b": b"\xff"}],
        pa.table({"type": pa.array([], pa.string()), "ts": pa.array([], pa.timestamp("ns"))}),
    ],
    ids=["no numbers", "texts", "large and nested", "none"],
)
def test_odd_values_are_json(rows: object) -> None:
    if isinstance(rows, list):
        rows = [
            {
                key: value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value
                for key, value in row.items()
            }
            for row in rows
        ]
    found = shown(cepheid.query("SELECT * WHERE A AS a"), rows)
    assert found["table"]["count"] == len(rows)


def test_random_queries_can_be_explored() -> None:
    rng = random.Random(5)
    explored = 0
    for _ in range(30):
        query, rows = cepheid.query(random_query(rng)), events("A1(v=1) B2(v=2) A3(v=3) C4(v=0) B5(v=1)")
        try:
            found = shown(query, rows)
        except cepheid.CepheidError:
            continue
        explored += 1
        assert found["found"]["count"] == f"{len(query.run(rows)):,}"
    assert explored > 5


def test_without_anywidget_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploring, "find_spec", {}.get)
    with pytest.raises(SetupError, match="anywidget") as error:
        RISE.explore(events(LINE))
    assert 'pip install "cepheid[notebook]"' in error.value.help


def test_it_loads_nothing_and_makes_no_elements_of_text() -> None:
    widget = RISE.explore(events(LINE))
    for given in (widget._esm, widget._css):
        assert (
            re.findall(r"https?://(?!www\.w3\.org/)|@import|url\(|\bfetch\(|innerHTML|outerHTML|insertAdjacentHTML|eval\(", str(given))
            == []
        )
    assert re.findall(r"^import ", str(widget._esm), re.MULTILINE) == []


def test_a_query_that_is_not_explored_loads_no_widget() -> None:
    code = "import sys, cepheid; cepheid.query('SELECT * WHERE A').run([{'type': 'A'}]); print({'anywidget', 'traitlets', 'cepheid.play'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"


# ------------------------------------------------------------------------------------------------------------------ the browser

in_a_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is found: `make setup-browser` says how to get one"),
]

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Notebook</title></head><body style="margin:8px">
<script type="application/json" id="state">%s</script>
<script>
// As anywidget does: the module comes from a text, its style sheet goes where the element is, the model has traits and listeners.
const { esm, css, state, shadow, late } = JSON.parse(document.getElementById("state").textContent);
const listeners = {};
window.saved = 0;
window.model = {
  get: (name) => state[name],
  set: (name, value) => { if (state[name] !== value) { state[name] = value; (listeners[`change:${name}`] || []).forEach((each) => each()); } },
  save_changes: () => { window.saved += 1; },
  on: (name, each) => (listeners[name] = [...(listeners[name] || []), each]),
  off: (name, each) => (listeners[name] = (listeners[name] || []).filter((other) => other !== each)),
};
window.listening = () => Object.values(listeners).flat().length;
const host = document.body.appendChild(document.createElement("div"));
window.root = shadow ? host.attachShadow({ mode: "open" }) : host;
const style = document.createElement("style");
style.textContent = css;
root.append(style);
const el = document.createElement("div");
if (!late) root.append(el);
const all = (selector) => [...root.querySelectorAll(selector)];
window.keysOfNotebook = [];
document.body.addEventListener("keydown", (event) => keysOfNotebook.push(event.key));
import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" }))).then(async (module) => {
  window.end = await module.default.render({ model, el });
  if (late) root.append(el);
  document.body.dataset.working = "0";
});
</script></body></html>"""

KEYS = ("position", "match", "_shown")


def opened(browser: Browser, folder: Path, widget: object, *, shadow: bool = False, late: bool = False, **window: object) -> Browser:
    state = {
        "esm": widget._esm,
        "css": widget._css,
        "state": {name: getattr(widget, name) for name in KEYS},
        "shadow": shadow,
        "late": late,
    }
    page = folder / "notebook.html"
    page.write_text(PAGE % json.dumps(state).replace("<", "\\u003c"), encoding="utf-8")
    browser.told.clear()
    browser.open(page.as_uri(), **window)
    return browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    if CHROMIUM is None:
        pytest.skip("no Chromium is found")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    yield opened(browser, tmp_path, RISE.explore(events(LINE)))
    assert browser.told == [], "the console of the page has errors"


def rows(page: Browser, selector: str, name: str = "row") -> list[str]:
    return page.do(f"all({selector!r}).map((each) => each.dataset[{name!r}])")


def text(page: Browser, selector: str) -> str:
    return page.do(f"all({selector!r}).map((each) => each.textContent).join('|')")


def use(*marks: pytest.MarkDecorator) -> object:
    def marked(function: object) -> object:
        for mark in marks:
            function = mark(function)
        return function

    return marked


@use(*in_a_browser)
def test_what_is_pointed_at_is_lit_everywhere(page: Browser) -> None:
    page.point("tr[data-match='0']")
    assert rows(page, "tr.lit[data-row]") == ["0", "3"]
    assert text(page, ".badge") == "a|b"
    assert rows(page, ".timeline .match.lit", "match") == ["0"]
    assert rows(page, ".timeline circle.lit") == ["0", "3"]
    page.point("tr[data-row='3']")
    assert rows(page, "tr.lit[data-match]", "match") == ["0"]
    assert rows(page, ".timeline circle.lit") == ["3"]
    page.point(".timeline .match[data-match='1'] .back")
    assert rows(page, "tr.lit[data-row]") == ["5", "6"]
    assert rows(page, "tr.lit[data-match]", "match") == ["1"]
    page.point(".step-text")
    assert page.do("all('.lit').length") == 0


@use(*in_a_browser)
def test_steps_by_the_slider_the_buttons_an_event_and_python(page: Browser) -> None:
    assert "Before the first event" in text(page, ".step-text")
    page.do("all('input')[0].focus()")
    for _ in range(4):
        page.key("ArrowRight")
    assert page.do("model.get('position')") == 4
    assert page.do("saved") == 4
    assert "After row 3 (B ts=4 v=3)" in text(page, ".step-text")
    assert "a match ends here" in text(page, ".step-text strong")
    assert rows(page, "tr.current") == ["3"]
    assert page.do("all('.drawing .ends').length") == 1
    page.do("all('button').find((each) => each.getAttribute('aria-label') === 'One event back').click()")
    assert page.do("model.get('position')") == 3
    page.do("all(\"tr[data-row='6'] td\")[0].click()")
    assert page.do("model.get('position')") == 7
    page.do("model.set('position', 1)")
    assert page.do("[all('input')[0].value, all('.number')[0].textContent]") == ["1", "1 / 7"]
    assert rows(page, "tr.current") == ["0"]
    live = page.do("all('.drawing .live').flatMap((each) => each.dataset.states.split(' ').map(Number))")
    assert set(live) == {0, *RISE.explore(events(LINE))._shown["machine"]["steps"][0]["states"]}
    assert page.do("all('.step-note').length") == 0


@use(*in_a_browser)
def test_a_chosen_match_stays_lit(page: Browser) -> None:
    page.do("all(\".timeline [data-match='1'] .back\")[0].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    assert page.do("model.get('match')") == 1
    assert rows(page, "tr.chosen", "match") == ["1"]
    page.point("tr[data-match='0']")
    assert rows(page, "tr.lit[data-row]") == ["0", "3"]
    page.point(".step-text")
    assert rows(page, "tr.lit[data-row]") == ["5", "6"]
    page.do("model.set('match', 0)")
    assert rows(page, "tr.lit[data-row]") == ["0", "3"]
    page.do("all('th button')[1].click(); all('th button')[1].click()")
    assert rows(page, "tr.chosen", "match") == ["0"]
    assert rows(page, "tr[data-match]", "match") in (["0", "1"], ["1", "0"])
    page.do("model.set('match', null)")
    assert page.do("all('.lit, .chosen').length") == 0


@use(*in_a_browser)
def test_the_keyboard_is_enough_and_the_notebook_does_not_get_its_keys(page: Browser) -> None:
    reached = []
    for _ in range(12):
        page.key("Tab")
        reached.append(
            page.do(
                "document.activeElement.getAttribute('aria-label') || Object.keys(document.activeElement.dataset)[0] || document.activeElement.textContent"
            )
        )
    assert reached[:4] == ["One event back", "Events read", "One event on", "row"]
    assert "match" in reached
    page.do("all(\"tr[data-match='0']\")[0].focus()")
    assert rows(page, "tr.lit[data-row]") == ["0", "3"]
    page.key("ArrowDown")
    assert rows(page, "tr.lit[data-row]") == ["5", "6"]
    page.key("Enter")
    assert page.do("model.get('match')") == 1
    page.key("Escape")
    assert page.do("model.get('match')") is None
    page.do("all(\"tr[data-row='0']\")[0].focus()")
    page.key("ArrowDown")
    page.key("Space")
    assert page.do("model.get('position')") == 2
    assert page.do("keysOfNotebook.filter((key) => key !== 'Tab')") == []
    names = "all('button, input, [role=group], [role=img], table').filter((each) => !each.getAttribute('aria-label') && !each.textContent.trim()).length"
    assert page.do(names) == 0


@use(*in_a_browser)
def test_the_theme_is_that_of_the_notebook(page: Browser) -> None:
    theme = "all('.cepheid')[0].dataset.theme"
    assert page.do(theme) == "light"
    marks = [
        ("document.body.dataset.jpThemeLight = 'false'", "delete document.body.dataset.jpThemeLight"),
        ("document.body.dataset.vscodeThemeKind = 'vscode-dark'", "delete document.body.dataset.vscodeThemeKind"),
        ("document.body.dataset.vscodeThemeKind = 'vscode-high-contrast'", "delete document.body.dataset.vscodeThemeKind"),
        ("document.body.classList.add('dark')", "document.body.classList.remove('dark')"),
        ("document.documentElement.setAttribute('theme', 'dark')", "document.documentElement.removeAttribute('theme')"),
    ]
    for mark, unmark in marks:
        page.do(mark)
        page.until(f"{theme} === 'dark'")
        page.do(unmark)
        page.until(f"{theme} === 'light'")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.until(f"{theme} === 'dark'")
    for light in ("document.body.dataset.jpThemeLight = 'true'", "document.body.dataset.vscodeThemeKind = 'vscode-light'"):
        page.do(light)
        page.until(f"{theme} === 'light'")


@use(*in_a_browser)
def test_it_leaves_nothing_behind(page: Browser) -> None:
    assert page.do("listening()") == 2
    page.do("end()")
    assert page.do("listening()") == 0
    page.do("document.body.classList.add('dark')")
    page.do("new Promise((done) => setTimeout(done, 50))")
    assert page.do("all('.cepheid')[0].dataset.theme") == "light"


@use(*in_a_browser)
def test_an_element_that_comes_late_on_the_page_shows_where_one_is(browser: Browser, tmp_path: Path) -> None:
    widget = FLEET.explore(LOGINS)
    widget.position, widget.match = 40, 5
    page = opened(browser, tmp_path, widget, late=True)
    assert page.do("all('.timeline svg')[0].clientWidth") > 900
    assert page.do("all('.scroll')[0].scrollTop") > 500
    assert rows(page, "tr.current") == ["39"]
    assert rows(page, "tr.chosen", "match") == ["5"]
    assert browser.told == []


@use(*in_a_browser)
def test_text_of_events_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    odd = "<img src=x onerror=alert(1)>"
    page = opened(browser, tmp_path, cepheid.query("SELECT * WHERE A AS a FILTER a.s != ''").explore([{"type": "A", "ts": 1, "s": odd}]))
    assert odd in text(page, "td")
    assert page.do("all('img').length") == 0
    assert browser.told == []


@use(*in_a_browser)
def test_nothing_to_show_is_said(browser: Browser, tmp_path: Path) -> None:
    nothing = pa.table({"type": pa.array([], pa.string()), "ts": pa.array([], pa.int64())})
    page = opened(browser, tmp_path, cepheid.query("SELECT * WHERE A AS a").explore(nothing))
    assert text(page, ".empty") == "There are no events.|There are no events."
    assert page.do("all('input')[0].disabled")
    assert browser.told == []


@use(*in_a_browser, pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"]), pytest.mark.parametrize("width", [1000, 340]))
def test_nothing_is_cut_and_words_can_be_read(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    folder = Path(os.environ.get("CEPHEID_SCREENSHOTS") or tmp_path)
    widget = FLEET.explore(LOGINS)
    widget.position, widget.match = 10, 1
    for shadow in (False, True):
        page = opened(browser, tmp_path, widget, shadow=shadow, width=width, height=900 if width > 500 else 1200, dark=dark)
        data = page.picture(folder / f"widget-{width}-{'dark' if dark else 'light'}{'-shadow' if shadow else ''}.png")
        assert len(data) > 20_000
        assert page.do("document.documentElement.scrollWidth <= innerWidth")
        outside = "all('button, input, p, .heading').filter((each) => { const b = each.getBoundingClientRect(); return !each.closest('.scroll') && (b.left < 0 || b.right > innerWidth); }).length"
        assert page.do(outside) == 0
        assert page.do(POOR_CONTRAST) == []
        assert page.do("all('.match.lit').length") == 1
    assert browser.told == []
