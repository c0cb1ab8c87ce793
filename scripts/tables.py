"""Write src/cepheid/language/grammar.tables anew: after a change of the grammar, or of the version of lark in requirements/dev.txt."""

from __future__ import annotations

from pathlib import Path

from cepheid.language import tables

Path(tables.__file__).with_name(tables.FILE).write_bytes(tables.packed())
