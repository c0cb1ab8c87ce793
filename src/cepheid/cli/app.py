"""The commands. Each declares its arguments here, and leaves the work to other modules, which it loads: the help shows without them."""

from __future__ import annotations

import sys
import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import cepheid
from cepheid.cli.draw import ENDINGS, drawing
from cepheid.cli.failures import Status, complain, guarded, message
from cepheid.cli.settings import Engine, NullKeys, Settings

if TYPE_CHECKING:
    from cepheid.cli.results import Flow, Found

# The parser of the command line reads these at run time: no module of a type may be imported for the type checker alone.

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file with a query; - is the standard input; with -e the text itself.")
]
EventsArgument = Annotated[
    list[str],
    typer.Argument(metavar="EVENTS...", help="Files of events: .csv, .tsv, .jsonl or .parquet. Several streams: NAME=FILE, one for each."),
]
SchemaArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[EVENTS...]", help="Files of events. Only their attributes and types are used."),
]
Expression = Annotated[bool, typer.Option("--expression", "-e", help="QUERY is the text of the query.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="The value of a parameter :NAME, written as in the language, or text; for IN :NAME a list, 1,2,3. Repeatable.",
    ),
]
Type = Annotated[
    str | None, typer.Option("--type", metavar="NAME", help="The attribute with the event type. [default: type, if there is one]")
]
Time = Annotated[
    str | None, typer.Option("--time", metavar="NAME", help="The attribute with the event time. [default: ts, if there is one]")
]
Separator = Annotated[str | None, typer.Option("--separator", metavar="CHAR", help="Separator of CSV values; TAB for a tab. [default: ,]")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]


class Commands(TyperGroup):
    """The group of commands: whatever one of them raises ends as `failures` says."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Read the arguments: an interrupt in here is one of ours, too."""
        with guarded():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with guarded():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Recognize complex events: run queries over files of events, and see what they mean and cost.",
)


def _version(asked: bool) -> None:  # noqa: FBT001 - the signature of a callback
    if asked:
        print(f"cepheid {cepheid.__version__}")
        raise typer.Exit


@app.callback()
def options(
    *, version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False
) -> None:
    """Hold the options of all commands."""


@app.command()
def run(
    *,
    query: QueryArgument,
    events: EventsArgument,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="Write the matches to OUT.parquet or OUT.jsonl, with their events.")
    ] = None,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    order: Annotated[
        list[str] | None, typer.Option("--order", metavar="NAME", help="Attributes that decide between events of equal time. Repeatable.")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the events by time first.")] = False,
    null_keys: Annotated[NullKeys, typer.Option("--null-keys", help="What happens to events with NULL in PARTITION BY.")] = NullKeys.DROP,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Read events up to this time, and decide absences by it; end: no events follow. [default: the last]",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Where to evaluate. The reference is the definition itself, and slow.")
    ] = Engine.LOCAL,
    separator: Separator = None,
    limit_rows: Annotated[int, typer.Option("--limit-rows", min=0, help="How many matches to print; 0: all.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print all matches as JSON lines instead of a table.")] = False,
    progress: Annotated[bool | None, typer.Option("--progress/--no-progress", help="Show progress. [default: on a terminal]")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print or write the matches of a query over files of events."""
    from cepheid.cli import files, queries, results
    from cepheid.cli import run as running

    started = clock.monotonic()
    inputs = [path for _, path in files.named(events)]
    target = None
    if output is not None:
        target = results.check_output(output, overwrite=overwrite, inputs=inputs, endings=tuple(results.WRITERS))
    parsed = queries.load(query, expression=expression, parameters=param or ())
    shown = sys.stderr.isatty() if progress is None else progress
    settings = Settings(type, time, tuple(order or ()), sort, null_keys, engine, _separator(separator), until, shown)
    found: Found | Flow
    if target is not None:
        found = running.flow(parsed, events, settings)
        results.write(found, target)
    elif json:
        found = running.flow(parsed, events, settings)
        for line in results.json_lines(found):
            print(line)
    else:
        found = running.run(parsed, events, settings)
        results.print_table(found, limit=limit_rows)
    for note in found.notes:
        complain(f"note: {note}")
    where = "" if target is None else f" in {target}"
    complain(f"{found.count:,} {'match' if found.count == 1 else 'matches'}{where} ({clock.monotonic() - started:.1f} s)")


def _separator(given: str | None) -> str | None:
    if given is None or (len(given) == 1 and given.isascii() and given not in '\r\n"'):
        return given
    if given.upper() in ("TAB", "\\T"):
        return "\t"
    raise typer.BadParameter("a separator is one ASCII character (no quote, no line end), or TAB", param_hint="--separator")


@app.command()
def explain(
    *,
    query: QueryArgument,
    events: SchemaArgument = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="One of: text, tree, plan, rewritten, automaton, program, evaluation, lints.")
    ] = None,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    separator: Separator = None,
) -> None:
    """Say what a query means, how it is evaluated and what that costs."""
    from cepheid.cli import queries
    from cepheid.cli import run as running

    parsed = queries.load(query, expression=expression, parameters=param or ())
    schema = running.schema_of_files(parsed, events or (), Settings(type, time, separator=_separator(separator)))
    print(parsed.explain(stage, schema=schema))


@app.command()
def check(
    *,
    query: QueryArgument,
    events: SchemaArgument = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    separator: Separator = None,
) -> None:
    """Look for mistakes in a query without running it; with EVENTS, also in its names and types."""
    from cepheid.cli import queries
    from cepheid.cli import run as running
    from cepheid.cli.check import findings

    parsed = queries.load(query, expression=expression, parameters=param or ())
    schema = running.schema_of_files(parsed, events or (), Settings(type, time, separator=_separator(separator)))
    try:
        warnings, notes = findings(parsed, schema)
    except cepheid.BindError as error:
        guessed = "" if events else "\nhelp: types were guessed from the query: name the file of events to check it with their types"
        complain(message(error) + guessed)
        raise typer.Exit(Status.MISTAKE) from None
    if warnings or notes:
        complain("\n\n".join([*warnings, *notes]))
    name = "the query" if expression or query == queries.STANDARD_INPUT else query
    counted = f"{len(warnings)} {'warning' if len(warnings) == 1 else 'warnings'}"
    print(f"{name}: {counted if warnings else 'ok'}")
    if strict and warnings:
        raise typer.Exit(Status.MISTAKE)


@app.command()
def draw(
    *,
    query: QueryArgument,
    events: SchemaArgument = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help=f"The file to write; its ending is one of {', '.join(ENDINGS)}.")
    ] = None,
    format: Annotated[str | None, typer.Option("--format", help="svg, mermaid or dot. [default: from OUT, else svg]")] = None,  # noqa: A002
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Draw the determinized automaton.")] = False,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    separator: Separator = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw the automaton of a query as SVG, Mermaid or DOT."""
    from cepheid.cli import queries, results
    from cepheid.cli import run as running

    target = None
    if output is not None:
        target = results.check_output(output, overwrite=overwrite, endings=() if format else tuple(ENDINGS))
    parsed = queries.load(query, expression=expression, parameters=param or ())
    schema = running.schema_of_files(parsed, events or (), Settings(type, time, separator=_separator(separator)))
    chosen = format or ("svg" if target is None else ENDINGS[target.suffix.lower()])
    text = drawing(parsed, chosen, schema=schema, deterministic=deterministic)
    if target is None:
        print(text.rstrip("\n"))
        return
    with results.complete(target) as beside:
        Path(beside).write_text(text.rstrip("\n") + "\n", encoding="utf-8")


@app.command()
def doctor() -> None:
    """Look at the installation: what is there, what is missing, what is broken."""
    from cepheid.cli import doctor as doctors

    examined = doctors.examine()
    print(doctors.report(examined))
    if any(finding.state is doctors.State.BROKEN for finding in examined):
        raise typer.Exit(Status.MISTAKE)
