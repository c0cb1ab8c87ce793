"""The hot loops over flat arrays: letters come in, the positions and labels of matches go out.

Each module that has no underscore is one source for three variants: "compiled" (its extension module, in wheels), "python" (the same file run
as it is) and "checked" (compiled with bounds checks, in development builds only). What a kernel does is written in its module (of `guards` in
its rooms too, `_guards_*`), what several kernels share in `_blocks` and `_numbers`; the evaluations of `cepheid.engine` drive them. This package
imports nothing else of Cepheid, and knows no events, types or queries.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.kernel import match as _default

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

COMPILED: bool = bool(_default.COMPILED)
"""Whether the default kernels are compiled; the same files run 60 to 110 times slower where they are not."""

NOT_COMPILED = "cepheid runs its uncompiled kernel, 60 to 110 times slower: install a wheel, or a C compiler and then cepheid again"
"""What the first evaluation warns of where the kernel is not compiled."""

VARIANTS = ("compiled", "python", "checked")
"""The ways to run a kernel's one source."""


@lru_cache
def kernel(name: str, variant: str | None = None) -> ModuleType:
    """A kernel's module in the variant asked for, or (None) in the best one installed.

    Its COMPILED says whether it is compiled; one that is not wants memoryviews (six times faster there than numpy arrays). Raises ImportError
    if this installation has no such variant, ValueError if there is none of that name.
    """
    if variant is None:
        variant = "compiled" if COMPILED else "python"
        if not COMPILED:
            warnings.warn(NOT_COMPILED, RuntimeWarning, stacklevel=2)
    if variant not in VARIANTS:
        raise ValueError(f"no kernel variant {variant!r}: there are {', '.join(VARIANTS)}")
    if variant == "checked":
        return importlib.import_module(f"cepheid.kernel._checked_{name}")
    module = importlib.import_module(f"cepheid.kernel.{name}")
    if variant == "compiled" and not module.COMPILED:
        raise ImportError("the kernel of this installation is not compiled")
    return module if bool(module.COMPILED) == (variant == "compiled") else _uncompiled(name)


def bound(module: ModuleType) -> Callable[[tuple[Any, ...]], int]:
    """A kernel's `run`, to be called again and again with a tuple of its arrays; it holds those of the last call.

    Compiled it is the class that the build writes (`setup.py`): of the arrays, which it knows by identity, it takes only those that are new.
    """
    if module.COMPILED:
        compiled: Callable[[tuple[Any, ...]], int] = module.Bound()
        return compiled
    return lambda arrays: module.run(*(array.data for array in arrays))


def _uncompiled(name: str) -> ModuleType:
    """An extension module shadows the source it was built from: load the source under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"cepheid.kernel._uncompiled_{name}", Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError("the kernel's source is not installed")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def available() -> tuple[str, ...]:
    """The variants that this installation has."""
    checked = importlib.util.find_spec("cepheid.kernel._checked_match") is not None
    return tuple(v for v in VARIANTS if v == "python" or (COMPILED if v == "compiled" else checked))


def source_hash() -> str:
    """SHA-256 over the kernels' sources that lie here, as the build writes it into `_source_hash.HASH`."""
    sources = sorted(path for path in Path(__file__).parent.glob("*.py") if path.name not in {"__init__.py", "_source_hash.py"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
