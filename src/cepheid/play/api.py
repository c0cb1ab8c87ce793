"""What the page asks, as functions: a dict comes in, a dict goes out. No web, no state, and nothing of the machine's files.

Each takes what `inputs` reads: "query" (a text), "args" (texts of parameters), "source" (events), "ended". What a function raises, `answer` turns
into `{"error": ..}` with the fact, the place in the text in code points, and the help.
"""

from __future__ import annotations

import base64
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import cepheid
from cepheid.engine.plan.likely_schema import likely_schema
from cepheid.errors import CepheidError, InputError, LimitError, NotSupportedError
from cepheid.language import parse
from cepheid.language.syntax import Strategy
from cepheid.play import answers, code, inputs, machine, rewriting, tables
from cepheid.schema import can_be_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cepheid.schema import EventSchema

    Request = Mapping[str, Any]
    Answer = dict[str, Any]

STRATEGIES = tuple(each.value for each in Strategy)
"""What the control of the strategy offers."""


# ------------------------------------------------------------------------------------------------------------------------ query


def check(request: Request) -> Answer:
    """What is wrong with a query while one types, and what can be said about it.

    "schema", "type", "time": of the events, as `events` gives them; without them types are guessed. Returns `tokens` (start, end, kind), `error`
    (None: it is right), `lints`, `notes`, `controls` and `parameters`.
    """
    text = inputs.text_in(request, "query")
    answer: Answer = {"tokens": tokens(text), "error": None, "lints": [], "notes": [], "controls": None, "parameters": []}
    try:
        query = cepheid.query(text)
        answer |= {"controls": rewriting.controls(query.tree), "parameters": inputs.parameter_names(query)}
        args = inputs.args_in(request, query)
        query = query.with_args(**args) if args else query
        _bound(query, request, answer)
    except CepheidError as error:
        answer["error"] = described(error)
    return answer


def _bound(query: cepheid.Query, request: Request, answer: Answer) -> None:
    """What binding and compiling say of a query; without the values of all parameters it is bound as far as that goes."""
    schema = _schema(query, request)
    missing = [name for name in inputs.parameter_names(query) if name not in query.args]
    answer["lints"] = list(query.bound(schema, partial=True).lints)
    if missing:
        answer["notes"].append(f"give a value to {', '.join(f':{name}' for name in missing)}")
        return
    try:
        query.compiled(schema)
    except (NotSupportedError, LimitError) as error:
        answer["error"] = described(error.located(query.text))


def _schema(query: cepheid.Query, request: Request) -> EventSchema:
    """The schema of the events that the page has, or a likely one where it has none."""
    encoded = request.get("schema")
    if not encoded:
        return likely_schema(query)
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
    except (TypeError, ValueError, pa.ArrowException):
        raise InputError("the schema of the request cannot be read") from None
    return query.schema(schema, type=inputs.name_in(request, "type"), time=inputs.name_in(request, "time"))


def tokens(text: str) -> list[tuple[int, int, str]]:
    """Where which kind of word stands: (start, end, kind) in code points; what has no colour is left out."""
    from cepheid.language.highlight import CeqlLexer

    found = []
    for start, kind, value in CeqlLexer().get_tokens_unprocessed(text):
        name = next((KINDS[part] for part in kind.split()[::-1] if part in KINDS), None)
        if name is not None and value.strip():
            found.append((start, start + len(value), name))
    return found


def _kinds() -> dict[Any, str]:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    return {
        Comment: "comment",
        Keyword: "keyword",
        Keyword.Constant: "constant",
        Keyword.Type: "unit",
        Name.Attribute: "attribute",
        Name.Builtin: "function",
        Name.Function: "function",
        Name.Variable: "variable",
        Name.Variable.Global: "parameter",
        Number: "number",
        Operator: "operator",
        String: "string",
    }


KINDS = MappingProxyType(_kinds())
"""The colours of the page, by the tokens of Pygments."""


def rewrite(request: Request) -> Answer:
    """The query with another strategy, window or LIMIT: `control` and `value`. Returns `query` and `kept`: whether the rest is as it was written."""
    text, kept = rewriting.rewritten(
        inputs.text_in(request, "query"), inputs.text_in(request, "control"), inputs.text_in(request, "value", "")
    )
    return {"query": text, "kept": kept, "controls": rewriting.controls(parse(text))}


# ----------------------------------------------------------------------------------------------------------------------- events


def events(request: Request) -> Answer:
    """The events as `tables.shown_events`, with the `schema` for `check`, and the columns that may have the type: `types`."""
    given = inputs.events_in(request)
    schema = given.table.schema
    return tables.shown_events(given) | {
        "schema": base64.b64encode(schema.remove_metadata().serialize()).decode(),
        "types": [field.name for field in schema if can_be_type(field.type)],
    }


def upload(request: Request) -> Answer:
    """A file as events: `name` and `data` (base 64). Returns the `source` of later requests, and `notes` of what is different by that."""
    source, notes = inputs.uploaded(inputs.text_in(request, "name"), inputs.text_in(request, "data"))
    return {"source": source, "notes": notes}


# ---------------------------------------------------------------------------------------------------------------------- answers


def run(request: Request) -> Answer:
    """The matches of the query over the events, as `answers.matches_in`."""
    return answers.matches_in(inputs.query_in(request), inputs.events_in(request), until="end" if request.get("ended") else None)


def explain(request: Request) -> Answer:
    """What the query means and costs: `sections`, each a title and a text."""
    query = inputs.query_in(request)
    given = inputs.events_in(request)
    return {"sections": [list(section) for section in query.explain(schema=given.schema(query)).sections]}


def automaton(request: Request) -> Answer:
    """The automaton and its live states after each event, as `machine.machine_of`."""
    return machine.machine_of(inputs.query_in(request), inputs.events_in(request))


def programs(request: Request) -> Answer:
    """The query and its events as programs: `python` and `pyspark`."""
    query, given, ended = inputs.query_in(request), inputs.events_in(request), bool(request.get("ended"))
    return {"python": code.python(query, given, ended=ended), "pyspark": code.pyspark(query, given, ended=ended)}


def why_not(request: Request) -> Answer:
    """Why there is no match with the events in `rows`, as `text`."""
    given = inputs.events_in(request)
    query = inputs.query_in(request)
    until = "end" if request.get("ended") else None
    return {"text": cepheid.why_not(query, given.table, inputs.rows_in(request, "rows"), until=until, **given.options).text()}


# ------------------------------------------------------------------------------------------------------------------------ asked

QUESTIONS: Mapping[str, Callable[[Request], Answer]] = MappingProxyType(
    {
        "check": check,
        "rewrite": rewrite,
        "events": events,
        "upload": upload,
        "run": run,
        "explain": explain,
        "automaton": automaton,
        "programs": programs,
        "why_not": why_not,
    }
)
"""Everything that the page asks, by name."""


def answer(question: str, request: Request) -> Answer:
    """The answer to a question of the page, or `{"error": ..}`. Raises nothing for what a request holds."""
    try:
        return QUESTIONS[question](request)
    except CepheidError as error:
        return {"error": described(error)}
    except MemoryError:
        return {"error": described(LimitError("the request takes more memory than its process may use (MAX_MEMORY)", help=SMALLER))}
    except RecursionError:
        return {"error": described(LimitError("the request nests too deep", help=SMALLER))}
    except Exception as error:  # noqa: BLE001 - the page says it, and the next request is answered
        fact = f"internal error: {type(error).__name__}: {error}"
        return {"error": described(CepheidError(fact, help="this is a bug in Cepheid; please report it with the query and a few events"))}


SMALLER = "take fewer events, a shorter window, or LIMIT"


def described(error: CepheidError) -> dict[str, Any]:
    """An error as the page shows it; the place is in code points of the query's text."""
    span = error.span if error.text is not None else None
    return {
        "kind": type(error).__name__,
        "fact": error.fact,
        "help": list(error.help),
        "span": None if span is None else [span.start, max(span.end, span.start + 1)],
    }
