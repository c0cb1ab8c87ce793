"""The command line: `cepheid run`, `watch`, `explain`, `check`, `draw` and `doctor`.

Comes in: arguments, files of events. Goes out: matches and texts on the standard output, everything else on the standard error, an exit status
(`failures`, and `interrupts` for Ctrl-C). `files` reads events piece by piece (`csvs`, `jsonlines`, their types by `readings`), `queries` the query
and its parameters, `results` prints and writes matches, `run` evaluates on the chosen engine, `watch` reads events that arrive (`arriving`, `lined`),
`doctor` checks the installation, `app` has the commands. Recognition itself is not here.
"""

from __future__ import annotations

import sys

from cepheid.cli.interrupts import persistent


def main() -> None:
    """The entry point `cepheid`. Ends the process with its exit status."""
    try:
        import rich  # noqa: F401 - asked for here, so that its absence has a message
        import typer  # noqa: F401 - as above
    except ImportError as error:
        print(f'error: the command line needs {error.name}\nhelp: pip install "cepheid[cli]"', file=sys.stderr)
        sys.exit(1)
    with persistent():
        try:
            from cepheid.cli.app import app
        except KeyboardInterrupt:  # loading takes a moment, too
            print("interrupted", file=sys.stderr)
            sys.exit(130)
        app()
