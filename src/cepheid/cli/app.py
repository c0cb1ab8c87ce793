"""The commands. Each declares its arguments here, and leaves the work to other modules, which it loads: the help shows without them."""

from __future__ import annotations

import sys
import time as stopwatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import cepheid
from cepheid.cli.draw import ENDINGS, drawing
from cepheid.cli.failures import Status, complain, guarded, message, options_in
from cepheid.cli.settings import PORT, Engine, NullKeys, Settings, Watching
from cepheid.cli.values import number, one_of
from cepheid.cli.values import separator as separator_of
from cepheid.errors import counted

if TYPE_CHECKING:
    from cepheid.cli.results import Flow, RunResult

# The parser of the command line reads these at run time: no module of a type may be imported for the type checker alone.

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="A file with a query; - is the standard input; with -e the text itself.")
]
EventsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="EVENTS...",
        help="Files of events: .csv, .tsv, .jsonl (.gz, .zst), .parquet or .arrow. Several streams: NAME=FILE. Several files of one: 'DIR/*.csv'.",
    ),
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
Order = Annotated[
    list[str] | None,
    typer.Option("--order", metavar="NAME", help="Attributes that decide between events of equal time. Repeatable."),
]
Separator = Annotated[
    str | None,
    typer.Option("--separator", parser=separator_of, metavar="CHAR", help="Separator of CSV values; TAB for a tab. [default: ,]"),
]
NullKeysOption = Annotated[
    NullKeys,
    typer.Option("--null-keys", parser=one_of(NullKeys), metavar="<drop|group>", help="What happens to events with NULL in PARTITION BY."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")]


class Commands(TyperGroup):
    """The group of commands: whatever one of them raises ends as `failures` says."""

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """Read the arguments: an interrupt in here is one of ours, too."""
        with guarded():
            return super().make_context(*arguments, **more)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of arguments: a query in its place is one without a command."""
        if args and args[0] not in self.commands:
            from cepheid.cli.queries import looks_like_query

            if looks_like_query(args[0]) or Path(args[0]).is_file():
                option = " -e" if looks_like_query(args[0]) else ""
                ctx.fail(f"a command comes before the query: cepheid run{option} QUERY EVENTS")
        return super().resolve_command(ctx, args)

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
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Write the matches, with events, to OUT.parquet, OUT.jsonl or OUT.csv (lists as JSON).",
        ),
    ] = None,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    order: Order = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the events by time first.")] = False,
    null_keys: NullKeysOption = NullKeys.DROP,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="Read events up to this time, and decide absences by it; end: no events follow. [default: the last]",
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            parser=one_of(Engine),
            metavar="<local|spark|reference>",
            help="Where to evaluate. The reference is the definition itself, and slow.",
        ),
    ] = Engine.LOCAL,
    match_id: Annotated[
        str | None,
        typer.Option("--match-id", metavar="NAME", help="A first column, with the identity of each match: the same in every run."),
    ] = None,
    separator: Separator = None,
    limit_rows: Annotated[int, typer.Option("--limit-rows", parser=number(0), metavar="N", help="How many matches to print; 0: all.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print all matches as JSON lines instead of a table.")] = False,
    progress: Annotated[
        bool, typer.Option("--progress/--no-progress", help="Show progress: a bar on a terminal, else a line every 5 seconds.")
    ] = True,
    overwrite: Overwrite = False,
) -> None:
    """Print or write the matches of a query over files of events."""
    from cepheid.cli import files, queries, results
    from cepheid.cli import run as running

    started = stopwatch.monotonic()
    inputs = [path for _, paths in files.named(events) for path in paths]
    target = None
    if output is not None:
        target = results.check_output(output, overwrite=overwrite, inputs=inputs, endings=tuple(results.WRITERS))
    parsed = queries.load(query, expression=expression, parameters=param or ())
    settings = Settings(type, time, tuple(order or ()), sort, null_keys, engine, separator, until, progress, match_id)
    found: RunResult | Flow
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
    complain(f"{counted(found.count, 'match', 'matches')}{where} ({stopwatch.monotonic() - started:.1f} s)")


@app.command()
def watch(
    *,
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="A file with a query; - is the standard input; with -e the text itself; not with --rules."),
    ] = None,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="A file of JSON lines that grows. [default: the standard input, until it ends]")
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FOLDER",
            help="In place of a query: a folder of files with rows of rules, or one, read again when they change.",
        ),
    ] = None,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    lateness: Annotated[
        str | None,
        typer.Option(
            "--lateness", metavar="TIME", help="How late an event may come, such as 10s. [default: events come in the order of their times]"
        ),
    ] = None,
    order: Order = None,
    clock: Annotated[
        bool, typer.Option("--clock", help="While no line comes, time goes on by the clock, behind it by the lateness.")
    ] = False,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="FILE", help="A file of such events that gives the types. [default: the first line and the query]"
        ),
    ] = None,
    null_keys: NullKeysOption = NullKeys.DROP,
    skip_bad_lines: Annotated[bool, typer.Option("--skip-bad-lines", help="Leave out lines that are no events, and count them.")] = False,
) -> None:
    """Print each match in lines of JSON that arrive, as a line of JSON, when it is decided."""
    from cepheid.cli import arriving, files, queries
    from cepheid.cli import watch as watching

    if rules is not None:
        if file is not None or expression or param:
            raise typer.BadParameter("rules have their queries and arguments: give no query, and no -e or -p", param_hint="--rules")
        query, file = None, query
    elif query is None:
        raise typer.BadParameter("give a query, or --rules FOLDER", param_hint="QUERY")
    piped = file is None or file == queries.STANDARD_INPUT
    if piped and query == queries.STANDARD_INPUT and not expression:
        raise typer.BadParameter("the query and the events cannot both come from the standard input", param_hint="QUERY")
    parsed = None if query is None else queries.load(query, expression=expression, parameters=param or ())
    settings = Watching(type, time, tuple(order or ()), lateness, clock, null_keys, skip_bad_lines)
    types = None if schema is None else files.streams([schema])[0].schema
    source = arriving.Pipe(sys.stdin.fileno()) if piped else arriving.GrowingFile(Path(file or ""))
    if parsed is not None:
        watching.watch(parsed, source, settings, types, sys.stdout)
    elif rules is not None:
        from cepheid.cli import watch_rules

        watch_rules.watch_rules(rules, source, settings, types, sys.stdout)


@app.command()
def explain(
    *,
    query: QueryArgument,
    events: SchemaArgument = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="One of: meaning, text, tree, plan, rewritten, automaton, program, evaluation, lints.")
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
    schema = running.schema_of_files(parsed, events or (), Settings(type, time, separator=separator))
    explanation = parsed.explain(stage, schema=schema)
    print(explanation)
    for line in options_in(dict(explanation.sections).get("schema", "")):
        complain(line)


@app.command()
def check(
    *,
    query: QueryArgument,
    events: SchemaArgument = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors; notes are not.")] = False,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    separator: Separator = None,
) -> None:
    """Look for mistakes in a query without running it; with EVENTS, also in its names and types.

    A warning is about what is probably a mistake. A note never counts: it is about what other systems mean by the same words, what nothing evaluates,
    and names that are in no event.
    """
    from cepheid.cli import queries
    from cepheid.cli import run as running
    from cepheid.cli.check import findings, help_on_types

    parsed = queries.load(query, expression=expression, parameters=param or ())
    streams, schema = running.streams_of_files(parsed, events or (), Settings(type, time, separator=separator))
    try:
        warnings, notes = findings(parsed, schema, streams)
    except cepheid.BindError as error:
        complain("\n".join([message(error), *([] if events else help_on_types(parsed))]))
        raise typer.Exit(Status.MISTAKE) from None
    if warnings or notes:
        complain("\n\n".join([*warnings, *notes]))
    name = "the query" if expression or query == queries.STANDARD_INPUT else query
    print(f"{name}: {counted(len(warnings), 'warning') if warnings else 'ok'}")
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
    """Draw the automaton of a query as SVG, PNG, Mermaid or DOT."""
    from cepheid.cli import queries, results
    from cepheid.cli import run as running

    target = None
    if output is not None:
        target = results.check_output(output, overwrite=overwrite, endings=() if format else tuple(ENDINGS))
    parsed = queries.load(query, expression=expression, parameters=param or ())
    schema = running.schema_of_files(parsed, events or (), Settings(type, time, separator=separator))
    chosen = format or ("svg" if target is None else ENDINGS[target.suffix.lower()])
    text = drawing(parsed, chosen, schema=schema, deterministic=deterministic)
    if target is None:
        print(text.rstrip("\n"))
        return
    with results.complete(target) as beside:
        text.save(beside)


@app.command()
def doctor() -> None:
    """Look at the installation: what is there, what is missing, what is broken."""
    from cepheid.cli import doctor as doctors

    examined = doctors.examine()
    print(doctors.report(examined))
    if any(finding.state is doctors.State.BROKEN for finding in examined):
        raise typer.Exit(Status.MISTAKE)


@app.command()
def play(
    *,
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="A file with a query, or a link that the page has shared; with -e the text of a query."),
    ] = None,
    events: Annotated[str | None, typer.Argument(metavar="[EVENTS]", help="A file of events: .csv, .tsv, .jsonl or .parquet.")] = None,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    port: Annotated[
        int, typer.Option("--port", parser=number(0, 65_535), metavar="N", help="Where to listen on this machine; 0: any free port.")
    ] = PORT,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Open the workbench: a page on this machine that shows a query's matches in events while you type."""
    from cepheid.play.command import open_page

    named = {"type": type, "time": time}
    open_page(query, events, named=named, expression=expression, parameters=param or (), port=port, browser=browser)


@app.command("why-not")
def why_not(
    *,
    query: QueryArgument,
    events: EventsArgument,
    at: Annotated[
        str | None, typer.Option("--at", metavar="ROWS", help="The rows of events that should match, or of some of them, from 0: 3,5,6.")
    ] = None,
    named: Annotated[
        list[str] | None, typer.Option("--as", metavar="NAME=ROWS", help="Rows that should be in a variable: y=5,6. Repeatable.")
    ] = None,
    span: Annotated[
        str | None, typer.Option("--span", metavar="FIRST,LAST", help="The first and the last row that the match may have.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="The match has no other events.")] = False,
    expression: Expression = False,
    param: Parameters = None,
    type: Type = None,  # noqa: A002 - public word
    time: Time = None,
    order: Order = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the events by time first; rows are counted before.")] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Decide absences by this time; end: no events follow. [default: the last]")
    ] = None,
    separator: Separator = None,
) -> None:
    """Say which parts of a query exclude a match with some events."""
    from cepheid.cli import queries
    from cepheid.cli.why_not import answer

    parsed = queries.load(query, expression=expression, parameters=param or ())
    settings = Settings(type, time, tuple(order or ()), sort, separator=separator, until=until)
    print(answer(parsed, events, settings, at=at, named=named or (), span=span, only=only))
