"""The types of columns that the engine works with, and the type that values of two types have in common."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.letters.values import plain
from cepheid.errors import LimitError, SchemaError

MAX_LEVELS = 60
"""Levels of an attribute's type: snapshots and Arrow's C interface hold 62, and matches put events two levels deeper."""


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in types that Arrow puts together from any batches, at any depth: see `_taken`.

    Raises LimitError for an attribute that nests deeper than `MAX_LEVELS`.
    """
    for field in schema:
        _check_levels(field)
    return pa.schema([field.with_type(_taken(field.type)) for field in schema], schema.metadata)


def without_views(events: pa.Table | pa.RecordBatchReader) -> pa.Table | pa.RecordBatchReader:
    """The events in `plain_schema`; a reader stays unread."""
    schema = plain_schema(events.schema)
    if schema == events.schema:
        return events
    if not any(pa.types.is_run_end_encoded(kind) for kind in events.schema.types):
        return events.cast(schema)
    if isinstance(events, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, (_decoded(batch, schema) for batch in events))
    return pa.Table.from_batches([_decoded(batch, schema) for batch in events.to_batches()], schema)


def _decoded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [plain(column) if pa.types.is_run_end_encoded(column.type) else column for column in batch.columns]
    return pa.record_batch([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema)


def _check_levels(field: pa.Field) -> None:
    kinds = [field.type]
    for _ in range(MAX_LEVELS + 1):
        kinds = [kind.field(index).type for kind in kinds for index in range(kind.num_fields)]
        if not kinds:
            return
    raise LimitError(f"`{field.name}` nests deeper than {MAX_LEVELS} levels (MAX_LEVELS)", help="flatten it, or give it as text")


def _taken(kind: pa.DataType) -> pa.DataType:
    """The type that stands for `kind` where Arrow has to copy it.

    Values for runs, large strings and binaries for views: Arrow's take has neither. Dictionaries have indices of 32 bits or more: two batches
    together have more values than each of them.
    """
    if pa.types.is_run_end_encoded(kind):
        return _taken(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        index = kind.index_type if kind.index_type.bit_width >= 32 else pa.int32()
        return pa.dictionary(index, _taken(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_taken(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_taken(kind.key_type), kind.item_field.with_type(_taken(kind.item_type)), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_taken(kind.value_type)), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field.with_type(_taken(kind.value_type))
        return pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
    return kind


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type that the values of both have where streams are merged: Arrow's permissive promotion; None where they do not go together.

    Of integers and decimals it is the decimal with room for both, which Arrow makes too narrow; of decimals and floats double.
    """
    if _zone(first) != _zone(second):
        return None
    decimal, other = (first, second) if pa.types.is_decimal(first) else (second, first)
    if pa.types.is_decimal(decimal) and pa.types.is_integer(other):
        digits = {8: 3, 16: 5, 32: 10, 64: 19}[other.bit_width] + (other == pa.uint64())
        precision = max(decimal.precision - decimal.scale, digits) + decimal.scale
        return (
            pa.decimal128(precision, decimal.scale)
            if precision <= 38
            else pa.decimal256(precision, decimal.scale)
            if precision <= 76
            else None
        )
    if pa.types.is_decimal(decimal) and pa.types.is_floating(other):
        return pa.float64()
    try:
        return pa.unify_schemas([pa.schema([("x", first)]), pa.schema([("x", second)])], promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None


def united(first: pa.Schema, second: pa.Schema, where: str) -> pa.Schema:
    """The attributes of both, in the types that values of both have; where: what the second are of. Raises SchemaError where there is none."""
    if not len(first):
        return second
    fields = {field.name: field for field in first}
    for field in second:
        known = fields.setdefault(field.name, field)
        both = known.type if known.type == field.type else common_type(known.type, field.type)
        if both is None:
            fact = f"`{field.name}` is {field.type} in {where}, and {known.type} in the files of its stream before"
            raise SchemaError(fact, help="give it one type, or name each file: first=PATH second=PATH")
        fields[field.name] = known.with_type(both)
    return pa.schema(list(fields.values()))
