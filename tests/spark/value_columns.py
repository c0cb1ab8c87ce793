"""The columns of values that guards read, as `batch.prepare` adds them, for tests that make the events of tasks themselves."""

import pyarrow as pa

from cepheid.engine.letters.encoded import Texts, travelling
from cepheid.spark.tasks.worker import value_column


def names_of(compiled):
    """The names, for each program: `Task.values`."""
    travel = compiled.valued and not compiled.lags and not compiled.positional
    return tuple(tuple(map(value_column, travelling(program.values))) for program in compiled.programs) if travel else ()


def columns_of(compiled, events):
    """The columns by name; events: a table."""
    (batch,) = pa.table(events.columns, schema=events.schema).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], events.schema)
    ]
    found = {}
    for names, reader in zip(names_of(compiled), compiled.readers(Texts()), strict=False):
        found |= dict(zip(names, reader.as_columns(batch), strict=True))
    return found
