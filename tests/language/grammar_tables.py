"""scripts/tables.py, which compiles grammar.lark with lark, as a module of the tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def _script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts/tables.py"
    spec = importlib.util.spec_from_file_location("scripts_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


script = _script()
