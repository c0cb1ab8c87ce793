"""What a notebook shows of a query."""

from __future__ import annotations

import html
import re
import sys

import pytest

import cepheid
from cepheid.viz import svg
from cepheid.viz.notebook import text_html

TEXT = """-- logins AND more
SELECT * WHERE FAIL{:n} AS `<b>` ; OK AS ok FILTER ok.v = 'it''s AND' PARTITION BY user WITHIN 5 minutes"""


@pytest.fixture(params=["with Pygments", "without"])
def pygments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "cepheid.language.highlight", None)
    else:
        pytest.importorskip("pygments")


@pytest.mark.usefixtures("pygments")
def test_the_text_is_all_there_and_its_keywords_stand_out() -> None:
    shown = text_html(TEXT)
    assert html.unescape(re.sub("<[^>]+>", "", shown)) == TEXT
    bold = re.findall(f'<span style="color:{svg.ACCENT};font-weight:bold">([^<]+)</span>', shown)
    assert bold[:4] == ["SELECT", "WHERE", "AS", "AS"]
    assert "AND" not in bold, "in a comment and in a text it is no keyword"
    assert "<b>" not in shown


def test_a_query_is_its_text_its_arguments_and_its_drawing() -> None:
    shown = cepheid.query(TEXT, args={"n": 3})._repr_html_()
    assert "n = 3" in shown
    assert shown.count("<svg") == 1
    assert "\u00d73" in shown


def test_why_there_is_no_drawing() -> None:
    shown = cepheid.query(TEXT)._repr_html_()
    assert "no drawing: error" in shown
    assert "<svg" not in shown
