"""`cepheid.records.record` makes what `dataclasses.dataclass(frozen=True)` makes."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from cepheid.records import names_of, record

if TYPE_CHECKING:
    from collections.abc import Callable

NOT_A_NUMBER = float("nan")


def classes(made: Callable[[type], type], inherited: Callable[[type], type]) -> dict[str, type]:
    """The same classes, made in one of the two ways."""

    @made
    class Base:
        """With what fields can say."""

        first: int
        span: int = dataclasses.field(default=7, compare=False, repr=False, kw_only=True)

    @made
    class Heir(Base):
        """Its fields come behind those of the class before it, but for keywords."""

        second: Any = "two"
        items: list[int] = dataclasses.field(default_factory=list, hash=False)
        known: bool = dataclasses.field(default=False, kw_only=True)

    @made
    class Nothing:
        """No fields."""

    @made
    class Checked:
        """Its own text, hash and check."""

        one: int

        def __post_init__(self) -> None:
            if self.one < 0:
                raise ValueError("negative")

        def __repr__(self) -> str:
            return f"<{self.one}>"

        def __hash__(self) -> int:
            return 5

    @inherited
    class Cached:
        """Has a property that is kept, and a field that is set later."""

        one: int
        unset: str = dataclasses.field(init=False, repr=False, compare=False)

        @functools.cached_property
        def more(self) -> int:
            return self.one + 1

    return {kind.__name__: kind for kind in (Base, Heir, Nothing, Checked, Cached)}


RECORDS = classes(record, record(slots=False))
PLAIN = classes(dataclasses.dataclass(frozen=True, slots=True), dataclasses.dataclass(frozen=True))
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Base", (1,), {}),
    ("Base", (1,), {"span": 2}),
    ("Base", (2,), {}),
    ("Base", (NOT_A_NUMBER,), {}),
    ("Heir", (1,), {}),
    ("Heir", (1, 2, [3]), {"known": True, "span": 9}),
    ("Heir", (1,), {"second": (1, 2)}),
    ("Nothing", (), {}),
    ("Checked", (3,), {}),
    ("Cached", (3,), {}),
]


@pytest.mark.parametrize("name", PLAIN)
def test_class(name: str) -> None:
    made, plain = RECORDS[name], PLAIN[name]
    assert str(inspect.signature(made)) == str(inspect.signature(plain))
    assert made.__match_args__ == plain.__match_args__  # type: ignore[attr-defined]
    assert made.__doc__ == plain.__doc__
    assert hasattr(made, "__slots__") == hasattr(plain, "__slots__")
    assert [(field.name, field.default, field.kw_only) for field in dataclasses.fields(made)] == [
        (field.name, field.default, field.kw_only) for field in dataclasses.fields(plain)
    ]
    assert made.__init__.__qualname__ == plain.__init__.__qualname__  # type: ignore[misc]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_objects(call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    name, args, keywords = call
    made, plain = RECORDS[name](*args, **keywords), PLAIN[name](*args, **keywords)
    assert repr(made) == repr(plain)
    assert hash(made) == hash(plain)
    assert [repr(getattr(made, name, None)) for name in names_of(type(made))] == [
        repr(getattr(plain, name, None)) for name in names_of(type(plain))
    ]
    for other, given, named in CALLS:
        assert (made == RECORDS[other](*given, **named)) == (plain == PLAIN[other](*given, **named))
    assert made != plain
    assert copy.copy(made) == made
    assert repr(copy.deepcopy(made)) == repr(made)
    for field in dataclasses.fields(made):
        if field.init:
            assert repr(dataclasses.replace(made, **{field.name: 8})) == repr(dataclasses.replace(plain, **{field.name: 8}))
        for one in (made, plain):
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{field.name}'"):
                setattr(one, field.name, 1)
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{field.name}'"):
                delattr(one, field.name)


@pytest.mark.parametrize(("name", "args"), [("Base", ()), ("Base", (1, 2)), ("Checked", (-1,))])
def test_errors(name: str, args: tuple[int, ...]) -> None:
    said = []
    for kinds in (RECORDS, PLAIN):
        with pytest.raises((TypeError, ValueError)) as error:
            kinds[name](*args)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_properties_are_kept() -> None:
    one = RECORDS["Cached"](1)
    assert one.more == 2
    assert vars(one) == {"one": 1, "more": 2}


def test_each_object_has_a_list_of_its_own() -> None:
    assert RECORDS["Heir"](1).items is not RECORDS["Heir"](1).items


def test_identity() -> None:
    @record(eq=False)
    class Thing:
        one: int

    assert Thing(1) != Thing(1)
    assert len({Thing(1), Thing(1)}) == 2


@record
class Stored:
    """Found by pickle."""

    one: int
    two: str = dataclasses.field(default="2", kw_only=True)


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Stored(1, two="b"))) == Stored(1, two="b")
    match Stored(4):
        case Stored(one):
            assert one == 4
