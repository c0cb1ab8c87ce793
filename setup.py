"""Build the compiled kernel; everything else about the package stands in pyproject.toml.

The kernels are written in Cython's pure Python mode: the same files run uncompiled. So compilation is optional, and
a machine without Cython or a C compiler gets a pure install and a warning.

Environment:
    CEPHEID_REQUIRE_COMPILED=1  a kernel that does not compile is an error (developers, CI)
    CEPHEID_BUILD_CHECKED=1     also build `cepheid.kernel._checked_*`, the same sources with bounds checks (developers)
    CEPHEID_COMPILED=FOLDER     take the extensions in this folder where they were compiled from the same sources, and compile nothing (CI)
    CEPHEID_SANITIZE=1          build with the compiler's address and undefined-behaviour sanitizers (`make sanitize`; GCC or Clang)

Cython reads a copy of each kernel (`translated_twin`): there the constants that a kernel names under `if not cython.compiled:` are
constants of C, and what it imports from files as `_blocks.py` stands there as source (`whole`). So both are written once, cost nothing, and are
checked in the checked twin. A kernel that has a function `run` also gets a class `Bound` there, for calls one after the other (`bound_class`).

Next to the extensions the build writes `cepheid/kernel/_source_hash.py` with `HASH`, the SHA-256 of the sources that
were compiled. It is in a wheel exactly if the extensions are, and tells stale extensions from current ones.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNEL_FOLDER = Path("src/cepheid/kernel")
GENERATED_FOLDER = Path("build/cython")
REQUIRE_COMPILED = os.environ.get("CEPHEID_REQUIRE_COMPILED") == "1"
COMPILED = os.environ.get("CEPHEID_COMPILED")
BUILD_CHECKED = os.environ.get("CEPHEID_BUILD_CHECKED") == "1"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if os.environ.get("CEPHEID_SANITIZE") == "1" else []

# One wheel for all supported versions. The free-threaded build of CPython has no stable interface yet.
STABLE_INTERFACE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
SHARED = re.compile(r"^from cepheid\.kernel\.(_\w+) import (?:\([^)]*\)|[^\n(]*)\n", re.MULTILINE)
RUN = re.compile(r"^def run\(", re.MULTILINE)
UNCHECKED = re.compile(r"\b(boundscheck|initializedcheck)(\s*[(=]\s*)False")


def kernel_sources() -> list[Path]:
    return sorted(KERNEL_FOLDER.glob("[!_]*.py"))


def source_hash() -> str:
    """As `cepheid.kernel.source_hash`."""
    sources = sorted(path for path in KERNEL_FOLDER.glob("*.py") if path.name not in {"__init__.py", "_source_hash.py"})
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def warn(reason: str) -> None:
    line = "*" * 100
    print(
        f"{line}\ncepheid: the kernel is NOT compiled: {reason}\n"
        f"cepheid: everything works, about 100 times slower. Install a C compiler and install again.\n{line}",
        file=sys.stderr,
        flush=True,
    )


def constants(text: str) -> dict[str, int]:
    """The numbers that a kernel's source names under `if not cython.compiled:`."""
    found: dict[str, int] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "not cython.compiled":
            exec(compile(ast.Module(statement.body, []), "constants", "exec"), {"range": range, "__builtins__": {}}, found)  # noqa: S102 - our own file
    return found


def whole(text: str, there: set[str]) -> str:
    """A kernel's source, where what it imports from other files of the package stands as source: each file once, before what needs it."""

    def shared(line: re.Match[str]) -> str:
        if line[1] in there:
            return ""
        there.add(line[1])
        source = (KERNEL_FOLDER / f"{line[1]}.py").read_text(encoding="utf-8")
        return whole(source.split("    from cepheid.kernel import _no_cython as cython\n")[1], there)

    return SHARED.sub(shared, text)


def bound_class(text: str) -> str:
    """A class whose instances call a kernel's `run` with a tuple of arrays, and take anew only those that are not the ones of the call before.

    PERF: to take an array costs 0.4 us, and `run` has up to 36; few of them are new in a call.
    """
    (run,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "run")
    names = [argument.arg for argument in run.args.args]
    # Nothing is held while arrays are taken: where one of them is refused, the next call takes all.
    lines = [
        "@cython.cclass",
        "class Bound:",
        "    held: tuple",
        *(f"    the_{argument.arg}: {ast.unparse(argument.annotation)}" for argument in run.args.args if argument.annotation is not None),
        "    def __call__(self, arrays: tuple):",
        "        held: tuple = self.held",
        "        self.held = None",
        f"        if len(arrays) != {len(names)}:",
        f"            raise TypeError(f'run takes {len(names)} arrays, not {{len(arrays)}}')",
    ]
    for place, name in enumerate(names):
        lines += [f"        if held is None or held[{place}] is not arrays[{place}]:", f"            self.the_{name} = arrays[{place}]"]
    return "\n".join([*lines, "        self.held = arrays", f"        return run({', '.join(f'self.the_{name}' for name in names)})", ""])


def translated_twin(source: Path, *, checked: bool = False) -> Path:
    """Write what Cython translates: a kernel's source, with bounds checks switched on if so asked, and its constants as an enum of C beside it."""
    twin = GENERATED_FOLDER / f"cepheid/kernel/{'_checked_' * checked}{source.name}"
    twin.parent.mkdir(parents=True, exist_ok=True)
    text = whole(source.read_text(encoding="utf-8"), set())
    if checked:
        text, replaced = UNCHECKED.subn(r"\1\2True", text)
        if not replaced:
            raise SystemExit(f"{source}: no boundscheck(False) to switch on: the checked twin would be no different")
    if RUN.search(text):
        text = RUN.sub("@cython.ccall\ndef run(", text) + bound_class(text)
    twin.write_text(text, encoding="utf-8")
    lines = ["cdef enum:", *(f"    {name} = {value}" for name, value in constants(text).items())]
    twin.with_suffix(".pxd").write_text("\n".join(lines if len(lines) > 1 else ()) + "\n", encoding="utf-8")
    return twin


FAST = ["-O3", "--param=large-function-growth=2000", "--param=large-stack-frame-growth=20000"]
"""PERF: without the limits of GCC a function that is called once stands in a kernel's loop, however long that is: a V of three 1.25 times faster.
Clang takes them, and says that it does nothing with them."""


def extension(module: str, source: Path) -> Extension:
    optimized = ["-O1"] if module.startswith("_checked_") else FAST  # what only tests run is compiled in half the time
    return Extension(
        f"cepheid.kernel.{module}",
        [source.as_posix()],
        extra_compile_args=["-O1", "-g", *SANITIZERS] if SANITIZERS else [] if sys.platform == "win32" else [*optimized, "-g0"],
        extra_link_args=SANITIZERS,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE_INTERFACE else [],
        py_limited_api=STABLE_INTERFACE,
    )


def extensions() -> list[Extension]:
    sources = kernel_sources()
    if sources and importlib.util.find_spec("Cython") is None:
        if REQUIRE_COMPILED:
            raise SystemExit("CEPHEID_REQUIRE_COMPILED=1, and Cython is not installed")
        warn("Cython is not installed")
        return []
    modules = [extension(source.stem, translated_twin(source)) for source in sources]
    if BUILD_CHECKED:
        modules += [extension(f"_checked_{source.stem}", translated_twin(source, checked=True)) for source in sources]
    return modules


def translate(modules: list[Extension]) -> None:
    """Replace each extension's Python source by the C that Cython makes of it."""
    from Cython.Build import cythonize

    translated = cythonize(
        [Extension(module.name, list(module.sources)) for module in modules],
        include_path=[GENERATED_FOLDER.as_posix()],  # where the constants are
        compiler_directives={"language_level": 3},
        force=True,  # Cython compares times, and a checkout can make an older file the newer one
        nthreads=(os.cpu_count() or 0) if sys.platform == "linux" else 0,  # processes; elsewhere these would begin with this file again
    )
    for module, result in zip(modules, translated, strict=True):
        module.sources = result.sources


class BuildKernel(build_ext):
    """Compile, or warn and go on; then say which source was compiled."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()  # compilers, each in a process of its own

    def run(self) -> None:
        self.forget()
        try:
            if COMPILED:
                self.take(Path(COMPILED))
            else:
                translate(self.extensions)
                super().run()
        except Exception as error:
            if REQUIRE_COMPILED:
                raise
            self.forget()
            self.extensions = []
            warn(str(error))
            return
        if self.extensions:
            self.hash_file().write_text(
                f'"""Generated by the build: which source was compiled."""\n\nHASH = "{source_hash()}"\n',
                encoding="utf-8",
            )

    def take(self, folder: Path) -> None:
        """Copy the extensions of an earlier build of the same sources."""
        if f'"{source_hash()}"' not in (folder / "_source_hash.py").read_text(encoding="utf-8"):
            raise SystemExit(f"CEPHEID_COMPILED={folder}: what is there was compiled from other sources")
        for module in self.extensions:
            target = Path(self.get_ext_fullpath(module.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(folder / target.name, target)

    def folder(self) -> Path:
        return KERNEL_FOLDER if self.inplace else Path(self.build_lib, "cepheid/kernel")

    def hash_file(self) -> Path:
        return self.folder() / "_source_hash.py"

    def forget(self) -> None:
        """Remove what an earlier build left: a failed build must not leave a stale extension behind."""
        stale = [path for suffix in (".so", ".pyd") for path in self.folder().glob(f"*{suffix}")]
        for path in [*stale, self.hash_file()]:
            path.unlink(missing_ok=True)

    def get_outputs(self) -> list[str]:
        outputs = super().get_outputs()
        return [*outputs, str(self.hash_file())] if self.extensions and not self.inplace else outputs


EXTENSIONS = extensions()
setup(
    ext_modules=EXTENSIONS,
    cmdclass={"build_ext": BuildKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if EXTENSIONS and STABLE_INTERFACE else {},
)
