"""The hot loops over flat arrays: letters come in, the positions and labels of matches go out.

`match.py` is one source for three variants: "compiled" (its extension module, in wheels), "python" (the same file run as it is) and "checked"
(compiled with bounds checks, in development builds only). What the kernel does is written in `match.py`; `cepheid.engine.evaluation`
drives it. This package imports nothing else of Cepheid, and knows no events, types or queries.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.kernel import match as _default

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

COMPILED: bool = bool(_default.COMPILED)
"""Whether the default kernel is compiled; the same file runs 60 to 110 times slower where it is not."""

NOT_COMPILED = "cepheid runs its uncompiled kernel, 60 to 110 times slower: install a wheel, or a C compiler and then cepheid again"
"""What the first evaluation warns of where the kernel is not compiled."""

VARIANTS = ("compiled", "python", "checked")
"""The ways to run the kernel's one source."""


@dataclass(frozen=True)
class Kernel:
    """One variant of the kernel.

    run, reach: the functions of `match.py`. plain: it is not compiled and wants memoryviews (six times faster there than numpy arrays).
    fields, record, exits: names of the places of the vector S, of the columns of `records`, and of the exit codes.
    """

    variant: str
    run: Callable[..., int]
    reach: Callable[..., None]
    plain: bool
    fields: tuple[str, ...]
    record: tuple[str, ...]
    exits: tuple[str, ...]


@lru_cache
def kernel(variant: str | None = None) -> Kernel:
    """The kernel in the variant asked for, or (None) in the best one installed.

    Raises ImportError if this installation has no such variant, ValueError if there is none of that name.
    """
    if variant is None:
        variant = "compiled" if COMPILED else "python"
        if not COMPILED:
            warnings.warn(NOT_COMPILED, RuntimeWarning, stacklevel=2)
    if variant not in VARIANTS:
        raise ValueError(f"no kernel variant {variant!r}: there are {', '.join(VARIANTS)}")
    module = _module(variant)
    return Kernel(variant, module.run, module.reach, not module.COMPILED, module.FIELDS, module.RECORD, module.EXITS)


def available() -> tuple[str, ...]:
    """The variants that this installation has."""
    checked = importlib.util.find_spec("cepheid.kernel._checked") is not None
    return tuple(v for v in VARIANTS if v == "python" or (COMPILED if v == "compiled" else checked))


def _module(variant: str) -> ModuleType:
    if variant == "checked":
        return importlib.import_module("cepheid.kernel._checked")
    if variant == "compiled":
        if not COMPILED:
            raise ImportError("the kernel of this installation is not compiled")
        return _default
    if not COMPILED:
        return _default
    # An extension module shadows the source it was built from: load the source under a name of its own.
    spec = importlib.util.spec_from_file_location("cepheid.kernel._uncompiled", Path(__file__).with_name("match.py"))
    if spec is None or spec.loader is None:
        raise ImportError("the kernel's source is not installed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
