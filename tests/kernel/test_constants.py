"""The numbers that kernels and Python share: each kernel's constants are those of its tables of names, and of what drives it.

Constants are found in the source, by what they are called and where they are used: a kernel, or a constant, that no test looks at is a failure.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import cepheid.kernel
from cepheid.automata import places
from cepheid.engine.evaluations import base, block_run, preferred
from cepheid.engine.evaluations.choosing import last, maximal, next, restricted  # noqa: A004 - a module called after NXT
from cepheid.engine.evaluations.graph import match
from cepheid.engine.evaluations.guards import guarded_cells, guarded_memo, guarded_parts_run, guarded_run, guarded_sets, guarded_tables
from cepheid.engine.memory import blocks, count_blocks, pools
from cepheid.kernel import kernel
from cepheid.language.rows_syntax import Skip
from cepheid.language.syntax import Consumption

FOLDER = Path(cepheid.kernel.__file__).parent
KERNELS = sorted(path.stem for path in FOLDER.glob("[!_]*.py"))

LINE = len(blocks.DIRECTORY)
SUPPORTS = {f"B_{name}": getattr(block_run, name) for name in ("POSITION", "LOW", "EPOCH", "LAST_TIME", "NEWEST_START", "NEWEST_TIME")}
DIRECTORY = {f"D_{name}": getattr(blocks, name) for name in ("HEAD", "TAIL", "DATA", "MASK")}

# What a kernel's tuples of names are called, and how its constants for them begin.
TABLES = {"EXITS": "EXIT_", "FIELDS": "S_", "RECORD": "R_", "ACTION": "A_", "NODE": "N_", "INSTANCE": "I_"}

WORK = ("COUNT", "SIZE", "SETS", "CELLS", "FIRSTS", "LENGTHS", "ROWS", "STATES", "FREE", "FOUND", "PLACES", "HEADER")
"""What MAX writes down first of its work, in the kernel of guards alone."""

SKIPS = ("PAST", "NEXT", "FIRST")
"""The ways to skip that the kernel of row patterns compares with."""

PART_NODE = ("CELL", "EDGES", "CHILD", "START", "LEFT", "SAME", "BEFORE", "RANK", "LOWER", "UPPER")
"""What it writes down of a cell that it meets on the way back through a part."""

OPERATIONS = {
    "LOAD": "load",
    "PUSH": "push",
    "UNLESS": "unless",
    "IF_TRUE": "if",
    "IF_KNOWN": "if known",
    "JUMP": "jump",
    "NOT": "not",
    "IS_NULL": "is_null",
    "FIT": "fit",
    "EQUAL": "=",
    "DIFFERENT": "!=",
    "LESS": "<",
    "AT_MOST": "<=",
    "MORE": ">",
    "ADD": "+",
    "SUBTRACT": "-",
    "SUBTRACT_FROM": "reversed -",
    "MULTIPLY": "*",
    "DIVIDE": "/",
    "REMAINDER": "%",
    "REMAINDER_OF": "reversed %",
    "CAST": "cast",
    "ABSOLUTE": "abs",
    "NEGATE": "negate",
    "FLOOR": "floor",
    "HIGH": "high",
    "WIDEN": "widen",
    "NARROW": "narrow",
    "ASK": "ask",
}
"""What the steps of a program do, as its kernel calls them; what is not here is what is left."""

# The other constants of each kernel, as Python has them.
OTHERS = {
    "match": {
        "RECORD_WIDTH": len(kernel("match").RECORD),
        "CELLS": 0,
        "STARTS": pools.POOL_NUMBERS,
        "PACKED": 2 * pools.POOL_NUMBERS,
        "TOP": pools.TOP,
        "CAPACITY": pools.CAPACITY,
        "LEAST": pools.LEAST,
        "ID_LIMIT": match.SPAN_LIMIT,
        "CELL_LIMIT": match.CELL_LIMIT,
        **{name: 1 + place for place, name in enumerate(("CHILD", "REST", "MAX_START"))},
        **{name: 1 + place for place, name in enumerate(("NEXT_OUTPUT", "VISIT", "WRITE", "COUNT", "CHOOSE"))},
        "COUNT": match.COUNT_MATCHES,
    },
    "next": SUPPORTS
    | DIRECTORY
    | {"ACTION_WIDTH": len(kernel("next").ACTION), "LEAVES": next.LEAVES, "ENDS": next.ENDS, "HELD": next.HELD},
    "last": SUPPORTS | DIRECTORY | {"B_LIVE": last.LIVE, "B_GREATEST": last.LIVE + 1},
    "maximal": SUPPORTS
    | DIRECTORY
    | {"B_ORDER": maximal.ORDER, "B_GROUPS": maximal.GROUP_COUNT, "B_NUMBERS": maximal.NUMBERS}
    | {name: LINE * getattr(maximal, name) for name in ("ROWS", "NODES", "GROUPS")}
    | {name: 1 + place for place, name in enumerate(("NEXT_END", "NEXT_START", "VISIT", "WRITE"))},
    "counting": {f"B_{name.upper()}": getattr(count_blocks, name.upper()) for name in kernel("counting").HEADER}
    | {"B_ALIVE": count_blocks.WORDS, "E_ROW": count_blocks.ENTRY}
    | {f"E_{name}": place for place, name in enumerate(("POSITION", "TIME", "CODE", "BEFORE"))},
    "track": {},
    "preferred": {"UNKNOWN": preferred.UNKNOWN, "NONE": preferred.NONE, "ACCEPT": places.ACCEPT}
    | {f"SKIP_{name}": list(Skip).index(Skip[whole]) for name, whole in zip(SKIPS, kernel("preferred").SKIPS, strict=False)},
    "restricted": SUPPORTS
    | DIRECTORY
    | {f"K_{kind.__name__.upper()}": number for kind, number in restricted.KINDS.items() if kind.__name__ != "Sequence"}
    | {"NODE_WIDTH": len(kernel("restricted").NODE), "LEAF_BITS": restricted.LEAF_BITS, "LEAF_MASK": restricted.LEAF_MASK},
    "guards": SUPPORTS
    | DIRECTORY
    | {"B_LIVE": guarded_run.LIVE, "B_TABLED": guarded_run.TABLED, "B_GREATEST": guarded_run.GREATEST}
    | {f"C_{name.upper()}": place for place, name in enumerate(guarded_tables.CELL)}
    | {f"N_{name.upper()}": place for place, name in enumerate(guarded_tables.NODE)}
    | {f"R_{name.upper()}": place for place, name in enumerate(guarded_tables.ROW)}
    | {f"L_{name.upper()}": place for place, name in enumerate(guarded_run.LEVEL)}
    | {f"LINK_{name.upper()}": place for place, name in enumerate(guarded_run.LINK)}
    | {"R_TESTS": len(guarded_tables.ROW), "LEVEL_WIDTH": len(guarded_run.LEVEL), "PUSHED": guarded_run.PUSHED}
    | {f"F_{name.upper()}": place for place, name in enumerate(guarded_tables.FORM)}
    | {f"I_{name.upper()}": place for place, name in enumerate(guarded_tables.INDEX)}
    | {f"Y_{name.upper()}": place for place, name in enumerate(guarded_tables.LAYERED)}
    | {name: getattr(guarded_tables, name) for name in ("EARLIEST", "LATEST")}
    | {f"V_{name.upper()}": place for place, name in enumerate((*guarded_sets.SET, "values"))}
    | {
        name: getattr(guarded_tables, name)
        for name in ("LABELS", "UNMARKED", "MACRO_BITS", "MACROS_MASK", "FORM_BITS", "REST", "REST_BITS", "REST_MASK")
    }
    | {
        name: getattr(guarded_tables, name)
        for name in (
            "OUTSIDE",
            "NULLS",
            "COMPUTED",
            "AMONG",
            "BESIDE",
            "APART",
            "SLOT_BITS",
            "PLACE_BITS",
            "PLACE_MASK",
            "ENDED_BITS",
            "HOW_BITS",
            "COLUMN_BITS",
        )
    }
    | {name: getattr(guarded_tables, name) for name in ("REAL", "SOURCE_BITS", "SOURCE_MASK", "WIDE", "DIGITS_BITS")}
    | {"LIMBS": 5, "WIDE_WORDS": 6}
    | {f"FROM_{name.upper()}": place for place, name in enumerate(guarded_tables.SOURCES) if name != "constant"}
    | {name: guarded_tables.OPERATIONS.index(operation) for name, operation in OPERATIONS.items()}
    | {"OPERATION_MASK": guarded_tables.REAL - 1, "STRIDE_BITS": guarded_sets.STRIDE_BITS}
    | {"MEMBER_BITS": guarded_tables.MEMBER_BITS, "MEMBER_MASK": guarded_tables.MOST_SETS - 1}
    | {f"MADE_{how.upper()}": number for how, number in guarded_tables.MADE.items()}
    | {"SLOTS_MASK": (1 << guarded_tables.HOW_BITS) - 1, "HOW_MASK": (1 << guarded_tables.COLUMN_BITS - guarded_tables.HOW_BITS) - 1}
    | {f"Q_{name.upper()}": len(guarded_memo.MEMO) - place for place, name in enumerate(guarded_memo.MEMO)}
    | {f"A_{name.upper()}": place for place, name in enumerate(guarded_memo.ROW)}
    | {name: getattr(guarded_cells, name) for name in ("HEIGHT_BITS", "HEIGHT_MASK")}
    | {
        "RISING": 1,
        "NULL_BITS": guarded_tables.NULL_BITS,
        "SHAPE_BITS": guarded_tables.SHAPE_BITS,
        "SHAPES_MASK": (1 << guarded_tables.SHAPE_BITS) - 1,
        "SUPERSEDED": -2,
        "ENTRY": -1,
        "CELL": -2,
        "PLACE_OF": 32,
        "NUMBER": guarded_run.NUMBER,
        "COUNT": 2,
        "CHOSEN": guarded_run.CHOSEN,
        "MAXIMAL": guarded_run.MAXIMAL,
        "BEGUN": guarded_run.BEGUN,
        "NEXT": guarded_run.NEXT,
        "DROPPED": -1,
    }
    | {f"W_{name}": place for place, name in enumerate(WORK)}
    | {f"M_{name}": place for place, name in enumerate(("CELL", "NEXT", "CHAIN", "EDGES", "BASE", "SETS"))}
    | {
        name: getattr(guarded_tables, name)
        for name in (
            "SAYS",
            "ENDS_PARTS",
            "BEGINS_NEXT",
            "PART_BEGINS",
            "PART_ENDS",
            "PART_SHOWN",
            "PART_SAYS",
            "LOOSE_BETWEEN",
            "LOOSE_BEGIN",
        )
    }
    | {f"P_{name}": place for place, name in enumerate(PART_NODE)}
    | {"PART_WIDTH": len(PART_NODE), "REACHED": 4}
    | {f"H_{name.upper()}": place for place, name in enumerate(guarded_parts_run.HEAD)}
    | {"HEAD_WIDTH": len(guarded_parts_run.HEAD)}
    | {f"E_{name}": place for place, name in enumerate(("STATE", "NEXT"))},
}


def rooms(name):
    """The files of a kernel's source: its own, and those of its rooms."""
    return [FOLDER / f"{name}.py", *sorted(FOLDER.glob(f"_{name}_*.py"))]


def modules(name):
    """What these are where they run uncompiled."""
    own, *others = rooms(name)
    return [kernel(own.stem, "python"), *(import_module(f"cepheid.kernel.{path.stem}") for path in others)]


def constants(name):
    """The constants of a kernel's source; one that is not the same in all its rooms has the values of all."""
    found = {}
    for module in modules(name):
        for key, value in vars(module).items():
            if key.isupper() and type(value) is int and not key.startswith("_"):
                found.setdefault(key, set()).add(value)
    return {key: values.pop() if len(values) == 1 else values for key, values in found.items()}


def expected(name):
    """What they are to be."""
    module = kernel(name)
    tables = {key: prefix for key, prefix in TABLES.items() if hasattr(module, key)}
    places = {f"{prefix}{field.upper()}": place for key, prefix in tables.items() for place, field in enumerate(getattr(module, key))}
    return places | OTHERS[name]


def source(name):
    return "\n".join(path.read_text() for path in rooms(name))


def tree(name):
    return ast.parse(source(name))


def uses(name):
    """The names that the functions of a kernel read."""
    functions = [node for node in tree(name).body if isinstance(node, ast.FunctionDef)]
    return [
        node.id for function in functions for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]


def places(name, context):
    """The places of the vector that a kernel reads (ast.Load) or writes (ast.Store), by the name it says."""
    found = [node for node in ast.walk(tree(name)) if isinstance(node, ast.Subscript) and getattr(node.value, "id", None) == "S"]
    assert all(isinstance(node.slice, ast.Name) and node.slice.id.startswith("S_") for node in found), "a place of S without a name"
    return {node.slice.id[2:].lower() for node in found if isinstance(node.ctx, context)}


@pytest.mark.parametrize("name", KERNELS)
def test_constants_are_those_of_the_drivers(name):
    assert constants(name) == expected(name)
    assert len(constants(name)) >= 10


def test_every_kernel_is_looked_at():
    assert set(KERNELS) == set(OTHERS)
    assert len(KERNELS) == 9


@pytest.mark.parametrize("name", KERNELS)
def test_every_constant_is_used(name):
    assert set(constants(name)) - set(uses(name)) <= {"EXIT_DONE"}


@pytest.mark.parametrize("name", KERNELS)
def test_every_exit_is_given_by_its_name(name):
    values = [node.value for node in ast.walk(tree(name)) if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "rc"]
    given = [part for value in values for part in ([value.body, value.orelse] if isinstance(value, ast.IfExp) else [value])]
    assert given
    assert {part.value for part in given if isinstance(part, ast.Constant)} <= {0}, "an exit without a name"
    assert set(kernel(name).EXITS[1:]) == {used[5:].lower() for used in uses(name) if used.startswith("EXIT_")} - {"done"}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_writes_what_is_not_marked_as_read_only(name):
    text = source(name)
    marked = set(re.findall(r'^    "(\w+)",  # !', text[: text.index("\n)\n", text.index("FIELDS = ("))], flags=re.MULTILINE))
    fields = set(kernel(name).FIELDS)
    assert marked
    assert marked < fields
    assert places(name, ast.Store) == fields - marked
    assert places(name, ast.Load) >= marked


@pytest.mark.parametrize("name", KERNELS)
def test_the_look_finds_a_wrong_constant(name, monkeypatch):
    """Each constant, one more than it is, is found."""
    wanted = expected(name)
    for module in modules(name):
        own = {key: value for key, value in constants(name).items() if hasattr(module, key)}
        with monkeypatch.context() as patch:
            for key, value in own.items():
                patch.setattr(module, key, value + 1)
            found = constants(name)
        assert [key for key in own if found[key] == wanted[key]] == []


def test_consumption_is_numbered_as_the_kernels_compare_it():
    assert base.CONSUME == {Consumption.NONE: 0, Consumption.PARTITION: 1, Consumption.ANY: 2}
    for name in set(KERNELS) - {"track", "preferred"}:
        compared = [
            node.comparators[0].value
            for node in ast.walk(tree(name))
            if isinstance(node, ast.Compare) and getattr(node.left, "id", None) == "consume"
        ]
        assert set(compared) == {0, 2}, name
