"""Generated detectors are the detector: the Python form event by event, the C form beside the Python form, and what neither can do is an error."""

from __future__ import annotations

import ast
import importlib
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import or_

import pytest
from enough import Enough
from random_expressions import OPERATORS, random_expression, random_length

from cepheid.algebra import Detector, Primitive, Rate, Restriction, Sequence, memory
from cepheid.algebra.generate import unrolled
from cepheid.algebra.generate_c import MOST_BYTES, generate_c
from cepheid.algebra.generate_python import generate_python
from cepheid.errors import InputError, LimitError

PYTHON_FORM = importlib.import_module("cepheid.algebra.generate_python")  # the package may have the function by this name

A, B, C, D = map(Primitive, "ABCD")
INTRODUCTORY = (B >> B).within(time=2) - (Primitive("P") | Primitive("T"))  # event-algebra, Example 1.2
PRIMITIVES = (
    A,
    B,
    C,
    D,
    Primitive("A", frozenset("x")),
    Primitive("B", frozenset("xy")),
    Primitive("D", frozenset("xA")),
    Primitive("C", frozenset()),
)
RATES = (Rate(1), Rate(2), Rate(3, 2), Rate(1, 3), Rate(7, 4))

ODD = ("", " ", "a b", "a_b", "a-b", "int", "it's", 'say "no"', '"""', "*/", "/*", "/*/", "//", "??/", "new\nline", "\\", "end\\", "%s{x}{}", "ünïcode", "\x00", "\ud800")  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ expressions and streams


def some_length(rng, least=0):
    return random_length(rng, range(least, 8), range(least, 8))


def some_expression(rng):
    return random_expression(rng, 4, PRIMITIVES, length=some_length, repeated=0.15)


def bounded_expression(rng, rate, *, promised):
    """One with rings of static size at a rate. promised: some ring relies on the rate; else none does."""
    while True:
        found = Restriction(some_expression(rng), some_length(rng, 1))
        steps = unrolled(found, rate).steps
        rings = [step for step in steps if isinstance(step.expression, Sequence) and not step.single]
        if rings and memory(found, rate=rate).bounded and any(step.promised for step in rings) == promised:
            return found


def names_of(expression):
    return sorted({node.name for node in expression.walk() if isinstance(node, Primitive)})


def random_events(rng, expression, rate, length=60):
    """(event, time, names): times that ascend, no more often than at the rate."""
    times = []
    for _ in range(length):
        least = times[-1] if times else rng.randrange(-5, 5)
        if rate is not None and len(times) >= rate.events:
            least = max(least, times[-rate.events] + rate.time)
        times.append(least + rng.choice((0, 0, 0, 1, 1, 2, 5)))
    share = rng.choice((0.15, 0.3, 0.6))
    return [(100 + n, time, {name for name in names_of(expression) if rng.random() < share}) for n, time in enumerate(times)]


def disturbed(rng, expression):
    """One that promises nothing: now and then time descends."""
    return [(event, time - rng.choice((*[0] * 15, 1, 4)), names) for event, time, names in random_events(rng, expression, None)]


def breaks(times, rate):
    """Whether more events come than the rate promises, by its definition."""
    return any(sum(begin <= time < begin + rate.time for time in times) > rate.events for begin in times)


def plain(found):
    return None if found is None else (found.start, found.end, found.start_time, found.end_time, found.marks)


def pushed(detector, event, time, names):
    """What is found, and the error where the event is refused."""
    try:
        return plain(detector.push(event, time, names)), None
    except ValueError as error:
        return None, error


def state(generated):
    """All that a generated detector holds."""
    held = [getattr(generated, name) for name in generated.__slots__]
    return [list(each) if isinstance(each, list) else each for each in held]


def loaded(source):
    """What the file defines, executed where nothing else is."""
    assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    namespace = {"__name__": "generated"}
    exec(compile(source, "generated.py", "exec"), namespace)
    return namespace


CONTAINERS = (set, frozenset, list, tuple, iter, dict.fromkeys)


def odd_expression():
    """Each odd name in a match, two by two."""
    parts = [Primitive(name) for name in ODD]
    return reduce(or_, (one >> other for one, other in pairwise(parts)))


# ------------------------------------------------------------------------------------------------------------ Python


@pytest.mark.parametrize("preallocated", [PYTHON_FORM.PREALLOCATED, 0], ids=["rings", "lists"])
def test_python_is_the_detector(cases, seed, monkeypatch, preallocated):
    monkeypatch.setattr(PYTHON_FORM, "PREALLOCATED", preallocated)
    rng = random.Random(f"{seed} python")
    drawn = Enough(cases, found=20, bounded=1, unbounded=1, **{kind.__name__: 1 for kind in (Primitive, *OPERATORS)})
    for case in drawn:
        rate = rng.choice((None, *RATES))
        expression = some_expression(rng)
        drawn.seen.update(type(node).__name__ for node in expression.walk())
        drawn.seen["bounded" if memory(expression, rate=rate).bounded else "unbounded"] += 1
        generated, detector = loaded(generate_python(expression, rate=rate))["Detector"](), Detector(expression)
        for event, time, names in random_events(rng, expression, rate):
            want = plain(detector.push(event, time, names))
            assert plain(generated.push(event, time, rng.choice(CONTAINERS)(names))) == want, (case, str(expression), event)
            drawn.seen["found"] += want is not None


@pytest.mark.parametrize("preallocated", [PYTHON_FORM.PREALLOCATED, 0], ids=["rings", "lists"])
def test_an_event_that_is_refused_has_not_been_read(cases, seed, monkeypatch, preallocated):
    monkeypatch.setattr(PYTHON_FORM, "PREALLOCATED", preallocated)
    rng = random.Random(f"{seed} refused")
    refused = {"RateError": 0, "ValueError": 0}
    for _ in range(max(10, cases // 4)):
        rate = rng.choice(RATES)
        expression = bounded_expression(rng, rate, promised=True)
        namespace = loaded(generate_python(expression, rate=rate))
        generated, detector = namespace["Detector"](), Detector(expression)
        times = []
        for event, time, names in disturbed(rng, expression):
            before = state(generated)
            got, error = pushed(generated, event, time, names)
            if error is not None:
                assert state(generated) == before
                refused[type(error).__name__] += 1
                said = str(error)
                assert f"position {len(times)}" in said
                if type(error) is ValueError:
                    assert f"time descends from {times[-1]} to {time}" in said
                    assert time < times[-1]
                else:
                    assert f"at most {rate.events} events in any {rate.time} steps" in said
                    assert breaks([*times, time], rate)
                continue
            times.append(time)
            assert got == plain(detector.push(event, time, names)), (str(expression), rate, event)
    assert min(refused.values()) > 0, refused


def test_rings_have_the_places_that_memory_promises():
    expression, rate = (A >> (B + C)).within(time=4) | ((B >> (A + C)).within(events=6) - (A >> (B >> C))), Rate(3, 2)
    held = memory(expression, rate=rate).sequences
    sizes = [int(size) for size in re.findall(r"\[None\] \* (\d+)", generate_python(expression, rate=rate))]
    assert sizes == [each.instances for each in held if each.sequence.length.events != 0]
    assert sizes == [9, 7, 7]
    assert "[None]" not in generate_python((A >> (B + C)).within(time=4))


def test_a_ring_that_its_bound_in_events_does_not_keep_is_checked():
    """Two places by the rate, three by the bound in events: that one more would do for the bound does not help."""
    namespace = loaded(generate_python((A >> (B + C)).within(time=1, events=2), rate=Rate(1)))
    detector = namespace["Detector"]()
    assert [detector.push(n, 0, "A") for n in range(2)] == [None, None]
    with pytest.raises(namespace["RateError"], match=r"at most 1 events in any 1 steps .* no place for the event at position 2, time 0"):
        detector.push(2, 0, "A")
    assert "RateError" not in generate_python((A >> (B + C)).within(time=2, events=2), rate=Rate(1))


def test_equal_sub_expressions_are_one_step():
    part = (A >> (B + C)).within(time=4)
    one, two = unrolled(part, None), unrolled((part - D) | ((part >> D) + part), None)
    assert len(two.steps) == len(one.steps) + 5
    assert generate_python((part - D) | ((part >> D) + part)).count("= []") == 1


def test_events_of_what_only_negates_are_not_held():
    source = generate_python((A >> B).within(events=9) - (C >> D))
    assert source.count(", event, (") == 2
    assert "_held_1_t left" not in generate_c(A - (C + D))
    assert "_held_0_t left" in generate_c(A - (C + D))


def test_the_python_file_alone(tmp_path):
    """No site packages, no environment: the file, and three lines that use it."""
    path = tmp_path / "generated.py"
    path.write_text(generate_python(INTRODUCTORY, rate=Rate(1)), encoding="ascii")
    script = f"""
import runpy, sys
detector = runpy.run_path({str(path)!r})["Detector"]()
for time, name in enumerate("BPBTBBAB"):
    found = detector.push(f"event {{time}}", time, {{name}})
    if found is not None:
        print(found)
assert "cepheid" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Detected(4, 5, 4, 5, ((4, 'event 4', 'B'), (5, 'event 5', 'B')))",
        "Detected(5, 7, 5, 7, ((5, 'event 5', 'B'), (7, 'event 7', 'B')))",
    ]


def test_the_docstring_says_what_and_how_much():
    said = ast.get_docstring(ast.parse(generate_python(INTRODUCTORY, rate=Rate(1))))
    assert said.startswith(f"Detects {INTRODUCTORY}\n")
    assert str(memory(INTRODUCTORY, rate=Rate(1))) in said
    assert "Generated by Cepheid" in said
    unbounded = ast.get_docstring(ast.parse(generate_python(A >> (B >> C))))
    assert str(memory(A >> (B >> C))) in unbounded


def test_odd_names_in_python():
    expression = odd_expression()
    source = generate_python(expression)
    assert source.isascii()
    assert str(expression) in ast.get_docstring(ast.parse(source), clean=False)
    generated, detector = loaded(source)["Detector"](), Detector(expression)
    stream = [(n, n, {name}) for n, name in enumerate((*ODD, *reversed(ODD)))]
    found = [plain(generated.push(*each)) for each in stream]
    assert found == [plain(detector.push(*each)) for each in stream]
    assert {mark[2] for each in found if each for mark in each[4]} == set(ODD)


@pytest.mark.parametrize("generate", [generate_python, generate_c])
@pytest.mark.parametrize("bound", ["0 or print()", 0.5, float("inf")])
def test_bounds_that_are_no_whole_numbers_are_not_written_into_code(generate, bound):
    with pytest.raises(InputError, match="is no whole number"):
        generate((A + B).within(time=bound))


def test_the_same_text_every_time():
    script = (
        "from cepheid.algebra import Primitive, Rate\n"
        "from cepheid.algebra.generate_c import generate_c\n"
        "from cepheid.algebra.generate_python import generate_python\n"
        "x = Primitive('A', frozenset('pqrst')) + Primitive('B', frozenset('tsrqp')) >> Primitive('C')\n"
        "print(generate_c(x, rate=Rate(1)), generate_python(x, rate=Rate(1)))\n"
    )
    hashing = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # other than here, as far as is known
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": hashing}
    )
    x = Primitive("A", frozenset("pqrst")) + Primitive("B", frozenset("tsrqp")) >> Primitive("C")
    assert done.stdout == f"{generate_c(x, rate=Rate(1))} {generate_python(x, rate=Rate(1))}\n"


# ------------------------------------------------------------------------------------------------------------ C


def stated_size(text):
    """The bytes that a file in C says its state takes; a compiler with words of 8 bytes takes exactly these."""
    return int(re.search(r"sizeof\(\w+_t\) <= (\d+) where a value has 8 bytes", text)[1])


COMPILER = shutil.which("cc") or shutil.which("gcc")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2")
SANITIZERS = ("-std=c99", "-O0", "-fsanitize=undefined,address", "-fno-sanitize-recover=all")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler: neither cc nor gcc is on the path")


@dataclass(frozen=True)
class Written:
    """One detector of the program: expression, rate, stream."""

    expression: object
    rate: Rate | None
    stream: list

    @property
    def names(self):
        return names_of(self.expression)

    @property
    def input(self):
        """Its events as the program reads them: time, bits, value."""
        lines = [f"{time} {sum(1 << self.names.index(name) for name in names)} {event}" for event, time, names in self.stream]
        return "\n".join([str(len(lines)), *lines])

    @cached_property
    def output(self):
        """What the program has to print: the size that the file states, and what the Python form gives."""
        namespace = loaded(generate_python(self.expression, rate=self.rate))
        detector = namespace["Detector"]()
        variables = unrolled(self.expression, self.rate).variables
        times = {}
        lines = [f"size {stated_size(generate_c(self.expression, rate=self.rate))}"]
        for event, time, names in self.stream:
            found, error = pushed(detector, event, time, names)
            if error is not None:
                lines.append("-1" if type(error) is ValueError else "-2")
                continue
            times[event] = time
            if found is None:
                lines.append("0")
                continue
            *interval, marks = found
            said = [f"{variables.index(variable)} {position} {times[event]} {event}" for position, event, variable in marks]
            lines.append(" ".join(map(str, ["1", *interval, len(marks), *said])))
        return lines


PROGRAM = """
#include <stdio.h>
%(includes)s

#define RUN(p, P) \\
    static void run_##p(void) \\
    { \\
        static p##_t detector; \\
        static p##_match_t match; \\
        long long count, time, value; \\
        unsigned long long bits; \\
        p##_init(&detector); \\
        printf("size %%lu\\n", (unsigned long)sizeof(detector)); \\
        if (scanf("%%lld", &count) != 1) { return; } \\
        while (count-- > 0 && scanf("%%lld %%llu %%lld", &time, &bits, &value) == 3) { \\
            const int status = p##_push(&detector, (int64_t)time, (uint64_t)bits, (p##_value_t)value, &match); \\
            printf("%%d", status); \\
            if (status == 1) { \\
                printf(" %%lld %%lld", (long long)match.start, (long long)match.end); \\
                printf(" %%lld %%lld %%u", (long long)match.start_time, (long long)match.end_time, (unsigned)match.count); \\
                for (uint32_t i = 0; i < match.count; i++) { \\
                    printf(" %%u %%lld", (unsigned)match.marks[i].variable, (long long)match.marks[i].position); \\
                    printf(" %%lld %%lld", (long long)match.marks[i].time, (long long)match.marks[i].value); \\
                } \\
            } \\
            printf("\\n"); \\
        } \\
    }

%(runs)s

int main(void)
{
%(calls)s
    return 0;
}
"""


@pytest.fixture(scope="module")
def written(cases, seed):
    """Random detectors with disturbed streams, and some that are hard for a compiler."""
    rng = random.Random(f"{seed} c")
    found = []
    for case in range(max(10, cases // 10)):
        rate = rng.choice(RATES)
        expression = bounded_expression(rng, rate, promised=case % 2 == 0)
        stream = disturbed(rng, expression) if case % 4 < 2 else random_events(rng, expression, rate)
        found.append(Written(expression, rate, stream))
    wide = [Primitive(f"p{n:02}") for n in range(64)]
    found += [
        Written(INTRODUCTORY, Rate(1), [(n, n, {name}) for n, name in enumerate("BPBTBBTBPPBBB")]),
        Written(Primitive("A", frozenset()) >> Primitive("B", frozenset()), None, [(n, n, {name}) for n, name in enumerate("ABAB")]),
        Written(A, None, [(n, time, {"A"}) for n, time in enumerate((-(2**63), 0, 2**63 - 1, -1))]),
        Written(
            (A + B).within(time=2**63), None, [(n, time, {name}) for n, (time, name) in enumerate(((-(2**63), "A"), (0, "B"), (1, "B")))]
        ),
        Written((A + B).within(time=2**64) - C, None, [(0, -(2**63), {"A"}), (1, 2**63 - 1, {"B"})]),
        Written((A + B).within(time=-1, events=2**63) | (A >> B), None, [(n, n, {name}) for n, name in enumerate("ABAB")]),
        Written(odd_expression(), None, [(n, n, {name}) for n, name in enumerate((*ODD, *reversed(ODD)))]),
        # the instance that left the ring last is in the match, and the ring is full with that of the same event
        Written(A >> (B + C).within(time=2), Rate(1), [(n, n, set(names)) for n, names in enumerate(("A", "AB", "A", "AC"))]),
        # both sides of the conjunction start together, later than neither: event-algebra, Figure 2, takes the left one as it is
        Written(((A >> B) | (C >> D)) + (C >> D), None, [(n, n, {name}) for n, name in enumerate("CABD")]),
        Written((A >> (B + C)).within(time=4), Rate(1), [(n, n // 3, {"ABC"[n % 3]}) for n in range(30)]),
        Written(reduce(or_, wide), None, [(n, n, {f"p{k:02}"}) for n, k in enumerate((0, 63, 31, 1))]),
        Written(wide[63] >> reduce(or_, wide), None, [(n, n, {f"p{k:02}"}) for n, k in enumerate((0, 63, 62, 63, 63, 31, 32))]),
    ]
    return found


@pytest.fixture(scope="module")
def sources(written, tmp_path_factory):
    """The files of one program: the detectors, and a main that sees only their types."""
    folder = tmp_path_factory.mktemp("generated")
    for n, each in enumerate(written):
        text = generate_c(each.expression, rate=each.rate, prefix=f"d{n}")
        assert text.isascii()
        assert re.findall(r"#include (.*)", text) == ["<stdbool.h>", "<stdint.h>"]
        (folder / f"d{n}.c").write_text(text, encoding="ascii")
    numbers = range(len(written))
    (folder / "all.c").write_text("\n".join(f'#include "d{n}.c"' for n in numbers), encoding="ascii")
    parts = {
        "includes": "\n".join(f'#define D{n}_TYPES_ONLY\n#include "d{n}.c"' for n in numbers),
        "runs": "\n".join(f"RUN(d{n}, D{n})" for n in numbers),
        "calls": "\n".join(f"    run_d{n}();" for n in numbers),
    }
    (folder / "main.c").write_text(PROGRAM % parts, encoding="ascii")
    return folder


def printed(folder, written, *options):
    """What the program prints, compiled with some options; the first detector forwards values of type double."""
    program = folder / "program"
    command = [COMPILER, *options, "-DD0_VALUE=double", "-o", program, "main.c", "all.c"]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert compiled.returncode == 0, compiled.stderr[:4000]
    done = subprocess.run([program], input="\n".join(each.input for each in written), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[:4000]
    return done.stdout.splitlines()


def compare(written, lines):
    at = 0
    for each in written:
        want = each.output
        assert lines[at : at + len(want)] == want, (str(each.expression), each.rate)
        at += len(want)
    assert at == len(lines)
    assert {line.split()[0] for line in lines} == {"size", "1", "0", "-1", "-2"}


@needs_compiler
def test_c_is_the_python_form(written, sources):
    compare(written, printed(sources, written, *STRICT))


@needs_compiler
def test_c_with_sanitizers(written, sources, tmp_path):
    (tmp_path / "none.c").write_text("int main(void) { return 0; }\n", encoding="ascii")
    can = subprocess.run([COMPILER, *SANITIZERS, "-o", "none", "none.c"], capture_output=True, check=False, cwd=tmp_path)
    if can.returncode != 0 or subprocess.run([tmp_path / "none"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the compiler has no sanitizers here")
    compare(written, printed(sources, written, *SANITIZERS))


def test_primitives_and_variables_are_named():
    text = generate_c((Primitive("b", frozenset("x")) >> B) - Primitive("a b"))
    assert re.findall(r"#define DETECTOR_BIT_(\w+) \(UINT64_C\(1\) << (\d+)\) /\* (.*) \*/", text) == [
        ("B", "0", "B"),
        ("a_b", "1", "a b"),
        ("b", "2", "b"),
    ]
    assert re.findall(r"#define DETECTOR_VARIABLE_(\w+) (\d+) /\* (.*) \*/", text) == [("B", "0", "B"), ("x", "1", "x")]
    assert "#define DETECTOR_MARKS 2" in text


def test_odd_names_are_identifiers_and_safe_comments():
    text = generate_c(odd_expression())
    names = re.findall(r"#define (\S+) \(UINT64_C", text)
    assert len(set(names)) == len(ODD)
    assert all(re.fullmatch(r"DETECTOR_BIT_\w*", name, re.ASCII) for name in names)
    assert "DETECTOR_BIT_a_b" in names
    assert all(word not in text for word in ("\\", "??"))
    assert all(line.count("/*") == line.count("*/") == 1 for line in text.splitlines() if line.startswith("#define DETECTOR_BIT"))


def test_without_a_bound_c_names_the_sequence_to_blame():
    unbounded = A >> (B + C)
    with pytest.raises(LimitError) as error:
        generate_c(unbounded - D)
    assert f"in `{unbounded}` nothing bounds how long `{unbounded.right}` takes" in str(error.value)
    assert "help: bound it by WITHIN" in str(error.value)
    with pytest.raises(LimitError) as error:
        generate_c(unbounded.within(time=4))
    assert "any number of events may come within 4" in str(error.value)
    assert "rate=Rate(..)" in str(error.value)
    generate_c(unbounded.within(time=4), rate=Rate(1))
    generate_c(unbounded.within(events=4))


def test_limits_of_c_are_errors():
    with pytest.raises(LimitError, match="65 different primitives"):
        generate_c(reduce(or_, (Primitive(f"p{n}") for n in range(65))))
    with pytest.raises(LimitError, match=f"at most {MOST_BYTES} are possible: .* holds 100000001 instances"):
        generate_c((A >> (B + C)).within(time=10**8), rate=Rate(1))


@pytest.mark.parametrize("prefix", ["", "1a", "a b", "a-b", "int64", "uint_fast8", "size", "time", "div", "ü", "a\n"])
def test_prefixes_that_are_no_names_are_errors(prefix):
    with pytest.raises(InputError, match="cannot begin the names"):
        generate_c(A, prefix=prefix)
