"""The papers' sets of variables, on the papers' formulas."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.language.syntax import Strategy
from cepheid.logical import variables
from cepheid.logical.plan import (
    All,
    And,
    Apply,
    Event,
    Field,
    Filter,
    Interval,
    Iterate,
    Link,
    Literal,
    Named,
    Optional,
    Or,
    Project,
    Select,
    Sequence,
    Unless,
    Within,
)


def field(variable, *, previous=False):
    return Field(variable, ("id",), pa.int64(), pa.int64(), previous)


def equal(left, right):
    return Apply("=", (field(left), field(right)), pa.bool_())


def local(variable):
    return Apply("<", (field(variable), Literal(40, pa.int64())), pa.bool_())


def rising(variable):
    return Apply(">", (field(variable), field(variable, previous=True)), pa.bool_())


def seq(*items, link=None):
    return Sequence(items, (link or Link(";"),) * (len(items) - 1))


def where(pattern, *conditions):
    return Filter(pattern, conditions)


T, H = Event("T"), Event("H")
Tx, Ty, Hx, Hy, Hz = Named(T, "x"), Named(T, "y"), Named(H, "x"), Named(H, "y"), Named(H, "z")
PHI_4 = where(seq(Hx, Iterate(where(Ty, equal("y", "x"))), Hz), local("x"), local("z"), equal("x", "z"))
PHI_5 = where(Hx, local("y"))
PHI_6 = seq(Tx, Or((where(Ty, local("x")), where(Hy, local("x")))))


def test_defined_and_hidden():
    pattern = Project(frozenset({"x"}), seq(Tx, Hy))
    assert variables.defined(pattern) == {"x"}
    assert variables.all_defined(pattern) == {"T", "x", "H", "y"}
    assert variables.defined(Event(None)) == {"ANY"}
    assert variables.defined(And((Tx, Ty))) == {"T", "x", "y"}


def test_negated_patterns_define_and_bind_nothing():
    pattern = Unless(seq(Tx, Hy, link=Link(";", without=Named(Event("N"), "n"))), Named(Event("Q"), "q"))
    assert variables.defined(pattern) == variables.all_defined(pattern) == variables.bound(pattern) == {"T", "x", "H", "y"}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Tx, {"T", "x"}),
        (where(Tx, local("x")), {"T", "x"}),
        (Or((Tx, Hx)), {"x"}),
        (Or((Tx, Hy)), set()),
        (Iterate(Tx), set()),
        (Named(Iterate(Tx), "run"), {"run"}),
        (Iterate(Tx, minimum=2), {"T", "x"}),
        (Iterate(Tx, minimum=1, maximum=3), {"T", "x"}),
        (seq(Tx, Hy), {"T", "x", "H", "y"}),
        (seq(Tx, Optional(Hy)), {"T", "x"}),
        (And((Tx, Ty)), {"T", "x", "y"}),
        (All((Tx, Hy)), {"T", "x", "H", "y"}),
        (Project(frozenset({"x"}), seq(Tx, Hy)), {"x"}),
        (Select(Strategy.NXT, Tx), {"T", "x"}),
        (Within(Tx, Interval(0, 5)), {"T", "x"}),
    ],
)
def test_bound(pattern, expected):
    assert variables.bound(pattern) == expected


def test_variables_outside_iterations():
    pattern = seq(Tx, Iterate(Hy))
    assert variables.named_outside_iterations(pattern) == {"x"}  # the paper's example
    assert variables.named(pattern) == {"x", "y"}
    assert variables.named_outside_iterations(Named(Iterate(H), "y")) == {"y"}


def test_types_of():
    pattern = seq(Or((Tx, Hx)), Named(Iterate(Event(None)), "y"))
    assert variables.types_by_variable(pattern) == {"x": {"T", "H"}, "y": {None}, "T": {"T"}, "H": {"H"}, "ANY": {None}}
    assert variables.types_by_variable(Project(frozenset({"y"}), pattern)) == {"y": {None}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Tx, {"T": (1, 1), "x": (1, 1)}),
        (Or((Tx, Hx)), {"T": (0, 1), "H": (0, 1), "x": (1, 1)}),
        (seq(Tx, Hx), {"T": (1, 1), "H": (1, 1), "x": (2, 2)}),
        (All((Tx, Hx)), {"T": (1, 1), "H": (1, 1), "x": (1, 2)}),
        (And((Tx, Ty)), {"T": (1, 1), "x": (0, 0), "y": (0, 0)}),
        (seq(Optional(Tx), H), {"T": (0, 1), "x": (0, 1), "H": (1, 1)}),
        (Iterate(Tx, minimum=2, maximum=3), {"T": (2, 3), "x": (2, 3)}),
        (Named(Iterate(T), "x"), {"T": (1, None), "x": (1, None)}),
        (Named(Project(frozenset(), T), "x"), {"x": (0, 0)}),
        (Named(Project(frozenset({"x"}), seq(Tx, H)), "y"), {"x": (1, 1), "y": (1, 1)}),
        (Iterate(Or((Tx, H))), {"T": (0, None), "x": (0, None), "H": (0, None)}),
    ],
)
def test_counts(pattern, expected):
    assert variables.variable_sizes(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (PHI_4, True),
        (PHI_5, False),
        (PHI_6, True),
        (seq(Iterate(where(Tx, equal("x", "y"))), Hy), True),  # register-match-automata, expression (3)
        (where(seq(Iterate(Tx), Hy), equal("x", "y")), True),  # expression (2): x is visible in the filtered pattern (rule 1)
        (seq(Select(Strategy.NXT, where(Tx, equal("x", "y"))), Hy), False),
        (Unless(Hy, where(Tx, equal("x", "y"))), False),
        (seq(Hy, T, link=Link(";", without=where(Tx, equal("x", "y")))), False),
        (Iterate(where(Tx, rising("x"))), True),
        (where(Tx, rising("x")), False),
        (where(Iterate(Tx), rising("x")), False),
        (Iterate(Select(Strategy.LAST, where(Tx, rising("x")))), False),
        (Iterate(seq(Tx, where(Hy, Apply("=", (field("y"), field("x", previous=True)), pa.bool_())))), True),
    ],
)
def test_well_formed(pattern, expected):
    assert variables.well_formed(pattern) is expected


def test_free_conditions_of_a_part():
    part = Iterate(where(Ty, equal("y", "x")))
    (free,) = variables.free_conditions(part)
    assert free.free() == {"x"}
    assert free.binder("x") is None
    assert free.binder("y") == Ty


def test_the_nearest_prefix_binds():
    pattern = seq(where(T, local("x")), Hx, Event("A"), Tx)
    (found,) = variables.scoped_conditions(pattern)
    assert found.binder("x") == variables.prefix(pattern, 2)
    later = seq(where(T, local("x")), Event("A"), Or((Tx, Hy)), Hx)
    (found,) = variables.scoped_conditions(later)
    assert found.binder("x") == later


def test_prev_means_the_innermost_iteration_that_defines_the_variable():
    inner = Iterate(where(Ty, rising("y")))
    outer = Iterate(seq(Tx, inner))
    (found,) = variables.scoped_conditions(outer)
    assert found.iteration("y") == inner
    assert found.iteration("x") == outer
    assert found.iteration("z") is None


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (seq(Tx, Named(T, "x")), False),
        (seq(T, T), True),
        (seq(Tx, Iterate(Hx)), True),
        (seq(Tx, seq(Hy, Or((Hx, Hz)))), False),
        (Or((Tx, Hx)), True),
        (PHI_4, True),
        (PHI_6, True),
    ],
)
def test_safe(pattern, expected):
    assert variables.safe(pattern) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (where(seq(where(Tx, local("x")), where(Hy, local("y"))), equal("x", "y")), True),
        (where(seq(Iterate(Tx), Hy), equal("x", "y")), False),
        (seq(Iterate(where(Tx, equal("x", "y"))), Hy), False),
        (where(Or((Tx, Hy)), local("x")), False),
        (seq(Tx, Hx), False),
        (seq(T, T), True),
        (Iterate(where(Tx, rising("x"))), False),
    ],
)
def test_bounded(pattern, expected):
    assert variables.bounded(pattern) is expected


def test_long_sequences_stay_fast():
    pattern = seq(*(where(Named(T, f"x{i}"), local(f"x{i}")) for i in range(1000)))
    assert variables.well_formed(pattern)
    assert variables.safe(pattern)


def test_free_conditions_in_long_sequences_stay_fast():
    pattern = seq(*(where(T, local("z")) for _ in range(1500)), Named(T, "z"))
    assert variables.well_formed(pattern)
