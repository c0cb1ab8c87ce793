"""Immutable classes of fields: `@record` is `dataclasses.dataclass(frozen=True, slots=True)`, made in a third of the time.

Up to Python 3.12 `dataclass` compiles six methods of each class from text, one after the other. That takes a millisecond for each class, and a first
query loads 200 of them. Here only `__init__` is compiled, and the other methods are closures over the names of the fields. Fields, `replace`,
patterns of `match`, equality, hashes, texts, pickles and errors are those of dataclasses (tests/test_records.py compares the two); a field with
`init=False` has no default.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    T = TypeVar("T")


class _Factory:
    """The default of an argument whose default value is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, slots: bool = True, eq: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[Any] | None = None, /, *, slots: bool = True, eq: bool = True) -> Any:
    """The class as an immutable record of its annotated fields.

    slots: whether its objects have no other attributes; False for classes that cache properties. eq: whether objects are equal, and have one hash,
    if their fields are and have; else only an object and itself are. Records inherit from records. Methods that a class writes itself stay.
    """

    def made(plain: type[Any]) -> type[Any]:
        own = {name for name in ("__repr__", "__eq__", "__hash__", "__init__") if plain.__dict__.get(name) is not None}
        kind = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(plain)
        fields = dataclasses.fields(kind)
        if "__init__" not in own:
            _put(kind, "__init__", _init(kind, fields))
        if "__repr__" not in own:
            _put(kind, "__repr__", _repr([field.name for field in fields if field.repr]))
        if eq and "__eq__" not in own:
            _put(kind, "__eq__", _eq(_values([field.name for field in fields if field.compare])))
        if eq and "__hash__" not in own:
            _put(
                kind, "__hash__", _hash(_values([field.name for field in fields if (field.compare if field.hash is None else field.hash)]))
            )
        _freeze(kind, frozenset(field.name for field in fields))
        if slots:
            kind.__getstate__, kind.__setstate__ = _state, _set_state  # type: ignore[assignment]
        return kind

    return made if cls is None else made(cls)


def names_of(kind: type[Any], *, compared: bool = False) -> tuple[str, ...]:
    """The names of the fields of a class of records, in order; compared: of those alone that equality looks at."""
    found = _NAMES.get((kind, compared))
    if found is None:
        found = _NAMES[kind, compared] = tuple(field.name for field in dataclasses.fields(kind) if field.compare or not compared)
    return found


_NAMES: dict[tuple[type[Any], bool], tuple[str, ...]] = {}


def _put(kind: type[Any], name: str, method: Callable[..., Any]) -> None:
    method.__qualname__ = f"{kind.__qualname__}.{name}"
    setattr(kind, name, method)


def _init(kind: type[Any], fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """`__init__`, compiled: its arguments have the names of the fields."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    arguments, keywords, body = ["self"], list[str](), list[str]()
    for field in fields:
        if not field.init:  # it has no default either
            continue
        name, value = field.name, field.name
        default = ""
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            default, value = "=_factory", f"_make_{name}() if {name} is _factory else {name}"
        (keywords if field.kw_only else arguments).append(name + default)
        body.append(f" _set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        body.append(" self.__post_init__()")
    inside = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({inside}):\n" + ("\n".join(body) or " pass"), known)  # noqa: S102 - the names of fields, which are Python's own
    init: Callable[..., None] = known["__init__"]
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The tuple of these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    value = attrgetter(*names)
    return lambda self: (value(self),)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _freeze(kind: type[Any], names: frozenset[str]) -> None:
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    _put(kind, "__setattr__", __setattr__)
    _put(kind, "__delattr__", __delattr__)


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in names_of(self.__class__)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for name, value in zip(names_of(self.__class__), state, strict=True):
        object.__setattr__(self, name, value)
