"""The command `cepheid play`: what it is given becomes what the page begins with."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.cli.failures import complain
from cepheid.cli.queries import looks_like_query, no_value, text_of
from cepheid.errors import SetupError
from cepheid.play.links import is_link, read_link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEEDED = ("starlette", "uvicorn", "pygments")
"""What the extra `play` brings."""


def open_page(
    query: str | None,
    events: str | None,
    *,
    named: Mapping[str, str | None],
    expression: bool,
    parameters: Sequence[str],
    port: int,
    browser: bool,
) -> None:
    """Serve the workbench until Ctrl-C.

    query: a file, "-", a shared link, or with `expression` a text; None: the page begins with an example. A query need not be right: the page shows
    what is wrong. events: a file. named: its attributes with the event "type" and the event "time", None: the usual ones. parameters: NAME=VALUE
    each. Raises SetupError without the extra, InputError and LimitError for what cannot be read.
    """
    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    if missing is not None:
        raise SetupError(f"the workbench needs {missing}, which is not installed", help='pip install "cepheid[play]"')
    from cepheid.play.server import serve

    begins = beginning(query, events, named=named, expression=expression, parameters=parameters)
    serve(begins, port=port, browser=browser, say=_say)


def _say(address: str) -> None:
    complain(f"The workbench is at {address}\nOnly this machine can open it. Ctrl-C ends it.")


def beginning(
    query: str | None, events: str | None, *, named: Mapping[str, str | None] | None = None, expression: bool, parameters: Sequence[str]
) -> dict[str, Any] | None:
    """What the page begins with; None without a query and events."""
    if query is not None and not expression and is_link(query):
        held = read_link(query)
    elif query is None:
        held = {}
    else:
        held = {"query": query if expression or _is_text(query) else text_of(query)}
    if parameters:
        held["args"] = {**held.get("args", {}), **dict(map(_parameter, parameters))}
    if events is not None:
        from cepheid.play.server import started_with

        held |= started_with(Path(events))
        held["source"] |= {what: name for what, name in (named or {}).items() if name is not None}
    return held or None


def _is_text(query: str) -> bool:
    """Whether a query was given instead of its file: the page is for trying, so it is taken for what it is."""
    return looks_like_query(query) and not Path(query).exists()


def _parameter(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals or not name.strip():
        raise no_value(given)
    return name.strip().removeprefix(":"), text
